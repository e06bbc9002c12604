// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("While the leader counts nothing", Ordered, ContinueOnFailure, func() {
	var counts *harness.Operator
	BeforeEach(func(ctx SpecContext) {
		fresh(ctx, nil, nil, nil)
		counts = replicas.Running[0]
	})
	away := func(ctx context.Context, goes func()) {
		GinkgoHelper()
		goes()
		Eventually(ctx, replicas.Ready).ShouldNot(ContainElement(counts))
	}

	It("a namespace that joins leaves nothing of the quota to anybody", func(ctx SpecContext) {
		const stays, newcomer = "stays", "brings"
		const ten, hour = 10 * time.Second, time.Hour
		limited(ctx, builders.Quota(stays).Hard("count/secrets", "50"))
		suite.Create(ctx, admin, builders.Namespace(newcomer).Obj())
		for i := range 40 {
			suite.Create(ctx, admin, builders.Secret(newcomer, fmt.Sprint("s", i)))
		}
		DeferCleanup(func() { replicas.Kill(counts) })
		DeferCleanup(leaseLasts, ten) // for what comes after a failure
		away(ctx, func() {
			counts.Pause()
			leaseLasts(ctx, hour) // a call to it takes ten seconds, and nobody else may count meanwhile
		})
		Expect(admin.Patch(ctx, builders.Namespace(newcomer).Obj(), suite.Merge(`{"metadata":{"labels":{"team":"`+stays+`"}}}`))).To(Succeed())
		Eventually(ctx, admin.Create).WithArguments(builders.Secret(stays, "probe"), client.DryRunAll).Should(suite.BeUncounted(stays, "count/secrets"))
		var creating sync.WaitGroup
		for i := range 50 {
			creating.Go(func() { _ = admin.Create(ctx, builders.Secret(stays, fmt.Sprint("s", i))) })
		}
		creating.Wait()
		Expect(secretsOf(ctx, stays) + secretsOf(ctx, newcomer)).To(BeNumerically("<=", 50))
		leaseLasts(ctx, ten)
		Eventually(ctx, func(ctx context.Context) int {
			_ = admin.Create(ctx, builders.Secret(stays, fmt.Sprint("late", time.Now().UnixNano())))
			return secretsOf(ctx, stays) + secretsOf(ctx, newcomer)
		}).WithTimeout(time.Minute).Should(Equal(50), "all of it is granted once another leader has counted")
	})

	It("a tool that annotates namespaces costs no write of a ledger and no request", func(ctx SpecContext) {
		const noted, namespaces = "noted", 100
		limited(ctx, builders.Quota(noted).Hard("pods", "10k"))
		names := make([]string, namespaces)
		for i := range names {
			names[i] = fmt.Sprintf("%s-%d", noted, i)
			suite.Create(ctx, admin, builders.Namespace(names[i]).Label("team", noted).Obj())
		}
		pods := 0
		// create makes pods, and returns how long half of them took, and how often the ledger was written.
		create := func(count int) (median time.Duration, writes int64) {
			GinkgoHelper()
			before, took := ledgerWrites(ctx, noted), make([]time.Duration, count)
			for i := range took {
				pods++
				began := time.Now()
				suite.Create(ctx, admin, builders.Pod(names[pods%namespaces], fmt.Sprint("p", pods)).Obj())
				took[i] = time.Since(began)
			}
			slices.Sort(took)
			return took[count/2], ledgerWrites(ctx, noted) - before
		}
		create(20)
		besides, without := create(60)
		stop := annotating(ctx, names)
		DeferCleanup(stop)
		resting := int64(0)
		Eventually(ctx, func() bool { // what was created is yet to be settled
			before := resting
			resting = ledgerWrites(ctx, noted)
			return resting == before
		}).WithPolling(2 * time.Second).WithTimeout(20 * time.Second).Should(BeTrue())
		Consistently(ctx, func() int64 { return ledgerWrites(ctx, noted) }).WithTimeout(4 * time.Second).Should(Equal(resting))
		beneath, with := create(60)
		AddReportEntry("a pod takes", fmt.Sprintf("%s and %d writes of the ledger for 60; beside the tool %s and %d", besides, without, beneath, with))
		Expect(with).To(BeNumerically("<=", 2*without+5))

		away(ctx, func() { replicas.Kill(counts) })
		create(60)
	})
})

// leaseLasts has the leader's Lease expire so long after its last renewal. A leader that renews it has it expire after ten seconds.
func leaseLasts(ctx context.Context, lasting time.Duration) {
	GinkgoHelper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: suite.Namespace, Name: "shared-quota-operator"}}
	Expect(admin.Patch(ctx, lease, suite.Merge(fmt.Sprintf(`{"spec":{"leaseDurationSeconds":%d}}`, int(lasting.Seconds()))))).To(Succeed())
}

func secretsOf(ctx context.Context, namespace string) int {
	GinkgoHelper()
	list := &corev1.SecretList{}
	Expect(admin.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return len(list.Items)
}

func ledgerWrites(ctx context.Context, quota string) int64 {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: quota}, ledger)).To(Succeed())
	return ledger.Generation
}

// annotating writes an annotation of each namespace every second, until stop is called.
func annotating(ctx context.Context, namespaces []string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var working sync.WaitGroup
	written := 0
	working.Go(func() {
		for tick := time.NewTicker(time.Second); ctx.Err() == nil; <-tick.C {
			for _, name := range namespaces {
				note := suite.Merge(fmt.Sprintf(`{"metadata":{"annotations":{"example.com/seen":"%d"}}}`, time.Now().UnixNano()))
				if admin.Patch(ctx, builders.Namespace(name).Obj(), note) == nil {
					written++
				}
			}
		}
	})
	return func() {
		cancel()
		working.Wait()
		Expect(written).To(BeNumerically(">=", len(namespaces)), "a tool that annotates nothing proves nothing")
	}
}
