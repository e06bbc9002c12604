// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Limit is a name that a quota can limit.
type Limit struct {
	Name corev1.ResourceName
	// Unit is the use of one object, as it is written in messages; Double is twice as much.
	Unit, Double string
	// Object makes an object that uses one unit.
	Object func(namespace, name string) client.Object
	// Since is the first version of Kubernetes that has it; empty for all.
	Since string
}

// Limits has a row for each name in the tables of docs/administrator.md, and for counts of several kinds.
func Limits() []Limit {
	hugePages := pod(func(p *PodBuilder) *PodBuilder {
		return p.Limit("hugepages-2Mi", "4Mi").Request("hugepages-2Mi", "4Mi").Request("memory", "64Mi")
	})
	devices := func(namespace, name string) client.Object {
		return DeviceClaim(namespace, name).Exactly("fpga", 3).Obj()
	}
	const devicesSince = "1.34"
	return []Limit{
		// Compute.
		{"cpu", "250m", "500m", requesting("cpu", "250m"), ""},
		{"requests.cpu", "250m", "500m", requesting("cpu", "250m"), ""},
		{"limits.cpu", "1", "2", limitedTo("cpu", "1"), ""},
		{"memory", "64Mi", "128Mi", requesting("memory", "64Mi"), ""},
		{"requests.memory", "64Mi", "128Mi", requesting("memory", "64Mi"), ""},
		{"limits.memory", "64Mi", "128Mi", limitedTo("memory", "64Mi"), ""},
		{"hugepages-2Mi", "4Mi", "8Mi", hugePages, ""},
		{"requests.hugepages-2Mi", "4Mi", "8Mi", hugePages, ""},
		{"requests.vndr.example/gpu", "2", "4", limitedTo("vndr.example/gpu", "2"), ""},

		// Storage.
		{"requests.storage", "1Gi", "2Gi", volumes, ""},
		{"persistentvolumeclaims", "1", "2", volumes, ""},
		{"gold.storageclass.storage.k8s.io/requests.storage", "5Gi", "10Gi", gold, ""},
		{"gold.storageclass.storage.k8s.io/persistentvolumeclaims", "1", "2", gold, ""},
		{"ephemeral-storage", "1Gi", "2Gi", requesting("ephemeral-storage", "1Gi"), ""},
		{"requests.ephemeral-storage", "1Gi", "2Gi", requesting("ephemeral-storage", "1Gi"), ""},
		{"limits.ephemeral-storage", "1Gi", "2Gi", limitedTo("ephemeral-storage", "1Gi"), ""},

		// Counts that have a name of their own.
		{"configmaps", "1", "2", of(ConfigMap), ""},
		{"pods", "1", "2", requesting("cpu", "1m"), ""},
		{"replicationcontrollers", "1", "2", of(ReplicationController), ""},
		{"resourcequotas", "1", "2", of(ResourceQuota), ""},
		{"services", "1", "2", serviceOf(corev1.ServiceTypeClusterIP), ""},
		{"services.loadbalancers", "1", "2", serviceOf(corev1.ServiceTypeLoadBalancer, 80, 443), ""},
		{"services.nodeports", "2", "4", serviceOf(corev1.ServiceTypeNodePort, 80, 443), ""},
		{"secrets", "1", "2", of(Secret), ""},

		// Counts of any resource.
		{"count/pods", "1", "2", requesting("cpu", "1m"), ""},
		{"count/persistentvolumeclaims", "1", "2", volumes, ""},
		{"count/services", "1", "2", serviceOf(corev1.ServiceTypeClusterIP), ""},
		{"count/secrets", "1", "2", of(Secret), ""},
		{"count/configmaps", "1", "2", of(ConfigMap), ""},
		{"count/replicationcontrollers", "1", "2", of(ReplicationController), ""},
		{"count/resourcequotas", "1", "2", of(ResourceQuota), ""},
		{"count/podtemplates", "1", "2", of(PodTemplate), ""},
		{"count/deployments.apps", "1", "2", func(namespace, name string) client.Object { return Deployment(namespace, name, 0) }, ""},
		{"count/replicasets.apps", "1", "2", of(ReplicaSet), ""},
		{"count/statefulsets.apps", "1", "2", of(StatefulSet), ""},
		{"count/jobs.batch", "1", "2", of(Job), ""},
		{"count/cronjobs.batch", "1", "2", of(CronJob), ""},
		{"count/leases.coordination.k8s.io", "1", "2", of(Lease), ""},
		{"count/networkpolicies.networking.k8s.io", "1", "2", of(NetworkPolicy), ""},
		{"count/roles.rbac.authorization.k8s.io", "1", "2", of(Role), ""},
		{"count/widgets.example.com", "1", "2", func(namespace, name string) client.Object {
			return Custom(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, namespace, name)
		}, ""},

		// Devices.
		{"count/resourceclaims.resource.k8s.io", "1", "2", devices, devicesSince},
		{"fpga.deviceclass.resource.k8s.io/devices", "3", "6", devices, devicesSince},
		{"requests.deviceclass.resource.kubernetes.io/fpga", "3", "6", devices, devicesSince},
	}
}

// of turns the maker of an object of one type into that of any.
func of[T client.Object](maker func(namespace, name string) T) func(namespace, name string) client.Object {
	return func(namespace, name string) client.Object { return maker(namespace, name) }
}

func pod(build func(*PodBuilder) *PodBuilder) func(namespace, name string) client.Object {
	return func(namespace, name string) client.Object { return build(Pod(namespace, name)).Obj() }
}

func requesting(name corev1.ResourceName, quantity string) func(namespace, name string) client.Object {
	return pod(func(p *PodBuilder) *PodBuilder { return p.Request(name, quantity) })
}

func limitedTo(name corev1.ResourceName, quantity string) func(namespace, name string) client.Object {
	return pod(func(p *PodBuilder) *PodBuilder { return p.Limit(name, quantity).Request(name, quantity) })
}

func volumes(namespace, name string) client.Object { return VolumeClaim(namespace, name).Obj() }

func gold(namespace, name string) client.Object {
	return VolumeClaim(namespace, name).StorageClass("gold").Size("5Gi").Obj()
}

func serviceOf(kind corev1.ServiceType, ports ...int32) func(namespace, name string) client.Object {
	return func(namespace, name string) client.Object {
		if len(ports) == 0 {
			return Service(namespace, name).Obj()
		}
		return Service(namespace, name).Type(kind, ports...).Obj()
	}
}
