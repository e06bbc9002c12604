// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("A ledger that can't be written", func() {
	It("makes the quota not ready for as long, and others aren't affected", func(ctx SpecContext) {
		team, other := newTeam(), newTeam()
		quota, unaffected := enforce(ctx, team.quota().Hard("pods", "5")), enforce(ctx, other.quota().Hard("pods", "5"))
		namespace, elsewhere := team.namespace(ctx), other.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")

		lift := forbidWritesOf(ctx, quota.Name, "the policy of a test forbids it")
		Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(MatchError(And(
			ContainSubstring("waiting for quota %s: ", quota.Name), ContainSubstring("the policy of a test forbids it"))))
		mustCreate(ctx, builders.Pod(elsewhere, "p1").Obj())
		Eventually(ctx, ready(quota)).Should(And(
			HavePrefix("False LedgerUnavailable: since "), ContainSubstring("can't read or write this quota's QuotaLedger"),
			ContainSubstring("the policy of a test forbids it")))
		Expect(ready(unaffected)(ctx)).To(HavePrefix("True "))

		lift(ctx)
		Eventually(ctx, ready(quota)).Should(HavePrefix("True "), "though nobody asks for anything")
		mustCreate(ctx, builders.Pod(namespace, "p2").Obj())
		eventuallyUses(ctx, quota, "pods=2")
	})
})

var _ = Describe("A ledger that does not take the count", func() {
	It("makes the quota not ready while a policy rejects nothing but what is used", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "100"))
		namespace := team.namespace(ctx)
		mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		lift := allowWritesOf(ctx, quota.Name, "has(object.entries.used) && object.entries.used == oldObject.entries.used",
			metav1.StatusReasonInvalid, "the policy of a test keeps what is used")
		Eventually(ctx, func(ctx context.Context) (string, error) {
			mustCreate(ctx, builders.Pod(namespace, "p").Generated().Obj()) // reservations can be written
			return ready(quota)(ctx)
		}).WithPolling(300 * time.Millisecond).Should(And(
			HavePrefix("False NotSettled: since "), ContainSubstring("could not store a new count"),
			ContainSubstring("the policy of a test keeps what is used")))
		lift(ctx)
		Eventually(ctx, ready(quota)).Should(HavePrefix("True "))
	})

	DescribeTable("makes the quota not ready if it comes from another history", func(ctx SpecContext, change func(*ledger.State)) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "100"))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "p1").Obj())
		eventuallyUses(ctx, quota, "pods=1")
		store := ledgerstore.New(api)
		Eventually(ctx, func(ctx context.Context) error {
			known, err := store.Load(ctx, quota.Name, machine.Load{})
			if err != nil {
				return err
			}
			change(&known.State)
			_, err = store.Swap(ctx, quota.Name, known.Version, known.State)
			return err
		}).Should(Succeed())
		Eventually(ctx, ready(quota)).WithTimeout(10 * time.Second).Should(HavePrefix("False "))
	},
		Entry("of a newer spec", func(state *ledger.State) { state.Generation += 7 }),
		Entry("counted further than the API server has come", func(state *ledger.State) {
			state.Counted[schema.GroupResource{Resource: "pods"}] += 1 << 30
		}),
		Entry("with namespaces that are yet to come", func(state *ledger.State) { state.Counted[ledger.Namespaces] += 1 << 30 }),
	)
})

// ready returns the condition Ready of a quota.
func ready(of *quotav1.ClusterResourceQuota) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(of), of)
		return conditionOf(of, quotav1.ConditionReady), err
	}
}

// forbidWritesOf has a policy refuse every write of a quota's ledger, until it is lifted.
func forbidWritesOf(ctx context.Context, quota, why string) (lift func(context.Context)) {
	GinkgoHelper()
	return allowWritesOf(ctx, quota, "false", metav1.StatusReasonForbidden, why)
}

// allowWritesOf has a policy refuse those that an expression doesn't allow.
func allowWritesOf(ctx context.Context, quota, allowed string, reason metav1.StatusReason, why string) (lift func(context.Context)) {
	GinkgoHelper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "forbid-" + quota},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
					ResourceNames: []string{quota},
					RuleWithOperations: admissionregistrationv1.RuleWithOperations{
						Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
						Rule: admissionregistrationv1.Rule{
							APIGroups: []string{quotav1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"quotaledgers"},
						},
					},
				}},
			},
			Validations: []admissionregistrationv1.Validation{{
				Expression: allowed, Message: why, Reason: &reason,
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	mustCreate(ctx, policy)
	mustCreate(ctx, binding)
	lift = func(ctx context.Context) {
		GinkgoHelper()
		Expect(client.IgnoreNotFound(api.Delete(ctx, binding))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, policy))).To(Succeed())
	}
	DeferCleanup(lift)
	Eventually(ctx, func(ctx context.Context) error {
		stored := &quotav1.QuotaLedger{}
		if err := api.Get(ctx, client.ObjectKey{Name: quota}, stored); err != nil {
			return err
		}
		stored.Entries.Used = nil
		return api.Update(ctx, stored, client.DryRunAll)
	}).Should(MatchError(ContainSubstring(why)), "the API server loads a policy a moment later")
	return lift
}
