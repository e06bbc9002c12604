// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A pod", func() {
	DescribeTable("must say what it takes of what is limited",
		func(ctx SpecContext, limited corev1.ResourceName) {
			team := newTeam()
			quota := enforce(ctx, team.quota().Hard(limited, "10"))
			Expect(api.Create(ctx, builders.Pod(team.namespace(ctx), "silent").Obj())).To(
				BeRefused("failed quota: " + quota.Name + ": must specify " + string(limited) + " for: app"))
			eventuallyUses(ctx, quota, string(limited)+"=0")
		},
		func(limited corev1.ResourceName) string { return string(limited) },
		Entry(nil, corev1.ResourceCPU),
		Entry(nil, corev1.ResourceMemory),
		Entry(nil, corev1.ResourceRequestsCPU),
		Entry(nil, corev1.ResourceRequestsMemory),
		Entry(nil, corev1.ResourceLimitsCPU),
		Entry(nil, corev1.ResourceLimitsMemory),
	)

	It("is told everything that it fails to say, for each container", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("limits.cpu", "10").Hard("requests.memory", "1Gi"))
		Expect(api.Create(ctx, builders.Pod(team.namespace(ctx), "silent").InitContainer("cpu", "1").Obj())).To(BeRefused(
			"failed quota: " + quota.Name + ": must specify limits.cpu for: app,init; requests.memory for: app,init"))
	})

	It("needs no limit on ephemeral storage, and is charged none", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("requests.ephemeral-storage", "1Gi"))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "silent").Obj())
		eventuallyUses(ctx, quota, "requests.ephemeral-storage=0")
	})

	DescribeTable("costs what it takes at its most demanding",
		func(ctx SpecContext, cost string, build func(*builders.PodBuilder) *builders.PodBuilder) {
			team := newTeam()
			quota := enforce(ctx, team.quota().Hard("requests.cpu", cost))
			namespace := team.namespace(ctx)
			mustCreate(ctx, build(builders.Pod(namespace, "p1").Request("cpu", "500m")).Obj())
			eventuallyUses(ctx, quota, "requests.cpu="+cost)
			Expect(api.Create(ctx, build(builders.Pod(namespace, "p2").Request("cpu", "500m")).Obj())).To(
				BeRefused(exceeded(quota.Name, "requests.cpu", cost, cost, cost)))
		},
		Entry("with an init container that takes more", "2", func(pod *builders.PodBuilder) *builders.PodBuilder {
			return pod.InitContainer("cpu", "2")
		}),
		Entry("with an init container that takes less", "500m", func(pod *builders.PodBuilder) *builders.PodBuilder {
			return pod.InitContainer("cpu", "100m")
		}),
		Entry("with a sidecar", "700m", func(pod *builders.PodBuilder) *builders.PodBuilder {
			return pod.Sidecar("cpu", "200m")
		}),
		Entry("with resources of the pod as a whole", suite.Since(podLevelSince), "900m", func(pod *builders.PodBuilder) *builders.PodBuilder {
			return pod.PodLevelRequest("cpu", "900m")
		}),
		Entry("with the overhead of its runtime class", "750m", func(pod *builders.PodBuilder) *builders.PodBuilder {
			return pod.RuntimeClass("heavy")
		}),
	)

	It("may leave it to a LimitRange to say what it takes", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("requests.cpu", "500m"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.LimitRange(namespace, "defaults", corev1.ResourceList{"cpu": resource.MustParse("300m")}))
		// Defaults apply once the API server's cache has them.
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(namespace, "p1").Obj())
		}).Should(Succeed())
		eventuallyUses(ctx, quota, "requests.cpu=300m")
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(
			BeRefused(exceeded(quota.Name, "requests.cpu", "300m", "300m", "500m")))
	})

	It("stops counting when it has ended, but for its existence", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1").Hard("requests.cpu", "1").Hard("count/pods", "2"))
		namespace := team.namespace(ctx)
		pod := func(name string) *corev1.Pod { return builders.Pod(namespace, name).Request("cpu", "1").Obj() }

		succeeded := mustCreate(ctx, pod("succeeded"))
		eventuallyUses(ctx, quota, "count/pods=1,pods=1,requests.cpu=1")
		setPhase(ctx, succeeded, corev1.PodSucceeded)
		eventuallyUses(ctx, quota, "count/pods=1,pods=0,requests.cpu=0")

		failed := mustCreate(ctx, pod("failed"))
		setPhase(ctx, failed, corev1.PodFailed)
		eventuallyUses(ctx, quota, "count/pods=2,pods=0,requests.cpu=0")
		Expect(api.Create(ctx, pod("third"))).To(BeRefused(exceeded(quota.Name, "count/pods", "1", "2", "2")))

		mustDelete(ctx, failed)
		eventuallyUses(ctx, quota, "count/pods=1,pods=0,requests.cpu=0")
	})

	It("stops counting once its grace period is over, though its node doesn't let it go", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		stuck := mustCreate(ctx, builders.Pod(namespace, "stuck").OnNode("silent-node", 1).Obj())
		eventuallyUses(ctx, quota, "pods=1")

		Expect(api.Delete(ctx, stuck)).To(Succeed())
		eventuallyUses(ctx, quota, "pods=0")
		Expect(api.Get(ctx, client.ObjectKeyFromObject(stuck), stuck)).To(Succeed(), "the pod is still there")
		mustCreate(ctx, builders.Pod(namespace, "next").Obj())
	})

	It("is charged what it grows by when it is resized, up to the limit", suite.Since(resizeSince), func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("requests.cpu", "1").Hard("pods", "1"))
		pod := mustCreate(ctx, builders.Pod(team.namespace(ctx), "growing").Request("cpu", "200m").Obj())
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=200m")

		Expect(resize(ctx, pod, "900m")).To(Succeed())
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=900m")
		Expect(resize(ctx, pod, "1200m")).To(BeRefused(exceeded(quota.Name, "requests.cpu", "300m", "900m", "1")))
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=900m")

		Expect(resize(ctx, pod, "300m")).To(Succeed())
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=300m")
	})
})

