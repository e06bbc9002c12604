// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// WaitUntilEnforced returns the quota once its present spec is counted and enforced. The
// next request that it limits is checked.
func WaitUntilEnforced(ctx context.Context, api client.Reader, name string) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	var quota *quotav1.ClusterResourceQuota
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		quota = &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: name}, quota)).To(Succeed())
		g.Expect(quota.Status.ObservedGeneration).To(Equal(quota.Generation), "observedGeneration")
		for _, kind := range []string{quotav1.ConditionEnforced, quotav1.ConditionReady} {
			g.Expect(meta.IsStatusConditionTrue(quota.Status.Conditions, kind)).To(BeTrue(), "%s: %v", kind, quota.Status.Conditions)
		}
	}).Should(Succeed(), "quota %s", name)
	return quota
}
