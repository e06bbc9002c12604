// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// countsAndDenies shows that two namespaces together get two units of the
// resource and not a third, until one is given back.
func countsAndDenies(ctx SpecContext, r builders.Limit) {
	GinkgoHelper()
	team := newTeam()
	here, there := team.namespace(ctx), team.namespace(ctx)
	quota := enforce(ctx, team.quota().Hard(r.Name, r.Double))
	resource := string(r.Name)

	first := mustCreate(ctx, r.Object(here, "first"))
	eventuallyUses(ctx, quota, resource+"="+r.Unit)
	mustCreate(ctx, r.Object(there, "second"))
	eventuallyUses(ctx, quota, resource+"="+r.Double)
	Expect(slice(ctx, quota, here)).To(Equal(resource + "=" + r.Unit))
	Expect(slice(ctx, quota, there)).To(Equal(resource + "=" + r.Unit))

	third := func(ctx context.Context) error { return api.Create(ctx, r.Object(there, "third")) }
	Expect(third(ctx)).To(BeRefused(exceeded(quota.Name, resource, r.Unit, r.Double, r.Double)))
	eventuallyUses(ctx, quota, resource+"="+r.Double)

	mustDelete(ctx, first)
	eventuallyUses(ctx, quota, resource+"="+r.Unit)
	Expect(third(ctx)).To(Succeed())
}

var _ = Describe("A resource that can be limited", func() {
	for _, limit := range builders.Limits() {
		It("is counted in all namespaces together, and denied beyond the limit: "+string(limit.Name),
			append(since(limit), func(ctx SpecContext) { countsAndDenies(ctx, limit) })...)
	}
})

// since leaves a spec out on versions of Kubernetes that don't have what it limits.
func since(limit builders.Limit) []any {
	if limit.Since == "" {
		return nil
	}
	return []any{suite.Since(limit.Since)}
}

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