var _ = Describe("A volume claim", func() {
	It("is charged what it is expanded by, up to the limit", func(ctx SpecContext) {
		team := newTeam()
		const ofGold = "gold.storageclass.storage.k8s.io/requests.storage"
		quota := enforce(ctx, team.quota().Hard("requests.storage", "4Gi").Hard(ofGold, "3Gi"))
		claim := mustCreate(ctx, builders.VolumeClaim(team.namespace(ctx), "data").StorageClass("gold").Obj())
		eventuallyUses(ctx, quota, ofGold+"=1Gi,requests.storage=1Gi")
		bind(ctx, claim)

		Expect(expand(ctx, claim, "3Gi")).To(Succeed())
		eventuallyUses(ctx, quota, ofGold+"=3Gi,requests.storage=3Gi")
		Expect(expand(ctx, claim, "4Gi")).To(BeRefused(exceeded(quota.Name, ofGold, "1Gi", "3Gi", "3Gi")))
		eventuallyUses(ctx, quota, ofGold+"=3Gi,requests.storage=3Gi")
	})

	It("of another storage class costs the class nothing", func(ctx SpecContext) {
		team := newTeam()
		const ofGold = "gold.storageclass.storage.k8s.io/persistentvolumeclaims"
		quota := enforce(ctx, team.quota().Hard(ofGold, "0"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.VolumeClaim(namespace, "plain").Obj())
		Expect(api.Create(ctx, builders.VolumeClaim(namespace, "golden").StorageClass("gold").Obj())).To(
			BeRefused(exceeded(quota.Name, ofGold, "1", "0", "0")))
		eventuallyUses(ctx, quota, ofGold+"=0")
	})
})

var _ = Describe("A service", func() {
	It("is charged when it becomes a load balancer, and given back when it no longer is", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("services.loadbalancers", "1").Hard("services.nodeports", "3"))
		namespace := team.namespace(ctx)
		shop := mustCreate(ctx, builders.Service(namespace, "shop").Type(corev1.ServiceTypeClusterIP, 80).Obj())
		blog := mustCreate(ctx, builders.Service(namespace, "blog").Type(corev1.ServiceTypeClusterIP, 80, 443).Obj())
		eventuallyUses(ctx, quota, "services.loadbalancers=0,services.nodeports=0")

		Expect(becomes(ctx, shop, corev1.ServiceTypeLoadBalancer)).To(Succeed())
		eventuallyUses(ctx, quota, "services.loadbalancers=1,services.nodeports=1")
		Expect(becomes(ctx, blog, corev1.ServiceTypeLoadBalancer)).To(
			BeRefused(exceeded(quota.Name, "services.loadbalancers", "1", "1", "1")))
		Expect(becomes(ctx, blog, corev1.ServiceTypeNodePort)).To(Succeed())
		eventuallyUses(ctx, quota, "services.loadbalancers=1,services.nodeports=3")
		Expect(api.Create(ctx, builders.Service(namespace, "wiki").Type(corev1.ServiceTypeNodePort, 80).Obj())).To(
			BeRefused(exceeded(quota.Name, "services.nodeports", "1", "3", "3")))

		Expect(becomes(ctx, shop, corev1.ServiceTypeClusterIP)).To(Succeed())
		eventuallyUses(ctx, quota, "services.loadbalancers=0,services.nodeports=2")
	})

	It("that is a load balancer without node ports is charged none", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("services.loadbalancers", "1").Hard("services.nodeports", "0"))
		mustCreate(ctx, builders.Service(team.namespace(ctx), "shop").
			Type(corev1.ServiceTypeLoadBalancer, 80).WithoutNodePorts().Obj())
		eventuallyUses(ctx, quota, "services.loadbalancers=1,services.nodeports=0")
	})

	It("can still be changed in other ways when everything is used up", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("services", "1").Hard("services.loadbalancers", "1"))
		shop := mustCreate(ctx, builders.Service(team.namespace(ctx), "shop").Type(corev1.ServiceTypeLoadBalancer, 80).Obj())
		eventuallyUses(ctx, quota, "services=1,services.loadbalancers=1")
		shop.Labels = map[string]string{"changed": "yes"}
		Expect(api.Update(ctx, shop)).To(Succeed())
		eventuallyUses(ctx, quota, "services=1,services.loadbalancers=1")
	})
})

