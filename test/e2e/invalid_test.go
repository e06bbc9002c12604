// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A quota that this release can't enforce", func() {
	It("refuses what it names until it is corrected", func(ctx SpecContext) {
		team := newTeam()
		other := enforce(ctx, team.quota().Hard("pods", "5").Hard("services", "5"))
		namespace := team.namespace(ctx)
		broken := builders.Quota(team.name+"-broken").Label(teamLabel, team.name).Hard("pods", "500m").Obj()
		createUnvalidated(ctx, broken)
		refused := fmt.Sprintf("status unknown for quota: %s, resources: pods (the quota's spec is not valid for this version of the operator: "+
			`spec.quota.hard[pods]: Invalid value: "500m": must be an integer; ask your cluster administrator to correct the quota's spec)`, broken.Name)
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(namespace, "p1").Obj(), client.DryRunAll)
		}).Should(BeRefused(refused))
		Expect(api.Create(ctx, builders.Pod(namespace, "p1").Obj())).To(BeRefused(refused))
		Eventually(ctx, condition(broken, quotav1.ConditionReady)).Should(HavePrefix("False InvalidSpec: "))

		By("leaving alone what it doesn't name, and the usage of other quotas")
		mustCreate(ctx, builders.Service(namespace, "s1").Obj())
		eventuallyUses(ctx, other, "pods=0,services=1")

		By("correcting it")
		change(ctx, broken, func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Quota.Hard["pods"] = resource.MustParse("1") })
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(broken.Name, "pods", "1", "1", "1")))
	})
})

// createUnvalidated creates a quota while there is no operator, and no webhook that
// would ask it.
func createUnvalidated(ctx context.Context, quota *quotav1.ClusterResourceQuota) {
	GinkgoHelper()
	away(running.Kill)
	mustDelete(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "shared-quota"}})
	Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, quota) }).Should(Succeed())
	DeferCleanup(deleteIfThere, quota)
	start(ctx)
}
