// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// A reservation is held for the UID that the webhook sees. All of it rests on
// what these specs show: that it is the UID which is persisted.
var _ = Describe("What a validating webhook sees of a creation", func() {
	generatedWidget := func(namespace string) *unstructured.Unstructured {
		object := builders.Custom(widget, namespace, "")
		object.SetGenerateName("widget-")
		return object
	}

	DescribeTable("has the UID and the name that are persisted",
		func(ctx SpecContext, create func(ctx context.Context, namespace string) client.Object) {
			team := newTeam()
			recorder := startRecorder(ctx, team)
			namespace := team.namespace(ctx)
			recorder.waitUntilAsked(ctx, namespace)

			for range 3 {
				persisted := create(ctx, namespace)
				Expect(persisted.GetUID()).NotTo(BeEmpty())
				Expect(recorder.sightings(persisted.GetName())).To(ConsistOf(
					sighting{name: persisted.GetName(), uid: persisted.GetUID()}))
			}
		},
		Entry("of a pod with a generated name", func(ctx context.Context, namespace string) client.Object {
			return mustCreate(ctx, builders.Pod(namespace, "app").Generated().Obj())
		}),
		Entry("of a pod that is applied", func(ctx context.Context, namespace string) client.Object {
			return apply(ctx, builders.Pod(namespace, unique("app")).Obj())
		}),
		Entry("of a pod with a name of its own", func(ctx context.Context, namespace string) client.Object {
			return mustCreate(ctx, builders.Pod(namespace, unique("app")).Obj())
		}),
		Entry("of a custom object with a generated name", func(ctx context.Context, namespace string) client.Object {
			return mustCreate(ctx, generatedWidget(namespace))
		}),
		Entry("of a custom object that is applied", func(ctx context.Context, namespace string) client.Object {
			return apply(ctx, builders.Custom(widget, namespace, unique("widget")))
		}),
	)

	It("is what is reserved, before anything is persisted", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "2").Hard("count/widgets.example.com", "1"))
		namespace := team.namespace(ctx)
		for _, object := range []client.Object{
			builders.Pod(namespace, "app").Generated().Obj(),
			generatedWidget(namespace),
		} {
			recorder := startRecorder(ctx, team)
			recorder.waitUntilAsked(ctx, namespace)
			recorder.hold()
			created := make(chan error, 1)
			go func() { created <- api.Create(ctx, object) }()
			held := recorder.waitUntilHolding(ctx)

			By("reading the ledger while the object is held between admission and storage")
			Eventually(ctx, func(ctx context.Context) ([]string, error) {
				ledger := &quotav1.QuotaLedger{}
				err := api.Get(ctx, client.ObjectKeyFromObject(quota), ledger)
				return ledger.Entries.Reservations, err
			}).Should(ConsistOf(And(
				HavePrefix(string(held.uid)+" "), ContainSubstring(" "+namespace+" "+held.name+" "))))

			recorder.release()
			Eventually(created).Should(Receive(BeNil()))
			Expect(sighting{name: object.GetName(), uid: object.GetUID()}).To(Equal(held))
			recorder.stop(ctx)
		}
		eventuallyUses(ctx, quota, "count/widgets.example.com=1,pods=1")
	})

	It("differs between pods that are created at once from one generated name", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "20"))
		recorder := startRecorder(ctx, team)
		namespace := team.namespace(ctx)
		recorder.waitUntilAsked(ctx, namespace)
		var pods []*corev1.Pod
		for range 20 {
			pods = append(pods, builders.Pod(namespace, "app").Generated().Obj())
		}
		for _, result := range createAtOnce(ctx, pods) {
			Expect(result.err).NotTo(HaveOccurred())
			Expect(recorder.sightings(result.pod.Name)).To(ConsistOf(sighting{name: result.pod.Name, uid: result.pod.UID}))
		}
		eventuallyUses(ctx, quota, "pods=20")
	})
})

var names int

// unique returns a name that no other call returns.
func unique(prefix string) string {
	names++
	return fmt.Sprintf("%s-%d", prefix, names)
}

// apply creates an object by server-side apply, and returns it as persisted.
func apply(ctx context.Context, object client.Object) client.Object {
	GinkgoHelper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	delete(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	wanted := &unstructured.Unstructured{Object: content}
	Expect(api.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner("e2e"))).To(Succeed())

	persisted := &metav1.PartialObjectMetadata{}
	persisted.SetGroupVersionKind(wanted.GroupVersionKind())
	Expect(api.Get(ctx, client.ObjectKeyFromObject(wanted), persisted)).To(Succeed())
	return persisted
}
