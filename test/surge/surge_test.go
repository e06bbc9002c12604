// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package surge

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// stays is for how long nothing must happen that could.
const stays = 5 * time.Second

// stuck reports that a rollout gets no pod.
func (p place) stuck(ctx SpecContext, name string) {
	GinkgoHelper()
	Eventually(ctx, func() bool {
		one := p.read(ctx, name)
		return one.Status.ObservedGeneration == one.Generation
	}).Should(BeTrue())
	Consistently(ctx, func() int32 { return p.read(ctx, name).Status.UpdatedReplicas }).WithTimeout(stays).Should(BeZero())
}

var _ = Describe("A rollout in a full quota", func() {
	It("shares surge with nine others, and takes no more", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("shared").Hard("pods", "10").Surge("pods", "3"))
		suite.Kubelet(ctx, cluster, p.name)
		for _, name := range names(10) {
			Expect(admin.Create(ctx, p.deployment(name, 1))).To(Succeed())
		}
		for _, name := range names(10) {
			Eventually(ctx, func() bool { return p.isRolled(ctx, name) }).Should(BeTrue(), name)
		}
		seen := p.watches(ctx)
		for _, name := range names(10) {
			p.rolls(ctx, name)
		}
		for _, name := range names(10) {
			Eventually(ctx, func() bool { return p.isRolled(ctx, name) }).WithTimeout(rolled).Should(BeTrue(), name)
		}
		Expect(seen.ever()).To(BeNumerically(">", 10))
		Expect(seen.ever()).To(BeNumerically("<=", 13))
		Eventually(ctx, func() string { return p.exceeded(ctx) }).Should(HavePrefix("WithinLimits"))
		status := p.quota(ctx).Status
		Expect(status.Surge.Workloads).To(BeEmpty())
		Expect(status.Peaks[0].Month.Amount.Value()).To(BeEquivalentTo(10))
		Expect(status.Peaks[0].Surge.Amount.Value()).To(And(BeNumerically(">", 0), BeNumerically("<=", 3)))
	})

	It("is stuck without surge, and under ResourceQuota", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("without").Hard("pods", "1"))
		suite.Kubelet(ctx, cluster, p.name)
		p.runs(ctx, p.deployment("web", 1))
		p.rolls(ctx, "web")
		p.stuck(ctx, "web")

		native := place{name: "native"}
		Expect(admin.Create(ctx, builders.Namespace(native.name).Obj())).To(Succeed())
		quota := builders.ResourceQuota(native.name, "quota")
		quota.Spec.Hard = builders.Quota("").Hard("pods", "1").Obj().Spec.Quota.Hard
		Expect(admin.Create(ctx, quota)).To(Succeed())
		suite.Kubelet(ctx, cluster, native.name)
		native.runs(ctx, native.deployment("web", 1))
		native.rolls(ctx, "web")
		native.stuck(ctx, "web")
	})

	It("that never ends holds surge, and people are told", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("held").Hard("pods", "2").Surge("pods", "1"))
		stop := suite.Kubelet(ctx, cluster, p.name)
		p.runs(ctx, p.deployment("broken", 1), p.deployment("fine", 1))
		stop() // the image of the new pod never starts
		p.rolls(ctx, "broken")
		Eventually(ctx, func() int32 { return p.read(ctx, "broken").Status.UpdatedReplicas }).Should(BeEquivalentTo(1))
		Eventually(ctx, func() string { return p.exceeded(ctx) }).Should(And(
			HavePrefix("Surging: pods: used 3, hard 2; "), ContainSubstring("Deployment held/broken since ")))
		status := p.quota(ctx).Status
		Expect(status.Levels).To(HaveKeyWithValue(corev1.ResourcePods, BeEquivalentTo("LimitReached")))
		Expect(status.Surge.Used.Pods().Value()).To(BeEquivalentTo(1))
		Expect(status.Surge.Workloads).To(HaveLen(1))

		Eventually(ctx, p.figures).Should(Equal(map[string]float64{
			"sharedquota_quota_surge":                           1,
			"sharedquota_quota_surging_since_timestamp_seconds": float64(status.Surge.Workloads[0].Since.Unix()),
		}))
		Expect(looked(ctx, "replaces")).To(BeNumerically(">=", 1))

		By("refusing everything else, and why")
		p.rolls(ctx, "fine")
		Eventually(ctx, p.refusals).Should(ContainElement(ContainSubstring(
			"exceeded quota: held, requested: pods=1, used: pods=3, limited: pods=2 " +
				"(this replaces another pod, and doesn't fit in the surge for that either, which is pods=1")))
		Expect(admin.Create(ctx, builders.Pod(p.name, "mine").Obj())).To(MatchError(And(
			ContainSubstring("used: pods=3, limited: pods=2"), Not(ContainSubstring("replaces")))))

		By("granting it to the next one as soon as the rollout is undone")
		suite.Kubelet(ctx, cluster, p.name)
		Expect(admin.Patch(ctx, builders.Deployment(p.name, "broken", 0), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"template":{"metadata":{"annotations":{"restarted":null}}}}}`)))).To(Succeed())
		Eventually(ctx, func() bool { return p.isRolled(ctx, "fine") }).WithTimeout(rolled).Should(BeTrue())
	})
})

// refusals returns the messages of events about pods that couldn't be created.
func (p place) refusals(ctx context.Context) (messages []string, err error) {
	events := &corev1.EventList{}
	if err := admin.List(ctx, events, client.InNamespace(p.name)); err != nil {
		return nil, err
	}
	for i := range events.Items {
		if events.Items[i].Reason == "FailedCreate" {
			messages = append(messages, events.Items[i].Message)
		}
	}
	return messages, nil
}

var _ = Describe("Surge", func() {
	It("is no room for a Deployment that is scaled up, also while it rolls", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("scaled").Hard("pods", "2").Surge("pods", "2"))
		p.runsUnready(ctx, p.deployment("web", 2))
		Expect(admin.Patch(ctx, builders.Deployment(p.name, "web", 0), client.RawPatch("application/merge-patch+json",
			[]byte(`{"spec":{"replicas":4,"template":{"metadata":{"annotations":{"restarted":"yes"}}}}}`)))).To(Succeed())
		Eventually(ctx, p.refusals).ShouldNot(BeEmpty())
		Consistently(ctx, p.pods).WithTimeout(stays).Should(BeNumerically("<=", 2))
	})

	It("is no room for pods that somebody makes for a rollout", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("forged").Hard("pods", "1").Surge("pods", "2"))
		p.runsUnready(ctx, p.deployment("web", 1))
		p.rolls(ctx, "web") // the new pod takes surge, and never becomes ready
		Eventually(ctx, p.pods).Should(Equal(2))
		sets := &appsv1.ReplicaSetList{}
		Expect(admin.List(ctx, sets, client.InNamespace(p.name))).To(Succeed())
		Expect(sets.Items).To(HaveLen(2))
		for i := range sets.Items {
			forged := builders.Pod(p.name, "forged").Obj()
			forged.Labels = sets.Items[i].Spec.Template.Labels
			forged.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&sets.Items[i], appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			Expect(admin.Create(ctx, forged)).To(MatchError(ContainSubstring("exceeded quota: forged")))
		}
	})

	It("is for the claims of a pod that replaces another one, too", func(ctx SpecContext) {
		const claims = corev1.ResourcePersistentVolumeClaims
		p := placeOf(ctx, builders.Quota("claimed").Hard("pods", "1").Hard(claims, "1").Surge("pods", "1").Surge(claims, "1"))
		web := p.deployment("web", 1)
		web.Spec.Template.Spec.Volumes = builders.Pod("", "").EphemeralVolume("data", "1Gi").Obj().Spec.Volumes
		p.runsUnready(ctx, web)
		p.rolls(ctx, "web")
		Eventually(ctx, p.pods).Should(Equal(2))
		Eventually(ctx, func(ctx context.Context) (int, error) {
			list := &corev1.PersistentVolumeClaimList{}
			err := admin.List(ctx, list, client.InNamespace(p.name))
			return len(list.Items), err
		}).Should(Equal(2))
		Expect(admin.Create(ctx, builders.VolumeClaim(p.name, "mine").Obj())).To(MatchError(ContainSubstring("exceeded quota: claimed")))
	})

	It("is for the pod of a Job while another of its index terminates", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("job").Hard("pods", "1").Surge("pods", "1"))
		suite.Node(ctx, admin, "node")
		job := builders.Job(p.name, "job")
		job.Spec.Suspend, job.Spec.BackoffLimit = nil, ptr.To[int32](6)
		job.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](600)
		Expect(admin.Create(ctx, job)).To(Succeed())
		Eventually(ctx, p.pods).Should(Equal(1))
		first := p.runsOnNode(ctx)
		Expect(admin.Delete(ctx, first)).To(Succeed()) // no kubelet ends it
		Eventually(ctx, p.pods).WithTimeout(rolled).Should(Equal(2))
		Eventually(ctx, func() string { return p.exceeded(ctx) }).Should(And(
			HavePrefix("Surging: pods: used 2, hard 1; "), ContainSubstring("Job job/job since ")))
		other := builders.Job(p.name, "other")
		other.Spec.Suspend = nil
		Expect(admin.Create(ctx, other)).To(Succeed())
		Consistently(ctx, p.pods).WithTimeout(stays).Should(Equal(2))
	})

	It("is no room for a pod that takes more than the one that it replaces", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("grown").Hard("requests.cpu", "1").Surge("requests.cpu", "2"))
		suite.Kubelet(ctx, cluster, p.name)
		web := p.deployment("web", 1)
		web.Spec.Template.Spec.Containers[0].Resources.Requests = builders.Quota("").Hard("cpu", "600m").Obj().Spec.Quota.Hard
		p.runs(ctx, web)
		requests := func(cpu string) {
			Expect(admin.Patch(ctx, builders.Deployment(p.name, "web", 0), client.RawPatch("application/strategic-merge-patch+json", []byte(
				`{"spec":{"template":{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"`+cpu+`"}}}]}}}}`)))).To(Succeed())
		}
		requests("700m")
		Eventually(ctx, p.refusals).Should(ContainElement(ContainSubstring(
			"exceeded quota: grown, requested: requests.cpu=700m, used: requests.cpu=600m, limited: requests.cpu=1 " +
				"(the pod takes more than the one that it replaces, or has other claims, so it gets no surge: ")))
		requests("500m")
		Eventually(ctx, func() bool { return p.isRolled(ctx, "web") }).WithTimeout(rolled).Should(BeTrue())
	})

	It("is for the pod of a DaemonSet beside the one on its node that it replaces", func(ctx SpecContext) {
		p := placeOf(ctx, builders.Quota("daemon").Hard("pods", "1").Surge("pods", "1"))
		suite.Node(ctx, admin, "node")
		p.daemon(ctx)
		Eventually(ctx, p.pods).WithTimeout(rolled).Should(Equal(2))
		Eventually(ctx, func() string { return p.exceeded(ctx) }).Should(ContainSubstring("DaemonSet daemon/agent since "))
	})
})
