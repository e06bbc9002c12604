// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// nobodys is limited to zero by every quota here, so that a quota that is in force
// can be told from one that isn't yet.
const nobodys = "count/secrets"

// alike is a request that a ResourceQuota and a ClusterResourceQuota of the same
// limits refuse.
type alike struct {
	// hard is written as people write it.
	hard map[string]string
	// there exist in both namespaces before the request.
	there []func(namespace string) client.Object
	// refused is what is requested.
	refused func(namespace string) client.Object
	// update: the object is there, and changed.
	update bool
}

func pod(name string, requests ...string) func(string) client.Object {
	return func(namespace string) client.Object {
		built := builders.Pod(namespace, name)
		for i := 0; i < len(requests); i += 2 {
			built.Request(corev1.ResourceName(requests[i]), requests[i+1])
		}
		return built.Obj()
	}
}

func claim(name, class, storage string) func(string) client.Object {
	return func(namespace string) client.Object {
		return builders.VolumeClaim(namespace, name).StorageClass(class).Size(storage).Obj()
	}
}

func service(name string, kind corev1.ServiceType) func(string) client.Object {
	return func(namespace string) client.Object {
		return builders.Service(namespace, name).Type(kind, 80, 81).Obj()
	}
}

func deployment(name string) func(string) client.Object {
	return func(namespace string) client.Object { return builders.Deployment(namespace, name, 0) }
}

// twoContainers request nothing, but for the memory of one.
func twoContainers(namespace string) client.Object {
	built := builders.Pod(namespace, "vague").Request("memory", "1Gi").Obj()
	built.Spec.Containers = append(built.Spec.Containers, corev1.Container{Name: "helper", Image: "registry.example.com/helper"})
	return built
}

var _ = Describe("A refusal", func() {
	DescribeTable("is in the words of a ResourceQuota", func(ctx SpecContext, test alike) {
		team := newTeam()
		test.hard[nobodys] = "0"
		covered := team.namespace(ctx)
		native := mustCreate(ctx, builders.Namespace(team.nextName()).Obj()).Name
		limitNatively(ctx, native, team.name, test.hard)
		quota := limitTogether(ctx, team, test.hard)
		for _, namespace := range []string{native, covered} {
			for _, build := range test.there {
				mustCreate(ctx, build(namespace))
			}
		}
		want := wordsOf(try(ctx, test, native))
		Expect(wordsOf(try(ctx, test, covered))).To(HavePrefix(want), "what is there may be reserved")
		Eventually(ctx, func(ctx context.Context) []string { return reservations(ctx, quota) }).Should(BeEmpty())
		Expect(wordsOf(try(ctx, test, covered))).To(Equal(want), "what is there is counted")
	},
		Entry("of one resource", alike{
			hard: map[string]string{"pods": "1"}, there: []func(string) client.Object{pod("p1")}, refused: pod("p2"),
		}),
		Entry("of several, only those that are exceeded", alike{
			hard:    map[string]string{"pods": "1", "requests.cpu": "1.5", "requests.memory": "1.5Gi", "configmaps": "9"},
			there:   []func(string) client.Object{pod("p1", "cpu", "0.75", "memory", "1Gi")},
			refused: pod("p2", "cpu", "1", "memory", "100Mi"),
		}),
		Entry("with fractions", alike{
			hard:    map[string]string{"requests.cpu": "0.5", "requests.memory": "1.25Gi"},
			there:   []func(string) client.Object{pod("p1", "cpu", "0.1", "memory", "0.5Gi"), pod("p2", "cpu", "150m", "memory", "524288Ki")},
			refused: pod("p3", "cpu", "0.2505", "memory", "256.5Mi"),
		}),
		Entry("with binary and decimal units mixed", alike{
			hard:    map[string]string{"requests.memory": "2000M"},
			there:   []func(string) client.Object{pod("p1", "memory", "1Gi"), pod("p2", "memory", "500M")},
			refused: pod("p3", "memory", "1e9"),
		}),
		Entry("with what nobody writes so", alike{
			hard:    map[string]string{"requests.memory": "1e9", "requests.cpu": "2000m", "requests.ephemeral-storage": "1024Ki"},
			there:   []func(string) client.Object{pod("p1", "memory", "128974848000m", "cpu", "1000m", "ephemeral-storage", "1000Ki")},
			refused: pod("p2", "memory", "1e9", "cpu", "1100m", "ephemeral-storage", "1Mi"),
		}),
		Entry("by names, one of which begins another", alike{
			hard:    map[string]string{"services": "1", "services.nodeports": "2", "services.loadbalancers": "1", "count/services": "1"},
			there:   []func(string) client.Object{service("s1", corev1.ServiceTypeLoadBalancer)},
			refused: service("s2", corev1.ServiceTypeLoadBalancer),
		}),
		Entry("of storage, of a class and of all", alike{
			hard: map[string]string{
				"requests.storage": "2.5Gi", "gold.storageclass.storage.k8s.io/requests.storage": "2048Mi", "persistentvolumeclaims": "5",
			},
			there:   []func(string) client.Object{claim("c1", "gold", "1.5Gi")},
			refused: claim("c2", "gold", "1100Mi"),
		}),
		Entry("of a count", alike{
			hard:  map[string]string{"count/deployments.apps": "1"},
			there: []func(string) client.Object{deployment("d1")}, refused: deployment("d2"),
		}),
		Entry("of a change", alike{
			hard:    map[string]string{"services.loadbalancers": "0", "services.nodeports": "1"},
			there:   []func(string) client.Object{service("s1", corev1.ServiceTypeClusterIP)},
			refused: service("s1", corev1.ServiceTypeLoadBalancer), update: true,
		}),
		Entry("of a pod that must say more", alike{
			hard:    map[string]string{"limits.cpu": "1", "requests.memory": "4Gi", "requests.cpu": "1"},
			refused: twoContainers,
		}),
		Entry("of a pod that must say more, also where it is full", alike{
			hard:  map[string]string{"pods": "0", "limits.memory": "1Gi"},
			there: nil, refused: pod("p1"),
		}),
	)
})

