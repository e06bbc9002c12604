// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

var _ = Describe("While nobody can decide", func() {
	const (
		audit, deny   = quotav1.EnforcementAudit, quotav1.EnforcementDeny
		admit, refuse = quotav1.UnavailableAdmit, quotav1.UnavailableRefuse
	)
	fill := func(ctx context.Context, namespace string, count int) {
		GinkgoHelper()
		for range count {
			mustCreate(ctx, builders.Pod(namespace, "p").Generated().Obj())
		}
	}

	It("requests are admitted if all quotas of their namespace admit then, and it is told what came of it", func(ctx SpecContext) {
		watching, lenient, strict, mixed := newTeam(), newTeam(), newTeam(), newTeam()
		audited := enforce(ctx, watching.quota().Hard("pods", "2").Enforcement(audit, ""))
		admitting := enforce(ctx, lenient.quota().Hard("pods", "2").Enforcement(deny, admit))
		refusing := enforce(ctx, strict.quota().Hard("pods", "5").Enforcement(deny, refuse))
		both := enforce(ctx, mixed.quota().Hard("pods", "5"))
		enforce(ctx, builders.Quota(mixed.name+"-audit").Label(teamLabel, mixed.name).Hard("pods", "5").Enforcement(audit, ""))
		Expect(conditionOf(mustGetQuota(ctx, admitting), quotav1.ConditionEnforced)).To(ContainSubstring("spec.enforcement.whenUnavailable is Admit"))
		namespaces := map[*quotav1.ClusterResourceQuota]string{}
		for quota, team := range map[*quotav1.ClusterResourceQuota]*team{audited: watching, admitting: lenient, refusing: strict, both: mixed} {
			namespaces[quota] = team.namespace(ctx)
			fill(ctx, namespaces[quota], 1)
			eventuallyUses(ctx, quota, "pods=1")
		}

		away(running.Kill)
		fill(ctx, namespaces[audited], 2)
		fill(ctx, namespaces[admitting], 3)
		for _, quota := range []*quotav1.ClusterResourceQuota{refusing, both} {
			Expect(api.Create(ctx, builders.Pod(namespaces[quota], "late").Obj())).To(MatchError(ContainSubstring("failed calling webhook")))
		}

		By("counting what was admitted")
		start(ctx)
		exceededNow := HavePrefix("True AdmittedWhileUnavailable: pods: used 4, hard 2, 2 above it, admitted while the operator couldn't decide; ")
		Eventually(ctx, condition(admitting, quotav1.ConditionExceeded)).Should(exceededNow)
		told := HavePrefix("AdmittedWhileUnavailable  pods: used 4, hard 2, 2 above it, ")
		Eventually(ctx, eventsOn("ClusterResourceQuota", "", admitting.Name)).Should(ContainElement(told))
		Eventually(ctx, condition(audited, quotav1.ConditionExceeded)).Should(
			HavePrefix("True AdmittedAboveHard: pods: used 3, hard 2; admitted by the mode Audit, "))
		waitUntilEnforced(ctx, admitting)
		Expect(api.Create(ctx, builders.Pod(namespaces[admitting], "late").Obj())).To(BeRefused(exceeded(admitting.Name, "pods", "1", "4", "2")))

		By("remembering it when another leader takes over")
		restart(ctx)
		Eventually(ctx, condition(admitting, quotav1.ConditionReady)).Should(HavePrefix("True"))
		Consistently(ctx, condition(admitting, quotav1.ConditionExceeded), time.Second).Should(exceededNow)
		pods := podsOf(ctx, []string{namespaces[admitting]})
		mustDelete(ctx, &pods[0])
		mustDelete(ctx, &pods[1])
		Eventually(ctx, condition(admitting, quotav1.ConditionExceeded)).Should(HavePrefix("False WithinLimits"))
	})

	It("because ledgers can't be written, requests are admitted with a warning if the quota admits then", func(ctx SpecContext) {
		const patience = 5 * time.Second
		watching, lenient, strict := newTeam(), newTeam(), newTeam()
		audited := enforce(ctx, watching.quota().Hard("pods", "5").Enforcement(audit, ""))
		admitting := enforce(ctx, lenient.quota().Hard("pods", "5").Enforcement(deny, admit))
		refusing := enforce(ctx, strict.quota().Hard("pods", "5"))
		here, there, elsewhere := watching.namespace(ctx), lenient.namespace(ctx), strict.namespace(ctx)
		for _, namespace := range []string{here, there, elsewhere} {
			fill(ctx, namespace, 1) // so that it has joined
		}
		for _, quota := range []*quotav1.ClusterResourceQuota{audited, admitting, refusing} {
			eventuallyUses(ctx, quota, "pods=1")
			forbidWritesOf(ctx, quota.Name, "the policy of a test forbids it")
		}
		for _, one := range []struct {
			quota     *quotav1.ClusterResourceQuota
			namespace string
		}{{audited, here}, {admitting, there}} {
			Expect(kubectlApply(ctx, builders.Pod(one.namespace, "p1").Obj())).To(
				HavePrefix("Warning: not checked against quota " + one.quota.Name + ", and admitted: "))
			// The ledger is tried all the time by now.
			for _, name := range []string{"p2", "p3"} {
				began := time.Now()
				mustCreate(ctx, builders.Pod(one.namespace, name).Obj())
				Expect(time.Since(began)).To(BeNumerically("<", patience))
			}
		}
		Expect(api.Create(ctx, builders.Pod(elsewhere, "p1").Obj())).To(MatchError(ContainSubstring("the policy of a test forbids it")))

		By("admitting what is created in a namespace that has just joined and that nobody can count")
		joined := lenient.namespace(ctx)
		Expect(kubectlApply(ctx, builders.Pod(joined, "p1").Obj())).To(HavePrefix("Warning: not checked against quota " + admitting.Name +
			", and admitted: waiting for quota " + admitting.Name + ": its ledger can't be read or written: "))
		// The replica may find out first that the ledger can't be written, or that the namespace isn't counted.
		Expect(api.Create(ctx, builders.Pod(strict.namespace(ctx), "p1").Obj())).To(MatchError(Or(
			ContainSubstring("status unknown for quota: "+refusing.Name),
			ContainSubstring("waiting for quota "+refusing.Name+": its ledger can't be read or written: "))))
		Eventually(ctx, condition(admitting, quotav1.ConditionReady)).Should(ContainSubstring("so requests that the quota limits are admitted unchecked: "))
		Eventually(ctx, condition(refusing, quotav1.ConditionReady)).Should(ContainSubstring("so requests that the quota limits are refused: "))
	})
})

