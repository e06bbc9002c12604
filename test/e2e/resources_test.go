// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// row is one row of the tables of resources that a quota can limit.
type row struct {
	resource corev1.ResourceName
	// unit is what one object uses, as it is written in messages; double is
	// twice as much.
	unit, double string
	// object makes an object that uses one unit.
	object func(namespace, name string) client.Object
}

// countsAndDenies shows that two namespaces together get two units of the
// resource and not a third, until one is given back.
func (r row) countsAndDenies(ctx SpecContext) {
	GinkgoHelper()
	team := newTeam()
	here, there := team.namespace(ctx), team.namespace(ctx)
	quota := enforce(ctx, team.quota().Hard(r.resource, r.double))
	resource := string(r.resource)

	first := mustCreate(ctx, r.object(here, "first"))
	eventuallyUses(ctx, quota, resource+"="+r.unit)
	mustCreate(ctx, r.object(there, "second"))
	eventuallyUses(ctx, quota, resource+"="+r.double)
	Expect(slice(ctx, quota, here)).To(Equal(resource + "=" + r.unit))
	Expect(slice(ctx, quota, there)).To(Equal(resource + "=" + r.unit))

	third := func(ctx context.Context) error { return api.Create(ctx, r.object(there, "third")) }
	Expect(third(ctx)).To(BeRefused(exceeded(quota.Name, resource, r.unit, r.double, r.double)))
	eventuallyUses(ctx, quota, resource+"="+r.double)

	mustDelete(ctx, first)
	eventuallyUses(ctx, quota, resource+"="+r.unit)
	Expect(third(ctx)).To(Succeed())
}

var _ = Describe("A resource that can be limited", func() {
	pod := func(build func(*builders.PodBuilder) *builders.PodBuilder) func(namespace, name string) client.Object {
		return func(namespace, name string) client.Object { return build(builders.Pod(namespace, name)).Obj() }
	}
	requesting := func(name corev1.ResourceName, quantity string) func(namespace, name string) client.Object {
		return pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.Request(name, quantity) })
	}
	limitedTo := func(name corev1.ResourceName, quantity string) func(namespace, name string) client.Object {
		return pod(func(p *builders.PodBuilder) *builders.PodBuilder { return p.Limit(name, quantity) })
	}
	hugePages := pod(func(p *builders.PodBuilder) *builders.PodBuilder {
		return p.Limit("hugepages-2Mi", "4Mi").Request("memory", "64Mi")
	})
	volumes := func(namespace, name string) client.Object { return builders.VolumeClaim(namespace, name).Obj() }
	gold := func(namespace, name string) client.Object {
		return builders.VolumeClaim(namespace, name).StorageClass("gold").Size("5Gi").Obj()
	}
	services := func(namespace, name string) client.Object { return builders.Service(namespace, name).Obj() }
	loadBalancers := func(namespace, name string) client.Object {
		return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80, 443).Obj()
	}
	nodePorts := func(namespace, name string) client.Object {
		return builders.Service(namespace, name).Type(corev1.ServiceTypeNodePort, 80, 443).Obj()
	}
	devices := func(namespace, name string) client.Object {
		return builders.DeviceClaim(namespace, name).Exactly("fpga", 3).Obj()
	}

	DescribeTable("is counted in all namespaces together, and denied beyond the limit",
		func(ctx SpecContext, r row) { r.countsAndDenies(ctx) },
		func(r row) string { return string(r.resource) },

		// Compute.
		Entry(nil, row{"cpu", "250m", "500m", requesting("cpu", "250m")}),
		Entry(nil, row{"requests.cpu", "250m", "500m", requesting("cpu", "250m")}),
		Entry(nil, row{"limits.cpu", "1", "2", limitedTo("cpu", "1")}),
		Entry(nil, row{"memory", "64Mi", "128Mi", requesting("memory", "64Mi")}),
		Entry(nil, row{"requests.memory", "64Mi", "128Mi", requesting("memory", "64Mi")}),
		Entry(nil, row{"limits.memory", "64Mi", "128Mi", limitedTo("memory", "64Mi")}),
		Entry(nil, row{"hugepages-2Mi", "4Mi", "8Mi", hugePages}),
		Entry(nil, row{"requests.hugepages-2Mi", "4Mi", "8Mi", hugePages}),
		Entry(nil, row{"requests.vndr.example/gpu", "2", "4", limitedTo("vndr.example/gpu", "2")}),

		// Storage.
		Entry(nil, row{"requests.storage", "1Gi", "2Gi", volumes}),
		Entry(nil, row{"persistentvolumeclaims", "1", "2", volumes}),
		Entry(nil, row{"gold.storageclass.storage.k8s.io/requests.storage", "5Gi", "10Gi", gold}),
		Entry(nil, row{"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "2", gold}),
		Entry(nil, row{"ephemeral-storage", "1Gi", "2Gi", requesting("ephemeral-storage", "1Gi")}),
		Entry(nil, row{"requests.ephemeral-storage", "1Gi", "2Gi", requesting("ephemeral-storage", "1Gi")}),
		Entry(nil, row{"limits.ephemeral-storage", "1Gi", "2Gi", limitedTo("ephemeral-storage", "1Gi")}),

		// Counts that have a name of their own.
		Entry(nil, row{"configmaps", "1", "2", counted(builders.ConfigMap)}),
		Entry(nil, row{"pods", "1", "2", requesting("cpu", "1m")}),
		Entry(nil, row{"replicationcontrollers", "1", "2", counted(builders.ReplicationController)}),
		Entry(nil, row{"resourcequotas", "1", "2", counted(builders.ResourceQuota)}),
		Entry(nil, row{"services", "1", "2", services}),
		Entry(nil, row{"services.loadbalancers", "1", "2", loadBalancers}),
		Entry(nil, row{"services.nodeports", "2", "4", nodePorts}),
		Entry(nil, row{"secrets", "1", "2", counted(builders.Secret)}),

		// Counts of any resource.
		Entry(nil, row{"count/pods", "1", "2", requesting("cpu", "1m")}),
		Entry(nil, row{"count/persistentvolumeclaims", "1", "2", volumes}),
		Entry(nil, row{"count/services", "1", "2", services}),
		Entry(nil, row{"count/secrets", "1", "2", counted(builders.Secret)}),
		Entry(nil, row{"count/configmaps", "1", "2", counted(builders.ConfigMap)}),
		Entry(nil, row{"count/replicationcontrollers", "1", "2", counted(builders.ReplicationController)}),
		Entry(nil, row{"count/resourcequotas", "1", "2", counted(builders.ResourceQuota)}),
		Entry(nil, row{"count/podtemplates", "1", "2", counted(builders.PodTemplate)}),
		Entry(nil, row{"count/deployments.apps", "1", "2", func(namespace, name string) client.Object {
			return builders.Deployment(namespace, name, 0)
		}}),
		Entry(nil, row{"count/replicasets.apps", "1", "2", counted(builders.ReplicaSet)}),
		Entry(nil, row{"count/statefulsets.apps", "1", "2", counted(builders.StatefulSet)}),
		Entry(nil, row{"count/jobs.batch", "1", "2", counted(builders.Job)}),
		Entry(nil, row{"count/cronjobs.batch", "1", "2", counted(builders.CronJob)}),
		Entry(nil, row{"count/leases.coordination.k8s.io", "1", "2", counted(builders.Lease)}),
		Entry(nil, row{"count/networkpolicies.networking.k8s.io", "1", "2", counted(builders.NetworkPolicy)}),
		Entry(nil, row{"count/roles.rbac.authorization.k8s.io", "1", "2", counted(builders.Role)}),
		Entry(nil, row{"count/widgets.example.com", "1", "2", func(namespace, name string) client.Object {
			return builders.Custom(widget, namespace, name)
		}}),

		// Devices.
		Entry(nil, suite.Since(devicesSince), row{"count/resourceclaims.resource.k8s.io", "1", "2", devices}),
		Entry(nil, suite.Since(devicesSince), row{"fpga.deviceclass.resource.k8s.io/devices", "3", "6", devices}),
		Entry(nil, suite.Since(devicesSince), row{"requests.deviceclass.resource.kubernetes.io/fpga", "3", "6", devices}),
	)
})

