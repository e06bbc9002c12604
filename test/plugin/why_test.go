// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// whyAnswer is what programs read.
type whyAnswer struct {
	Kind    string `json:"kind"`
	Result  string `json:"result"`
	Cause   string `json:"cause"`
	Summary string `json:"summary"`
	Chain   []struct {
		Kind     string `json:"kind"`
		Name     string `json:"name"`
		Refusals []struct {
			Reason  string `json:"reason"`
			Quota   string `json:"quota"`
			Message string `json:"message"`
		} `json:"refusals"`
	} `json:"chain"`
	Quotas []struct {
		Quota  string `json:"quota"`
		Unread bool   `json:"unread"`
	} `json:"quotas"`
	Waiting []struct {
		Kind  string `json:"kind"`
		Quota string `json:"quota"`
	} `json:"waiting"`
	Remedies []string `json:"remedies"`
	Notes    []string `json:"notes"`
	status   int
}

// why asks as somebody.
func why(ctx context.Context, kubeconfig, namespace string, subject ...string) whyAnswer {
	GinkgoHelper()
	got := crqAs(ctx, kubeconfig, append([]string{"why", "-n", namespace, "-o", "json"}, subject...)...)
	answered := whyAnswer{status: got.status}
	Expect(json.Unmarshal([]byte(got.stdout), &answered)).To(Succeed(), "%s%s", got.stdout, got.stderr)
	return answered
}

// refusers are the quotas that refused the last link of the chain.
func (a whyAnswer) refusers() []string {
	var quotas []string
	for _, refusal := range a.Chain[len(a.Chain)-1].Refusals {
		quotas = append(quotas, refusal.Reason+" "+refusal.Quota)
	}
	return quotas
}

// concludes asks until the answer has this cause: events and views follow a moment later.
func concludes(ctx context.Context, cause, kubeconfig, namespace string, subject ...string) whyAnswer {
	GinkgoHelper()
	var got whyAnswer
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		got = why(ctx, kubeconfig, namespace, subject...)
		g.Expect(got.Cause).To(Equal(cause), got.Summary)
		if cause == "QuotaShort" || cause == "OtherRefused" {
			g.Expect(got.refusers()).NotTo(BeEmpty())
		}
	}).Should(Succeed())
	return got
}

// says asks until this is the summary: views follow a moment later.
func says(ctx context.Context, summary, kubeconfig, namespace string, subject ...string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) string { return why(ctx, kubeconfig, namespace, subject...).Summary }).Should(Equal(summary))
}

// ofSet replaces the made-up parts of names: those of ReplicaSets and their pods.
func ofSet(text string) string {
	return regexp.MustCompile(`web-[0-9a-f]{8,10}(-[0-9a-z]{5})?`).ReplaceAllStringFunc(text, func(name string) string {
		if strings.Count(name, "-") == 2 {
			return "web-SET-POD"
		}
		return "web-SET"
	})
}

// devices is a Job of two pods, each with a claim of its own.
const devices = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: devices}
spec:
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {claims: [{name: gpu}]}}]
      resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

