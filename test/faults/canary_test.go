// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// canary shows whether what happens reaches the leader, and from there the ledger and
// people: a namespace with a pod and a config map joins a quota of its own.
type canary struct {
	// label is the value by which its quota selects its namespaces.
	label      string
	namespaces int
}

const canaryName = "canary"

// start creates the quota.
func (c *canary) start(ctx context.Context) {
	GinkgoHelper()
	quota := builders.Quota(canaryName).Label(canaryName, c.label).Hard("pods", "1k").Hard("count/configmaps", "1k")
	Expect(api.Create(ctx, quota.Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, api, canaryName)
}

// stop deletes the quota, and leaves its namespaces to nobody.
func (c *canary) stop(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(api.Delete(ctx, builders.Quota(canaryName).Obj()))
	}).Should(Succeed())
}

// sing returns once the leader has heard of one more namespace.
func (c *canary) sing(ctx context.Context) {
	GinkgoHelper()
	c.namespaces++
	name := fmt.Sprintf("%s-%s-%d", c.label, canaryName, c.namespaces)
	for _, object := range []client.Object{
		builders.Namespace(name).Obj(), builders.ConfigMap(name, "c"), builders.Pod(name, "p").Obj(),
	} {
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, object))
		}).Should(Succeed())
	}
	join := suite.Merge(fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, canaryName, c.label))
	Eventually(ctx, func(ctx context.Context) error {
		return api.Patch(ctx, builders.Namespace(name).Obj(), join)
	}).Should(Succeed())
	want := resource.NewQuantity(int64(c.namespaces), resource.DecimalSI)
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		quota := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: canaryName}, quota)).To(Succeed())
		for _, limited := range []string{"pods", "count/configmaps"} {
			used := quota.Status.Total.Used[corev1.ResourceName(limited)]
			g.Expect(used.Cmp(*want)).To(BeZero(), "%s: %s of %s", limited, used.String(), want)
		}
	}).WithTimeout(2*suite.Deadline).Should(Succeed(), "the leader hears of nothing")
}
