// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// short is the warning for a workload.
func short(quota, said, kind string) string {
	return fmt.Sprintf("quota %s: %s; see kubectl crq why %s/web -n %s", quota, said, kind, quota)
}

// unmade is the warning for a workload that the request doesn't make.
func unmade(quota, said string) string {
	return fmt.Sprintf("quota %s: %s; see kubectl crq fit -f FILE -n %s, and apply fewer or smaller pods, or ask for a higher limit", quota, said, quota)
}

var _ = Describe("What kubectl apply prints", func() {
	DescribeTable("of each kind that doesn't fit", func(ctx SpecContext, manifest, kind, said string, pods int) {
		p := newPlace(ctx, "kind-"+kind, 5, "pods", "8")
		Expect(p.applies(ctx, manifest)).To(Equal([]string{short(p.name, said, kind)}))
		p.has(ctx, pods)
	},
		Entry("Deployment", deployment(8), "deployment", "3 of 8 pods fit now, short of pods 5", 3),
		Entry("StatefulSet", statefulSet(8), "statefulset", "3 of 8 pods fit now, short of pods 5", 3),
		Entry("ReplicaSet", replicaSet(8), "replicaset", "3 of 8 pods fit now, short of pods 5", 3),
		Entry("ReplicationController", replicationController(8), "replicationcontroller", "3 of 8 pods fit now, short of pods 5", 3),
		Entry("Job", job(8), "job", "3 of 8 pods fit now, short of pods 5", 3),
		Entry("CronJob", cronJob(8), "cronjob", "a run doesn't fit now, short of pods 5", 0),
	)

	It("says nothing of what fits", func(ctx SpecContext) {
		p := newPlace(ctx, "fits", 5, "pods", "8", "requests.cpu", "800m")
		for _, manifest := range []string{daemonSet(), cronJob(3), deployment(3)} {
			Expect(p.applies(ctx, manifest)).To(BeEmpty())
		}
		p.has(ctx, 3)
	})

	It("warns of a DaemonSet of which not one pod fits", func(ctx SpecContext) {
		p := newPlace(ctx, "daemon", 2, "pods", "2")
		Expect(p.applies(ctx, daemonSet())).To(ConsistOf(short(p.name, "not one pod fits now, short of pods 1", "daemonset")))
	})

	It("says that something can never fit", func(ctx SpecContext) {
		p := newPlace(ctx, "never", 5, "pods", "20", "requests.cpu", "900m")
		Expect(p.applies(ctx, deployment(10))).To(ConsistOf(short(p.name,
			"10 pods can never fit (4 fit now), because that is more than the limit: requests.cpu 1 of 900m", "deployment")))
		p.has(ctx, 4)
	})

	It("says what a pod must state, and takes a LimitRange's defaults", func(ctx SpecContext) {
		p := newPlace(ctx, "unstated", 0, "requests.cpu", "1", "limits.cpu", "1")
		Expect(p.applies(ctx, deployment(3))).To(ConsistOf("its pods will be refused: failed quota: unstated: " +
			"must specify limits.cpu for: main; see kubectl crq why deployment/web -n unstated"))
		Expect(api.Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "defaults", Namespace: p.name},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Default: quotaOf("", "cpu", "300m").Spec.Quota.Hard,
			}}},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) []string {
			return p.applies(ctx, deployment(4), "--dry-run=server")
		}).Should(ConsistOf(short(p.name, "4 pods can never fit (3 fit now), because that is more than the limit: limits.cpu 1200m of 1", "deployment")))
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
	})

	It("judges scale and apply alike, and what is there already is not counted again", func(ctx SpecContext) {
		p := newPlace(ctx, "scaled", 5, "pods", "8")
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		want := ConsistOf(short(p.name, "3 of 8 pods fit now, short of pods 5", "deployment"))
		Expect(p.applies(ctx, deployment(8), "--dry-run=server")).To(want)
		Expect(p.scales(ctx, "deployment/web", 3)).To(BeEmpty())
		p.observed(ctx, "deployment/web", 3)
		Expect(p.scales(ctx, "deployment/web", 8)).To(want)
		p.observed(ctx, "deployment/web", 3)
		Expect(p.scales(ctx, "deployment/web", 1)).To(BeEmpty())
		p.observed(ctx, "deployment/web", 1)
	})

	It("says nothing of a StatefulSet that is scaled down to what it has", func(ctx SpecContext) {
		p := newPlace(ctx, "shrinks", 5, "pods", "8")
		Expect(p.applies(ctx, statefulSet(5))).To(HaveLen(1))
		p.observed(ctx, "statefulset/web", 3)
		Expect(p.scales(ctx, "statefulset/web", 2)).To(BeEmpty())
		p.observed(ctx, "statefulset/web", 2)
	})

	It("says what the defaults of a LimitRange do to pods", func(ctx SpecContext) {
		p := newPlace(ctx, "defaulted", 0, "requests.cpu", "1")
		Expect(api.Create(ctx, &corev1.LimitRange{
			ObjectMeta: metav1.ObjectMeta{Name: "small", Namespace: p.name},
			Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
				Type: corev1.LimitTypeContainer, Default: quotaOf("", "cpu", "10m").Spec.Quota.Hard,
			}}},
		})).To(Succeed())
		Eventually(ctx, func(ctx context.Context) []string { return p.applies(ctx, deployment(1), "--dry-run=server") }).Should(ConsistOf(And(
			ContainSubstring("its pods will be refused"), ContainSubstring("LimitRange small"), ContainSubstring("less than or equal to cpu limit of 10m"))))
		p.applies(ctx, deployment(1))
		p.has(ctx, 0)
	})

	DescribeTable("of scales of other kinds", func(ctx SpecContext, manifest, kind string) {
		p := newPlace(ctx, "scale-"+kind, 5, "pods", "8")
		Expect(p.applies(ctx, manifest)).To(BeEmpty())
		p.observed(ctx, kind+"/web", 2)
		Expect(p.scales(ctx, kind+"/web", 8)).To(
			ConsistOf(short(p.name, "3 of 8 pods fit now, short of pods 5", kind)))
	},
		Entry("StatefulSet", statefulSet(2), "statefulset"),
		Entry("ReplicaSet", replicaSet(2), "replicaset"),
		Entry("ReplicationController", replicationController(2), "replicationcontroller"),
	)

	It("says how many of an autoscaler's pods fit", func(ctx SpecContext) {
		p := newPlace(ctx, "auto", 19, "pods", "30")
		Expect(p.applies(ctx, autoscaler(20))).To(BeEmpty(), "nobody knows what it scales")
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		Expect(p.applies(ctx, autoscaler(21))).To(ConsistOf(short(p.name, "maxReplicas 21: 11 fit now, short of pods 10", "deployment")))
		Expect(p.applies(ctx, autoscaler(40))).To(ConsistOf(short(p.name,
			"maxReplicas 40 can never fit (11 fit now), because that is more than the limit: pods 40 of 30", "deployment")))
		Expect(p.applies(ctx, autoscaler(11))).To(BeEmpty())
	})

	It("says that a rollout will be stuck, and that one will wait", func(ctx SpecContext) {
		p := newPlace(ctx, "rollout", 2, "pods", "4", "requests.cpu", "1")
		suite.Kubelet(ctx, cluster, p.name)
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		Expect(p.applies(ctx, another(deployment(2)), "--dry-run=server")).To(
			ConsistOf(short(p.name, "the rollout will be stuck, short of pods 1", "deployment")))
		waiting := strings.Replace(another(deployment(2)), "maxUnavailable: 0", "maxUnavailable: 1", 1)
		Expect(p.applies(ctx, waiting)).To(
			ConsistOf(short(p.name, "the rollout will wait for room between its steps, because its whole surge is short of pods 1", "deployment")))
		Eventually(ctx, func(ctx context.Context) int32 { return upToDate(ctx, p) }).Should(BeEquivalentTo(2))
	})

	It("tells the worst of several quotas first, and each at once", func(ctx SpecContext) {
		p := newPlace(ctx, "several", 5, "pods", "8")
		wide := builders.Quota("several-wide").LabelIn("preflight", p.name).Hard("requests.cpu", "700m").Obj()
		off := builders.Quota("several-off").LabelIn("preflight", p.name).Hard("pods", "6").Obj()
		off.Spec.Preflight = quotav1.PreflightOff
		for _, quota := range []*quotav1.ClusterResourceQuota{wide, off} {
			Expect(api.Create(ctx, quota)).To(Succeed())
			suite.WaitUntilEnforced(ctx, api, quota.Name)
		}
		Expect(p.applies(ctx, deployment(6))).To(Equal([]string{
			"quota several-wide: 2 of 6 pods fit now, short of requests.cpu 400m; see kubectl crq why deployment/web -n several",
			"quota several: 3 of 6 pods fit now, short of pods 3; see kubectl crq why deployment/web -n several",
		}))
	})

	It("isn't asked about an update that leaves the spec, nor about what a controller makes of it", func(ctx SpecContext) {
		p := newPlace(ctx, "unasked", 0, "pods", "8")
		before := asked(ctx)
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		Expect(warnings(p.kubectl(ctx, "", "label", "deployment/web", "a=b"))).To(BeEmpty())
		Expect(warnings(p.kubectl(ctx, "", "create", "job", "run", "--image=web"))).To(BeEmpty())
		p.has(ctx, 3)
		Expect(asked(ctx)-before).To(BeEquivalentTo(2), "the Deployment and the Job, each once")
	})

	It("records one event on the workload, and none of a dry run", func(ctx SpecContext) {
		p := newPlace(ctx, "told", 5, "pods", "8")
		Expect(p.applies(ctx, deployment(6), "--dry-run=server")).To(HaveLen(1))
		Consistently(ctx, p.told, "500ms").Should(BeEmpty())
		for replicas := 8; replicas > 5; replicas-- {
			Expect(p.applies(ctx, deployment(replicas))).To(HaveLen(1))
			// If the controller writes meanwhile, the API server asks twice, and may be told of other numbers.
			p.observed(ctx, "deployment/web", 3)
		}
		Eventually(ctx, p.told).Should(ConsistOf("Warning Deployment web: " +
			short(p.name, "3 of 8 pods fit now, short of pods 5", "deployment")))
		Consistently(ctx, p.told, "500ms").Should(HaveLen(1))
		Expect(p.kubectl(ctx, "", "describe", "deployment/web").Stdout).To(ContainSubstring("QuotaShort"))
	})
})