// try makes the request, and returns how it was refused.
func try(ctx context.Context, test alike, namespace string) error {
	object := test.refused(namespace)
	if !test.update {
		return api.Create(ctx, object)
	}
	current, ok := object.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	Expect(api.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	return api.Patch(ctx, object, client.MergeFrom(current))
}

// prefix is what the API server says before each of the two.
var prefix = regexp.MustCompile(`^(admission webhook "objects[^"]*" denied the request: |[a-z.]+ "[^"]*" is forbidden: )`)

// wordsOf returns what is said after the prefix, which must be there.
func wordsOf(err error) string {
	GinkgoHelper()
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	Expect(prefix.MatchString(err.Error())).To(BeTrue(), "%v", err)
	return prefix.ReplaceAllString(err.Error(), "")
}

// limitNatively creates a ResourceQuota, of which nothing is used, and returns
// once it is in force.
func limitNatively(ctx context.Context, namespace, name string, hard map[string]string) {
	GinkgoHelper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	quota.Spec.Hard = corev1.ResourceList{}
	for name, quantity := range hard {
		quota.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	mustCreate(ctx, quota)
	// The part of its controller, which doesn't run here.
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	Expect(api.Status().Update(ctx, quota)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) error {
		return api.Create(ctx, builders.Secret(namespace, "probe"), client.DryRunAll)
	}).Should(MatchError(ContainSubstring("exceeded quota: " + name)))
}

// limitTogether creates a ClusterResourceQuota with limits that reach the API
// server as they are written here.
func limitTogether(ctx context.Context, team *team, hard map[string]string) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	quota := &unstructured.Unstructured{Object: map[string]any{}}
	quota.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
	quota.SetName(team.name)
	Expect(unstructured.SetNestedField(quota.Object, team.name, "spec", "selector", "labels", "matchLabels", teamLabel)).To(Succeed())
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		Expect(unstructured.SetNestedField(quota.Object, hard[name], "spec", "quota", "hard", name)).To(Succeed())
	}
	mustCreate(ctx, quota)
	DeferCleanup(deleteIfThere, quota)
	typed := &quotav1.ClusterResourceQuota{}
	Expect(api.Get(ctx, client.ObjectKey{Name: team.name}, typed)).To(Succeed())
	waitUntilEnforced(ctx, typed)
	return typed
}
