// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
)

// openWithin is how soon after the loss of its ledger a quota must be ready again. It is 65 seconds if a reservation's
// life has its default.
const openWithin = reservationTTL + 5*time.Second

// loseLedgers has somebody delete a ledger and edit another one while clients work, and returns once the quotas are ready again.
func (w *world) loseLedgers(ctx context.Context) {
	GinkgoHelper()
	end := disruptions.Begin("the loss of ledgers", load.Unknown)
	defer func() { time.AfterFunc(settled, end) }()
	unprotectLedgers(ctx)
	// The API server forgets the policy in its own time.
	Eventually(ctx, func(ctx context.Context) error { return api.Delete(ctx, ledgerOf(w.things())) }).Should(Succeed())
	lost := time.Now()
	edit := merging(`{"entries":{"used":{"pods":"0","requests.cpu":"0"},"reservations":[]}}`)
	Expect(api.Patch(ctx, ledgerOf(w.whole()), edit)).To(Succeed())
	quotas := []string{w.things(), w.whole()}
	for _, name := range quotas {
		w.wantTold(ctx, name)
	}

	By("lowering a limit meanwhile, which binds")
	Expect(api.Patch(ctx, builders.Quota(w.things()).Obj(), merging(`{"spec":{"quota":{"hard":{"count/configmaps":"4"}}}}`))).To(Succeed())

	for _, name := range quotas {
		Eventually(ctx, func(ctx context.Context) (bool, error) {
			quota := &quotav1.ClusterResourceQuota{}
			err := api.Get(ctx, client.ObjectKey{Name: name}, quota)
			return meta.IsStatusConditionTrue(quota.Status.Conditions, quotav1.ConditionReady), err
		}).WithTimeout(time.Until(lost.Add(openWithin))).Should(BeTrue(), "quota %s", name)
		took := time.Since(lost)
		Expect(took).To(BeNumerically(">=", reservationTTL), "quota %s", name)
		AddReportEntry(name+" is ready again after", took.Round(100*time.Millisecond))
	}
}

// wantTold wants the condition Ready and an event to tell the same: that the ledger was lost, and until when nothing is granted.
func (w *world) wantTold(ctx context.Context, name string) {
	GinkgoHelper()
	var ready string
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		quota := &quotav1.ClusterResourceQuota{}
		g.Expect(api.Get(ctx, client.ObjectKey{Name: name}, quota)).To(Succeed())
		condition := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionReady)
		g.Expect(condition.Reason).To(Equal(quotav1.ReasonLedgerLost))
		ready = condition.Message
	}).Should(Succeed(), "quota %s", name)
	Expect(ready).To(MatchRegexp(`refused until 20\S+Z`))
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		events := &eventsv1.EventList{}
		g.Expect(api.List(ctx, events, client.InNamespace("default"))).To(Succeed())
		var told []string
		for i := range events.Items {
			if event := &events.Items[i]; event.Regarding.Name == name && event.Reason == quotav1.EventLedgerLost {
				told = append(told, event.Note)
			}
		}
		g.Expect(told).To(ConsistOf(ready))
	}).Should(Succeed(), "quota %s", name)
}

// unprotectLedgers takes the policy out of force that forbids anybody but the operator to write ledgers, until the spec ends.
func unprotectLedgers(ctx context.Context) {
	GinkgoHelper()
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota-protection"}, binding)).To(Succeed())
	Expect(api.Delete(ctx, binding)).To(Succeed())
	binding.ObjectMeta = builders.Meta("", binding.Name)
	DeferCleanup(func(ctx context.Context) { Expect(api.Create(ctx, binding)).To(Succeed()) })
}

func ledgerOf(quota string) *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{ObjectMeta: builders.Meta("", quota)}
}

func merging(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