var _ = Describe("kubectl crq why", Ordered, ContinueOnFailure, func() {
	var viewing string // the kubeconfig of somebody who may view why-a, and nothing else

	BeforeAll(func(ctx SpecContext) {
		namespace(ctx, "why-a", "why", "team")
		namespace(ctx, "why-b", "why", "team")
		enforced(ctx, builders.Quota("why-team").Label("why", "team").Hard("pods", "6").Hard("requests.cpu", "1").Obj())
		mustCreate(ctx, builders.Pod("why-b", "large").Request("cpu", "350m").Obj())
		viewing = viewer(ctx, "why-vera", "why-a")
		mustSucceed(kubectl(ctx, cluster.Kubeconfig(), nil, "apply", "-n", "why-a", "-f", file(manifests["deployment"])))
		uses(ctx, "why-team", "pods: 3/6, requests.cpu: 850m/1")
	})

	It("leads an administrator from a Deployment to who holds the quota", func(ctx SpecContext) {
		concludes(ctx, "QuotaShort", cluster.Kubeconfig(), "why-a", "deployment/web")
		var got outcome
		Eventually(ctx, func(ctx context.Context) string {
			got = crq(ctx, "why", "deployment/web", "-n", "why-a")
			return got.stdout
		}).Should(And(ContainSubstring("crq/why-team is short of requests.cpu: 600m."), ContainSubstring("The operator knows that ReplicaSet/web-"),
			ContainSubstring("\nDeployment/web: wants 5 pods, has 2, "), MatchRegexp(`ReplicaSet/web-\S+: wants 5 pods, has 2, `)))
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(BeEmpty())
		wantGolden("why", counts.ReplaceAllString(ofSet(got.stdout), "(xN over AGE)"))
	})

	It("answers with the rights of view alone, and says what it can't see", func(ctx SpecContext) {
		got := crqAs(ctx, viewing, "why", "deploy", "web", "-n", "why-a")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(BeEmpty())
		Expect(got.stdout).To(And(ContainSubstring("all others"), Not(ContainSubstring("why-b")),
			ContainSubstring("You can't read crq/why-team: which other namespaces hold it can't be seen.")))
		wantGolden("why-owner", counts.ReplaceAllString(ofSet(got.stdout), "(xN over AGE)"))
	})

	It("answers programs", func(ctx SpecContext) {
		got := why(ctx, viewing, "why-a", "deployment/web")
		Expect(got.Kind).To(Equal("Why"))
		Expect(got.Result).To(Equal("does not fit"))
		Expect(got.Chain).To(HaveLen(2))
		Expect(got.Chain[1].Kind).To(Equal("ReplicaSet"))
		Expect(got.refusers()).To(ConsistOf("QuotaExceeded crq/why-team"))
		Expect(got.Quotas).To(HaveLen(1))
		Expect(got.Quotas[0].Unread).To(BeTrue())
		Expect(got.Notes).To(BeEmpty())
		Expect(got.Waiting).To(ConsistOf(And(HaveField("Kind", "ReplicaSet"), HaveField("Quota", "crq/why-team"))))
		Expect(crqAs(ctx, viewing, "why", "deployment/web", "-n", "why-a", "-o", "jsonpath={.cause}").stdout).To(Equal("QuotaShort"))
	})

	It("follows an autoscaler to what it scales", func(ctx SpecContext) {
		scaler := builders.HorizontalPodAutoscaler("why-a", "scaler")
		scaler.Spec.ScaleTargetRef.APIVersion, scaler.Spec.ScaleTargetRef.Kind, scaler.Spec.ScaleTargetRef.Name = "apps/v1", "Deployment", "web"
		mustCreate(ctx, scaler)
		got := why(ctx, viewing, "why-a", "hpa/scaler")
		Expect(got.Chain).To(HaveLen(3))
		Expect(got.Summary).To(HavePrefix("Deployment/web lacks 3 of its 5 pods: crq/why-team is short of"))
	})

	It("says of what was refused, and then deleted, that it doesn't exist", func(ctx SpecContext) {
		p := newPlace(ctx, "why-again", list("pods", "1"))
		p.mustApply(ctx, manifests["deployment"])
		says(ctx, "Deployment/web lacks 4 of its 5 pods: crq/why-again is short of pods: 4.", p.kubeconfig, p.namespace, "deployment/web")
		mustKubectl(ctx, "delete", "deployment", "web", "-n", p.namespace)
		got := crqAs(ctx, p.kubeconfig, "why", "deployment/web", "-n", p.namespace)
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(Equal("error: deployments.apps \"web\" not found; see that the name and the namespace are right\n"))
	})

	It("leads from a Job and from a StatefulSet with claims", func(ctx SpecContext) {
		p := newPlace(ctx, "why-kinds", list("pods", "2", "persistentvolumeclaims", "1"))
		p.mustApply(ctx, manifests["statefulset"])
		got := concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "sts/web")
		Expect(got.status).To(Equal(1))
		Expect(got.Summary).To(And(HavePrefix("StatefulSet/web lacks "), ContainSubstring("crq/why-kinds is short of persistentvolumeclaims: 3")))
		p.mustApply(ctx, strings.Replace(manifests["job"], "{name: web}", "{name: batch}", 1))
		got = concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "job", "batch")
		Expect(got.Summary).To(And(HavePrefix("Job/batch lacks "), ContainSubstring("crq/why-kinds is short of pods: ")))
	})

	It("tells a ResourceQuota of the namespace from a shared quota, also where both refuse", func(ctx SpecContext) {
		p := newPlace(ctx, "why-two", list("pods", "3"))
		own := builders.ResourceQuota(p.namespace, "own")
		own.Spec.Hard = list("requests.cpu", "500m")
		mustCreate(ctx, own)
		Eventually(ctx, func(ctx context.Context) (corev1.ResourceList, error) {
			err := api.Get(ctx, client.ObjectKeyFromObject(own), own)
			return own.Status.Used, err
		}).Should(HaveKey(corev1.ResourceRequestsCPU))
		p.mustApply(ctx, manifests["deployment"])
		p.comesTo(ctx, list("pods", "2"))
		got := concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "deployment/web")
		Expect(got.refusers()).To(ConsistOf("QuotaExceeded quota/own"))
		// The shared quota may hold room for a pod that it admitted before it knew what the other one would say.
		Eventually(ctx, func(ctx context.Context) string { return why(ctx, p.kubeconfig, p.namespace, "deployment/web").Summary }).Should(
			MatchRegexp(`^Deployment/web lacks 3 of its 5 pods: crq/why-two is short of pods: [23]; quota/own is short of requests.cpu: 750m.$`))
	})

	It("says what refuses, if it is no quota", func(ctx SpecContext) {
		p := newPlace(ctx, "why-other", list("pods", "9"))
		mustCreate(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: p.namespace},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: list("cpu", "100m")}}},
		})
		p.mustApply(ctx, manifests["deployment"])
		got := concludes(ctx, "OtherRefused", p.kubeconfig, p.namespace, "deployment/web")
		Expect(got.status).To(Equal(1))
		Expect(got.Summary).To(And(HavePrefix("Deployment/web lacks all 5 pods: a LimitRange refuses it: "),
			ContainSubstring("maximum cpu usage per Container is 100m")))
	})

	It("follows pods to what is made for them", func(ctx SpecContext) {
		p := newPlace(ctx, "why-made", list("requests.storage", "5Gi", "count/resourceclaims.resource.k8s.io", "1"))
		p.mustApply(ctx, manifests["ephemeral"])
		p.comesTo(ctx, list("requests.storage", "4Gi"))
		got := concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "deployment/web")
		Expect(got.status).To(Equal(1))
		Expect(got.Summary).To(Equal("Deployment/web lacks 1 PersistentVolumeClaim: crq/why-made is short of requests.storage: 1Gi."))
		pod := got.Chain[len(got.Chain)-1]
		Expect(pod.Kind).To(Equal("Pod"))
		Expect(got.refusers()).To(ConsistOf("QuotaExceeded crq/why-made"))
		got = concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "pod/"+pod.Name)
		Expect(got.Summary).To(HavePrefix("Pod/" + pod.Name + " lacks 1 PersistentVolumeClaim: crq/why-made is short of"))
		Expect(p.fits(ctx, manifests["ephemeral"]).of("crq/why-made", true)).To(HaveKey(corev1.ResourceRequestsStorage))

		p.mustApply(ctx, devices)
		got = concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "job/devices")
		Expect(got.Summary).To(Equal("Job/devices lacks 1 ResourceClaim: crq/why-made is short of count/resourceclaims.resource.k8s.io: 1."))
	})

	It("says once what refused, if it was no quota, with the remedy", func(ctx SpecContext) {
		p := newPlace(ctx, "why-secure", list("pods", "9"))
		mustKubectl(ctx, "label", "namespace", p.namespace, "pod-security.kubernetes.io/enforce=restricted")
		p.mustApply(ctx, manifests["deployment"])
		got := concludes(ctx, "OtherRefused", p.kubeconfig, p.namespace, "deployment/web")
		Expect(got.status).To(Equal(1))
		Expect(got.Summary).To(HavePrefix("Deployment/web lacks all 5 pods: Pod Security refuses it: "))
		Expect(got.refusers()).To(HaveLen(1))
		Expect(got.Remedies).To(ContainElement(ContainSubstring("the level restricted:latest of the namespace")))
	})

	It("says that a LimitRange's defaults make pods invalid, as fit and apply do", func(ctx SpecContext) {
		p := newPlace(ctx, "why-default", list("requests.cpu", "4", "limits.cpu", "4"))
		mustCreate(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: p.namespace},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: list("cpu", "10m"), DefaultRequest: list("cpu", "10m")}}},
		})
		manifest := strings.Replace(manifests["deployment"], "{limits: {cpu: 250m, memory: 64Mi}}", "{requests: {cpu: 700m}}", 1)
		const message = "must be less than or equal to cpu limit of 10m"
		fits := p.fits(ctx, manifest)
		Expect(fits.status).To(Equal(1))
		Expect(fits.Refusals).To(ContainElement(HaveField("Message", And(ContainSubstring(message), ContainSubstring("LimitRange small")))))
		Eventually(ctx, func(ctx context.Context) string { // the operator has to learn of the LimitRange
			return kubectl(ctx, p.kubeconfig, nil, "apply", "-n", p.namespace, "-f", file(manifest), "--dry-run=server").stderr
		}).Should(And(ContainSubstring("its pods will be refused: "), ContainSubstring(message)))
		p.mustApply(ctx, manifest)
		p.refused(ctx, message)
		got := why(ctx, p.kubeconfig, p.namespace, "deployment/web")
		Expect(got.Summary).To(And(HavePrefix("Deployment/web lacks all 5 pods: a LimitRange refuses it: "), ContainSubstring(message)))
		Expect(got.refusers()).To(HaveLen(1))
		Expect(got.Remedies).To(ConsistOf(ContainSubstring("kubectl describe limitrange -n why-default")))
	})

	It("says that nothing is refused of pods that merely can't be scheduled", func(ctx SpecContext) {
		p := newPlace(ctx, "why-unscheduled", list("pods", "9"))
		p.mustApply(ctx, manifests["deployment"])
		p.comesTo(ctx, list("pods", "5"))
		pods := &corev1.PodList{}
		Expect(api.List(ctx, pods, client.InNamespace(p.namespace))).To(Succeed())
		for i := range pods.Items {
			pods.Items[i].Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available",
			}}
			Expect(api.Status().Update(ctx, &pods.Items[i])).To(Succeed())
		}
		got := crqAs(ctx, p.kubeconfig, "why", "deployment/web", "-n", p.namespace)
		Expect(got.status).To(BeZero())
		Expect(got.stdout).To(And(HavePrefix("Nothing is refused: there are all 5 pods of Deployment/web. No quota causes that 5 of them can't run: "+
			"not scheduled: 0/3 nodes are available."), ContainSubstring("kubectl describe pod/web-")))
		Expect(why(ctx, p.kubeconfig, p.namespace, "pod", pods.Items[0].Name).Summary).To(
			HaveSuffix("exists, and is not scheduled: 0/3 nodes are available."))
	})

	It("finds out why an object was refused that doesn't exist", func(ctx SpecContext) {
		p := newPlace(ctx, "why-gone", list("services", "0", "persistentvolumeclaims", "1"))
		Expect(api.Create(ctx, builders.Service(p.namespace, "front").Obj())).NotTo(Succeed())
		got := concludes(ctx, "QuotaShort", p.kubeconfig, p.namespace, "svc/front")
		Expect(got.Summary).To(Equal("Service/front doesn't exist, because it was refused: crq/why-gone is short of services: 1."))
		mustCreate(ctx, builders.VolumeClaim(p.namespace, "data").Obj())
		Expect(why(ctx, p.kubeconfig, p.namespace, "pvc/data").Summary).To(HavePrefix("Nothing is refused: PersistentVolumeClaim/data exists"))
	})

	It("shows what events say, and lets them control nothing", func(ctx SpecContext) {
		p := newPlace(ctx, "why-hostile", list("pods", "9"))
		refuse := func(pod, message string) {
			GinkgoHelper()
			mustCreate(ctx, &corev1.Event{
				ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: pod}, Type: corev1.EventTypeWarning, Reason: "FailedCreate",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: pod, Namespace: p.namespace}, LastTimestamp: metav1.Now(),
				Message: fmt.Sprintf("refused pods %q: %s", pod, message),
			})
		}
		refuse("titled", "no\x1b]0;owned\a \u202eseidob")
		refuse("unseen", "exceeded quota: elsewhere, requested: pods=1, used: pods=9, limited: pods=9 \x1b[2J")
		got := crqAs(ctx, p.kubeconfig, "why", "pod/titled", "-n", p.namespace)
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(ContainSubstring("something else than a quota refuses it: "))
		for _, args := range [][]string{{"pod/titled"}, {"pod/unseen"}, {"pod/titled", "-o", "jsonpath={.summary}"}} {
			got := crqAs(ctx, p.kubeconfig, append([]string{"why", "-n", p.namespace}, args...)...)
			Expect(got.stdout + got.stderr).NotTo(ContainSubstring("\x1b"))
			Expect(got.stdout + got.stderr).NotTo(Or(ContainSubstring("\a"), ContainSubstring("\u202e")))
		}
		got = crqAs(ctx, p.kubeconfig, "why", "pod/unseen", "-n", p.namespace)
		Expect(got.status).To(Equal(2))
		Expect(got.stdout).To(HavePrefix("Pod/unseen doesn't exist, because it was refused by quota elsewhere, which this command can't see.\n"))
	})

	DescribeTable("fails, and says what to do about it", func(ctx SpecContext, want string, args ...string) {
		got := crqAs(ctx, viewing, append([]string{"why"}, args...)...)
		Expect(got.status).To(Equal(2))
		Expect(got.stderr).To(And(HavePrefix("error: "), ContainSubstring(want)))
	},
		Entry("of such a kind", `unknown kind "secret": use one of deployment, statefulset`, "secret/web", "-n", "why-a"),
		Entry("without a name", "want KIND/NAME or KIND NAME", "deployment", "-n", "why-a"),
		Entry("without such an object", `pods "none" not found`, "pod/none", "-n", "why-a"),
		Entry("without the right to read it", "cannot get resource", "deployment/web", "-n", "why-b"),
		Entry("without such a format", "unknown output format", "deployment/web", "-o", "wide"),
	)

	DescribeTable("completes", func(ctx SpecContext, want string, args ...string) {
		got := kubectl(ctx, cluster.Kubeconfig(), nil, append([]string{"__complete", "crq", "why", "-n", "why-a"}, args...)...)
		Expect(mustSucceed(got)).To(Equal(want))
	},
		Entry("kinds", "deployment/\ndaemonset/\n:6\n", "d"),
		Entry("names after a kind and a slash", "deploy/web\n:4\n", "deploy/"),
		Entry("names after a kind", "web\n:4\n", "deployment", "w"),
		Entry("nothing more", ":4\n", "deployment", "web", ""),
	)
})