var _ = Describe("An object", func() {
	It("is counted and denied in whichever version it is created", func(ctx SpecContext) {
		const name = "count/horizontalpodautoscalers.autoscaling"
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard(name, "2"))
		namespace := team.namespace(ctx)
		old := func(name string) client.Object {
			return &autoscalingv1.HorizontalPodAutoscaler{
				ObjectMeta: builders.Meta(namespace, name),
				Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
					ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"},
					MaxReplicas:    1,
				},
			}
		}
		mustCreate(ctx, old("a"))
		mustCreate(ctx, builders.HorizontalPodAutoscaler(namespace, "b"))
		eventuallyUses(ctx, quota, name+"=2")
		full := exceeded(quota.Name, name, "1", "2", "2")
		Expect(api.Create(ctx, old("c"))).To(BeRefused(full))
		Expect(api.Create(ctx, builders.HorizontalPodAutoscaler(namespace, "c"))).To(BeRefused(full))
	})

	It("counts for as long as a finalizer keeps it", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "1"))
		namespace := team.namespace(ctx)
		kept := builders.ConfigMap(namespace, "kept")
		kept.Finalizers = []string{"example.com/wait"}
		mustCreate(ctx, kept)
		eventuallyUses(ctx, quota, "configmaps=1")
		mustDelete(ctx, kept)
		Expect(api.Create(ctx, builders.ConfigMap(namespace, "next"))).To(BeRefused(exceeded(quota.Name, "configmaps", "1", "1", "1")))

		Expect(api.Patch(ctx, kept, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		eventuallyUses(ctx, quota, "configmaps=0")
		mustCreate(ctx, builders.ConfigMap(namespace, "next"))
	})
})

// counted turns the maker of an object of one type into that of any.
func counted[T client.Object](maker func(namespace, name string) T) func(namespace, name string) client.Object {
	return func(namespace, name string) client.Object { return maker(namespace, name) }
}
