// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// oneByOne is a Deployment whose pods go before others come.
func oneByOne(replicas int) string {
	return strings.Replace(deployment(replicas), "maxSurge: 1, maxUnavailable: 0", "maxSurge: 0, maxUnavailable: 1", 1)
}

// denying is a place whose quota refuses what doesn't fit.
func denying(ctx SpecContext, name string, others int, hard ...string) place {
	GinkgoHelper()
	quota := quotaOf(name, hard...)
	quota.Spec.Preflight = quotav1.PreflightDeny
	return placeUnder(ctx, quota, others)
}

var _ = Describe("A rollout", func() {
	It("of pods that state limits alone is let pass by a full quota that denies", func(ctx SpecContext) {
		p := denying(ctx, "restarted", 2, "requests.cpu", "400m")
		suite.Kubelet(ctx, cluster, p.name)
		limited := strings.Replace(oneByOne(2), "requests:", "limits:", 1)
		Expect(p.applies(ctx, limited)).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		Expect(p.applies(ctx, another(limited))).To(BeEmpty())
		Eventually(ctx, func() int32 { return upToDate(ctx, p) }).Should(BeEquivalentTo(2))
	})

	It("is said to be stuck, and is, in a quota over its limit", func(ctx SpecContext) {
		p := newPlace(ctx, "lowered", 2, "pods", "6")
		suite.Kubelet(ctx, cluster, p.name)
		Expect(p.applies(ctx, oneByOne(4))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 4)
		Expect(api.Patch(ctx, quotaOf(p.name), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"quota":{"hard":{"pods":"5"}}}}`)))).To(Succeed())
		stuck := ConsistOf(short(p.name, "the rollout will be stuck, short of pods 1", "deployment"))
		Eventually(ctx, func() []string { return p.applies(ctx, another(oneByOne(4)), "--dry-run=server") }).Should(stuck)
		Expect(p.applies(ctx, another(oneByOne(4)))).To(stuck)
		p.has(ctx, 3)
	})

	It("is said to use surge in a full quota, and goes through", func(ctx SpecContext) {
		p := placeUnder(ctx, surgingQuota("surging", "3", "2"), 1)
		suite.Kubelet(ctx, cluster, p.name)
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		uses := ConsistOf(short(p.name, "the rollout fits, and will use this part of the surge that is left: pods 1 of 2", "deployment"))
		Expect(p.applies(ctx, another(deployment(2)))).To(uses)
		Eventually(ctx, func() int32 { return upToDate(ctx, p) }).Should(BeEquivalentTo(2))

		By("saying that more pods take none")
		Expect(p.applies(ctx, strings.Replace(another(deployment(3)), "image: web:2", "image: web:3", 1))).To(ConsistOf(
			short(p.name, "2 of 3 pods fit now, short of pods 1", "deployment")))
		p.has(ctx, 2)
	})

	It("is said to be stuck while others hold the surge, and is", func(ctx SpecContext) {
		p := placeUnder(ctx, surgingQuota("held", "3", "1"), 0)
		suite.Kubelet(ctx, cluster, p.name)
		stop := suite.Kubelet(ctx, cluster, p.other())
		other := place{p.other()}
		Expect(other.applies(ctx, deployment(1))).To(BeEmpty())
		Expect(other.kubectl(ctx, "", "wait", "--for=condition=Available", "deployment/web").ExitCode).To(BeZero())
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		stop() // the new pod of the other one never becomes ready
		other.applies(ctx, another(deployment(1)))
		Eventually(ctx, func(ctx context.Context) (int64, error) {
			view := &quotav1.LocalResourceQuota{}
			err := api.Get(ctx, client.ObjectKey{Namespace: p.name, Name: p.name}, view)
			if err != nil || view.Status.Surge == nil {
				return 0, err
			}
			return view.Status.Surge.Used.Pods().Value(), nil
		}).Should(BeEquivalentTo(1))
		stuck := ConsistOf(short(p.name, "the rollout will be stuck until others give the quota's surge back, short of pods 1", "deployment"))
		Expect(p.applies(ctx, another(deployment(2)))).To(stuck)
		p.has(ctx, 2)
		Expect(upToDate(ctx, p)).To(BeZero())
	})
})

// surgingQuota is a quota that has surge.
func surgingQuota(name, pods, surge string) *quotav1.ClusterResourceQuota {
	return builders.Quota(name).Label("preflight", name).Hard(corev1.ResourcePods, pods).Surge(corev1.ResourcePods, surge).Obj()
}

var _ = Describe("A HorizontalPodAutoscaler's controller", func() {
	It("gets the pods that fit, though the quota denies", func(ctx SpecContext) {
		p := denying(ctx, "scaling", 5, "pods", "8")
		Expect(p.applies(ctx, deployment(2))).To(BeEmpty())
		p.observed(ctx, "deployment/web", 2)
		config := rest.CopyConfig(cluster.Config())
		config.Impersonate.UserName = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
		web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "web"}}
		scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 8}}
		controller := suite.Client(config, suite.Deadline)
		Expect(controller.SubResource("scale").Update(ctx, web, client.WithSubResourceBody(scale))).To(Succeed())
		p.has(ctx, 3)
		Eventually(ctx, p.told).Should(ContainElement(ContainSubstring("3 of 8 pods fit now, short of pods 5")))
		Expect(p.kubectl(ctx, "", "scale", "deployment/web", "--replicas=9").Stderr).To(ContainSubstring("denied the request"))
	})
})
