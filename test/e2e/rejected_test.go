// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A request that a ledger cannot have", func() {
	const rejected = "the ledger can't be stored so"

	// boundReservations has the API server reject ledgers in which an entry is longer.
	boundReservations := func(ctx context.Context, patch string) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		definition.Name = "quotaledgers.quota.sharedquota.dev"
		const path = "/spec/versions/0/schema/openAPIV3Schema/properties/entries/properties/reservations/items/maxLength"
		Expect(api.Patch(ctx, definition, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[{%s,"path":%q}]`, patch, path)))).To(Succeed())
	}

	It("fails alone", func(ctx SpecContext) {
		// What is granted from escrow is written later, when nobody can be told any more.
		DeferCleanup(func(ctx context.Context) { replaceOperator(ctx) })
		replaceOperator(ctx, "--escrow=false")
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("configmaps", "50"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.ConfigMap(namespace, "first"))
		long := builders.ConfigMap(namespace, strings.Repeat("x", 253))
		boundReservations(ctx, `"op":"add","value":300`)
		DeferCleanup(boundReservations, `"op":"remove"`)
		Eventually(ctx, func(ctx context.Context) error {
			err := api.Create(ctx, long.DeepCopy())
			if err == nil { // The API server has yet to learn of the bound.
				mustDelete(ctx, long)
			}
			return err
		}).Should(MatchError(ContainSubstring(rejected)))

		eventuallyUses(ctx, quota, "configmaps=1")
		const short = 12
		errs := make(chan error, short+1)
		for i := range short + 1 {
			created := builders.ConfigMap(namespace, fmt.Sprint("short-", i))
			if i == short/2 {
				created = long.DeepCopy()
			}
			go func() { errs <- api.Create(ctx, created) }()
		}
		var failed []error
		for range short + 1 {
			if err := <-errs; err != nil {
				failed = append(failed, err)
			}
		}
		Expect(failed).To(ConsistOf(MatchError(ContainSubstring(rejected))))
		eventuallyUses(ctx, quota, fmt.Sprintf("configmaps=%d", short+1))
	})
})