var _ = Describe("A quota that only watches", func() {
	It("lets nothing more over its limit from the moment that the edit is answered that sets it to Deny", func(ctx SpecContext) {
		const clients = 8
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3").Enforcement(quotav1.EnforcementAudit, ""))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx)}
		var answered atomic.Bool
		var created atomic.Int32
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for n := 0; ctx.Err() == nil; n++ {
					after := answered.Load()
					err := api.Create(ctx, builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("p%d-%d", i, n)).Obj())
					if apierrors.IsForbidden(err) {
						return
					}
					Expect(err).NotTo(HaveOccurred())
					Expect(after).To(BeFalse(), "a request that was sent after the answer must be refused")
					created.Add(1)
				}
			})
		}
		Eventually(ctx, created.Load).Should(BeNumerically(">", 3*clients))
		Expect(tryChange(ctx, quota, func(spec *quotav1.ClusterResourceQuotaSpec) {
			spec.Enforcement.Mode = quotav1.EnforcementDeny
		})).To(Succeed())
		answered.Store(true)
		group.Wait()
		waitUntilEnforced(ctx, quota)
		Expect(podsOf(ctx, namespaces)).To(HaveLen(int(created.Load())))
		Eventually(ctx, condition(quota, quotav1.ConditionExceeded)).Should(HavePrefix("True UsedAboveHard: "))
	})
})