// counts are how often somebody was refused, and how long.
var counts = regexp.MustCompile(`\(x\d+ over [^)]+\)`)

// Serial, because what runs beside it would be measured, too.
var _ = Describe("kubectl crq why, measured", Serial, func() {
	It("answers within a second in a namespace with 2,000 pods", func(ctx SpecContext) {
		namespace(ctx, "why-busy")
		group, creating := errgroup.WithContext(ctx)
		group.SetLimit(16)
		for i := range 2000 {
			group.Go(func() error {
				return api.Create(creating, builders.Pod("why-busy", fmt.Sprintf("p-%d", i)).Request("cpu", "10m").Obj())
			})
		}
		Expect(group.Wait()).To(Succeed())
		enforced(ctx, builders.Quota("why-busy").Label("kubernetes.io/metadata.name", "why-busy").Hard("pods", "2002").Hard("requests.cpu", "90").Obj())
		mustSucceed(kubectl(ctx, cluster.Kubeconfig(), nil, "apply", "-n", "why-busy", "-f", file(manifests["deployment"])))
		says(ctx, "Deployment/web lacks 3 of its 5 pods: crq/why-busy is short of pods: 3.", cluster.Kubeconfig(), "why-busy", "deployment/web")
		// A busy machine may be late once.
		Eventually(ctx, func(ctx context.Context) time.Duration {
			start := time.Now()
			Expect(crq(ctx, "why", "deployment/web", "-n", "why-busy").status).To(Equal(1))
			took := time.Since(start)
			AddReportEntry("why with 2,000 pods took", took.Round(time.Millisecond).String())
			return took
		}).Should(BeNumerically("<", time.Second))
	}, SpecTimeout(3*time.Minute))
})