// told are the events QuotaShort of the namespace.
func (p place) told(ctx context.Context) ([]string, error) {
	list := &eventsv1.EventList{}
	err := api.List(ctx, list, client.InNamespace(p.name))
	var told []string
	for _, event := range list.Items {
		if event.Reason == quotav1.ReasonQuotaShort {
			told = append(told, fmt.Sprintf("%s %s %s: %s", event.Type, event.Regarding.Kind, event.Regarding.Name, event.Note))
		}
	}
	return told, err
}

func upToDate(ctx context.Context, p place) int32 {
	GinkgoHelper()
	is := &appsv1.Deployment{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: p.name, Name: "web"}, is)).To(Succeed())
	if is.Status.ObservedGeneration < is.Generation || is.Status.Replicas != is.Status.UpdatedReplicas {
		return 0
	}
	return is.Status.UpdatedReplicas
}

var _ = Describe("A quota with spec.preflight", func() {
	It("Deny refuses what asks for more than fits, in the same words", func(ctx SpecContext) {
		quota := quotaOf("deny", "pods", "8")
		quota.Spec.Preflight = quotav1.PreflightDeny
		p := placeUnder(ctx, quota, 5)
		const said = "3 of 8 pods fit now, short of pods 5"
		for _, args := range [][]string{{"apply", "-f", "-"}, {"apply", "-f", "-", "--dry-run=server"}} {
			result := p.kubectl(ctx, deployment(8), args...)
			Expect(result.ExitCode).To(Equal(1))
			Expect(result.Stderr).To(Equal("Error from server (Forbidden): error when creating \"STDIN\": admission webhook \"" +
				entryOf(ctx, p) + "\" denied the request: " + unmade(p.name, said) + "\n"))
		}
		Expect(p.applies(ctx, deployment(3))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 3)
		Expect(p.kubectl(ctx, "", "scale", "deployment/web", "--replicas=8").Stderr).To(
			HaveSuffix("denied the request: " + short(p.name, said, "deployment") + "\n"))
		Expect(p.kubectl(ctx, autoscaler(8), "apply", "-f", "-").Stderr).To(ContainSubstring("maxReplicas 8: 3 fit now, short of pods 5"))
		Consistently(ctx, p.told, "300ms").Should(BeEmpty(), "what is refused isn't there")
		// It comes to be short: what asks for no more is let pass.
		Expect(api.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.other(), Name: "other-0"}},
			client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			result := p.kubectl(ctx, "", "scale", "deployment/web", "--replicas=4")
			if result.ExitCode != 0 {
				return errors.New(result.Stderr)
			}
			return nil
		}).Should(Succeed())
		p.observed(ctx, "deployment/web", 4)
	})

	It("Off says nothing, and its namespaces meet no entry", func(ctx SpecContext) {
		quota := quotaOf("off", "pods", "3")
		quota.Spec.Preflight = quotav1.PreflightOff
		p := placeUnder(ctx, quota, 0)
		before := asked(ctx)
		Expect(p.applies(ctx, deployment(8))).To(BeEmpty())
		Expect(asked(ctx)).To(Equal(before))
		p.has(ctx, 3)
	})

	It("that changes is obeyed at once", func(ctx SpecContext) {
		p := newPlace(ctx, "turned", 0, "pods", "3")
		for _, step := range []struct{ mode, want string }{
			{"Deny", "denied the request: quota turned"}, {"Off", ""}, {"Warn", "Warning: quota turned"},
		} {
			patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"preflight":%q}}`, step.mode))
			Expect(api.Patch(ctx, quotaOf(p.name), patch)).To(Succeed())
			want := ContainSubstring(step.want)
			if step.want == "" {
				want = BeEmpty()
			}
			Eventually(ctx, func(ctx context.Context) string {
				return p.kubectl(ctx, deployment(8), "apply", "-f", "-", "--dry-run=server").Stderr
			}).Should(want, step.mode)
		}
	})
})

var _ = Describe("An apply", func() {
	DescribeTable("of what can't be is answered by the API server alone", func(ctx SpecContext, name, manifest, said string) {
		p := newPlace(ctx, name, 0, "pods", "3")
		result := p.kubectl(ctx, manifest, "apply", "-f", "-", "--validate=false")
		Expect(result.Stderr).To(ContainSubstring(said))
	},
		Entry("negative replicas", "negative", deployment(-1), "must be greater than or equal to 0"),
		Entry("more replicas than there are numbers", "overflow", strings.Replace(deployment(1), "replicas: 1", "replicas: 99999999999", 1),
			"cannot unmarshal number 99999999999"),
		Entry("a surge of nothing", "surge", strings.Replace(deployment(1), "maxSurge: 1", "maxSurge: -1", 1), "must be greater than or equal to 0"),
	)

	It("of as much as can be is judged", func(ctx SpecContext) {
		p := newPlace(ctx, "huge", 0, "pods", "3", "requests.cpu", "9")
		huge := strings.ReplaceAll(deployment(2147483647), "cpu: 100m", "cpu: 9223372036854775807")
		huge = strings.Replace(huge, "maxSurge: 1", "maxSurge: 2147483647", 1)
		Expect(p.applies(ctx, huge, "--dry-run=server")).To(ConsistOf(unmade(p.name, "2147483647 pods can never fit (0 fit now), because "+
			"that is more than the limit: pods 2147483647 of 3 and 1 more")))
		cpu := newPlace(ctx, "huge-cpu", 0, "requests.cpu", "9")
		Expect(cpu.applies(ctx, huge, "--dry-run=server")).To(ConsistOf(unmade(cpu.name, "2147483647 pods can never fit (0 fit now), because "+
			"that is more than the limit: requests.cpu 19807040619342712359383728129 of 9")))
		unknown := strings.Replace(deployment(4), "spec:", "unknown: {a: [1]}\nspec:", 1)
		Expect(p.applies(ctx, unknown, "--validate=false", "--dry-run=server")).To(ContainElement(ContainSubstring("4 pods can never fit")))
	})

	It("goes through at once without the operator", func(ctx SpecContext) {
		p := newPlace(ctx, "killed", 0, "pods", "3")
		Expect(p.applies(ctx, deployment(8), "--dry-run=server")).To(HaveLen(1))
		Expect(running.Kill()).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			start(ctx)
			suite.WaitUntilEnforced(ctx, api, p.name)
			Eventually(ctx, func(ctx context.Context) []string {
				return p.applies(ctx, strings.ReplaceAll(deployment(8), "web", "again"), "--dry-run=server")
			}).Should(HaveLen(1))
		})
		began := time.Now()
		Expect(api.Create(ctx, builders.Deployment(p.name, "web", 8))).To(Succeed())
		took := time.Since(began)
		AddReportEntry("an apply without the operator took", took.String())
		Expect(took).To(BeNumerically("<", time.Second))
		Expect(api.Create(ctx, builders.Pod(p.name, "pod").Obj())).To(Satisfy(apierrors.IsInternalError), "pods are limited as before")
		scaled := builders.Deployment(p.name, "web", 8)
		Expect(api.Patch(ctx, scaled, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":9}}`)))).To(Succeed())
		Expect(ptr.Deref(scaled.Spec.Replicas, 0)).To(BeEquivalentTo(9))
	})
})
