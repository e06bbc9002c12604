/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