var _ = Describe("A device claim", suite.Since(devicesSince), func() {
	It("that takes what is available first is charged the worst case of each class", func(ctx SpecContext) {
		team := newTeam()
		const devices = ".deviceclass.resource.k8s.io/devices"
		quota := enforce(ctx, team.quota().Hard("fpga"+devices, "5").Hard("gpu"+devices, "5"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.DeviceClaim(namespace, "first").FirstAvailable(3, "fpga", "gpu").Obj())
		eventuallyUses(ctx, quota, "fpga"+devices+"=3,gpu"+devices+"=3")
		Expect(api.Create(ctx, builders.DeviceClaim(namespace, "second").FirstAvailable(3, "gpu").Obj())).To(
			BeRefused(exceeded(quota.Name, "gpu"+devices, "3", "3", "5")))
	})

	It("is charged like a pod that asks for the same devices as an extended resource", suite.Since(offeredSince), func(ctx SpecContext) {
		const devices = "requests.dra.example/gpu"
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard(devices, "4"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.DeviceClaim(namespace, "claim").Exactly("gpu", 2).Obj())
		eventuallyUses(ctx, quota, devices+"=2")
		mustCreate(ctx, builders.Pod(namespace, "pod").Limit("dra.example/gpu", "2").Obj())
		eventuallyUses(ctx, quota, devices+"=4")
		Expect(api.Create(ctx, builders.Pod(namespace, "pod2").Limit("dra.example/gpu", "1").Obj())).To(
			BeRefused(exceeded(quota.Name, devices, "1", "4", "4")))
		Expect(api.Create(ctx, builders.DeviceClaim(namespace, "claim2").Exactly("gpu", 1).Obj())).To(
			BeRefused(exceeded(quota.Name, devices, "1", "4", "4")))
	})

	It("uses what its class offers, also if the class offers it later", suite.Since(offeredSince), func(ctx SpecContext) {
		const devices = "requests.dra.example/late"
		class := builders.DeviceClass("late")
		mustCreate(ctx, class)
		DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, class)).To(Succeed()) })
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard(devices, "4"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.DeviceClaim(namespace, "claim").Exactly("late", 2).Obj())
		eventuallyUses(ctx, quota, devices+"=0")
		for _, test := range []struct{ offers, used string }{{"dra.example/late", "2"}, {"dra.example/other", "0"}} {
			class.Spec.ExtendedResourceName = &test.offers
			Expect(api.Update(ctx, class)).To(Succeed())
			eventuallyUses(ctx, quota, devices+"="+test.used)
		}
	})
})

func setPhase(ctx context.Context, pod *corev1.Pod, phase corev1.PodPhase) {
	GinkgoHelper()
	pod.Status.Phase = phase
	Expect(api.Status().Update(ctx, pod)).To(Succeed())
}

// resize changes what the pod requests of the CPU while it runs.
func resize(ctx context.Context, pod *corev1.Pod, cpu string) error {
	wanted := pod.DeepCopy()
	wanted.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return api.SubResource("resize").Patch(ctx, wanted, client.StrategicMergeFrom(pod))
}

// bind does what a volume controller would: only a bound claim can be expanded.
func bind(ctx context.Context, claim *corev1.PersistentVolumeClaim) {
	GinkgoHelper()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.Capacity = claim.Spec.Resources.Requests
	Expect(api.Status().Update(ctx, claim)).To(Succeed())
}

func expand(ctx context.Context, claim *corev1.PersistentVolumeClaim, size string) error {
	wanted := claim.DeepCopy()
	wanted.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	return api.Patch(ctx, wanted, client.MergeFrom(claim))
}

func becomes(ctx context.Context, service *corev1.Service, kind corev1.ServiceType) error {
	current := &corev1.Service{}
	if err := api.Get(ctx, client.ObjectKeyFromObject(service), current); err != nil {
		return err
	}
	wanted := current.DeepCopy()
	wanted.Spec.Type = kind
	return api.Patch(ctx, wanted, client.MergeFrom(current))
}
