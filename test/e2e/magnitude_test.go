// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// absurd is what the API server still takes. It is a number with more digits than an object
// can have bytes.
const absurd = "1e2000000"

var _ = Describe("Who asks for more than can be counted", func() {
	It("is refused, and keeps nobody else waiting", func(ctx SpecContext) {
		team := newTeam()
		namespace := team.namespace(ctx)
		quota := enforce(ctx, team.quota().Hard("requests.storage", "2Gi").Hard("requests.cpu", "2"))
		mustCreate(ctx, builders.VolumeClaim(namespace, "first").Obj())
		mustCreate(ctx, builders.Pod(namespace, "first").Request("cpu", "1").Obj())
		eventuallyUses(ctx, quota, "requests.cpu=1,requests.storage=1Gi")

		Expect(api.Create(ctx, builders.VolumeClaim(namespace, "absurd").Size(absurd).Obj())).To(
			BeRefused(exceeded(quota.Name, "requests.storage", "1e30", "1Gi", "2Gi")))
		Expect(api.Create(ctx, builders.Pod(namespace, "absurd").Request("cpu", absurd).Obj())).To(
			BeRefused(exceeded(quota.Name, "requests.cpu", "1e30", "1", "2")))
		mustCreate(ctx, builders.VolumeClaim(namespace, "second").Obj())
	})

	It("is counted where no quota was asked about it, and keeps nobody else waiting", func(ctx SpecContext) {
		team := newTeam()
		namespace := team.namespace(ctx)
		// Plain numbers, which are written the same in every notation.
		claim := func(name, bytes string) *corev1.PersistentVolumeClaim {
			return builders.VolumeClaim(namespace, name).Size(bytes).Obj()
		}
		early := mustCreate(ctx, claim("early", absurd))
		mustCreate(ctx, claim("first", "1"))
		quota := enforce(ctx, team.quota().Hard("requests.storage", "2"))
		eventuallyUses(ctx, quota, "requests.storage=1000000000000000000000000000001")
		Expect(api.Create(ctx, claim("second", "1"))).To(
			BeRefused(exceeded(quota.Name, "requests.storage", "1", "1000000000000000000000000000001", "2")))

		mustDelete(ctx, early)
		eventuallyUses(ctx, quota, "requests.storage=1")
		mustCreate(ctx, claim("second", "1"))
	})

	// What a test parses itself would take its own memory.
	It("can't have a limit that takes a machine's memory to read", func(ctx SpecContext) {
		valid, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newTeam().quota().Hard("requests.memory", "1").Obj())
		Expect(err).NotTo(HaveOccurred())
		unreadable := &unstructured.Unstructured{Object: valid}
		unreadable.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
		Expect(unstructured.SetNestedField(valid, "1e-300000000", "spec", "quota", "hard", "requests.memory")).To(Succeed())
		Expect(api.Create(ctx, unreadable)).To(And(Satisfy(apierrors.IsInvalid),
			MatchError(ContainSubstring("spec.quota.hard.requests.memory in body should match"))))
	})
})
