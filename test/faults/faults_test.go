// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/faults/proxy"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// The specs share replicas. The storm is the first with faults, so that what it
// leaves reserved in vain comes to its end while the others run.
var _ = Describe("Replicas of the operator", Ordered, ContinueOnFailure, func() {
	for i, number := range []string{"two", "three"} {
		It("keep to the limit exactly when "+number+" of them share it, and answer every client", func(ctx SpecContext) {
			sharing := replicas.places[:i+2]
			replicas.start(ctx, sharing[i+1])
			w := newWorldWithSurge(ctx, 6, 20)
			plan := w.plan(uint64(i))
			plan.Forges = true
			clients := load.Start(ctx, api, plan)
			defer clients.Stop()
			pass(ctx, 4*time.Second)
			clients.Stop()
			AddReportEntry("writes of ledgers", counts(replicas.writes()))
			for _, place := range sharing {
				Expect(place.proxy.Writes()).To(BeNumerically(">", 0), "replica %s takes no part", place.name)
			}
			w.tellPeaks(wantNothingOver(ctx))
			wantServed(clients.Tally)
			wantAgreement(ctx, suite.Deadline)
			wantAllUsable(ctx, w)
			// The storm has entries of the webhook to itself: if there are too many, they are merged, and refuse for all.
			w.abolish(ctx)
		})
	}

	It("keep to the limit when somebody deletes a ledger and edits another one, and grant again once all is counted", func(ctx SpecContext) {
		w := newWorld(ctx, 6)
		clients := load.Start(ctx, api, w.plan(30))
		defer clients.Stop()
		Eventually(ctx, func() int { return clients.Tally.Count(load.Exceeded) }).Should(BeNumerically(">", 0), "the limit is met")
		w.loseLedgers(ctx)
		before := clients.Tally.Count(load.Exceeded)
		Eventually(ctx, func() int { return clients.Tally.Count(load.Exceeded) }).Should(BeNumerically(">", before), "the limit is met again")
		clients.Stop()
		w.tellPeaks(wantNothingOver(ctx))
		wantServed(clients.Tally)
		wantAgreement(ctx, quiet)
		w.abolish(ctx)
	}, NodeTimeout(5*time.Minute))

	It("fill a limit exactly while another quota tries a smaller one, and tell what that would have refused", func(ctx SpecContext) {
		replicas.startAll(ctx)
		tryBeside(ctx)
	})

	It("keep to the limit while everything breaks", func(ctx SpecContext) {
		start := time.Now()
		weather(ctx, 0)
		// The first round's remains are looked at last.
		for round := uint64(1); time.Since(start) < stormDuration(); round++ {
			w := weather(ctx, round)
			replicas.startAll(ctx)
			wantAgreement(ctx, quiet)
			wantAllUsable(ctx, w)
			w.abolish(ctx)
		}
	}, NodeTimeout(stormDuration()+20*time.Minute))

	It("answer every client while they are replaced one by one", func(ctx SpecContext) {
		replicas.startAll(ctx)
		w := newWorldWithSurge(ctx, 6, 20)
		plan := w.plan(20)
		plan.Forges = true
		plan.Rest = 20 * time.Millisecond
		clients := load.Start(ctx, api, plan)
		defer clients.Stop()
		for _, place := range replicas.places {
			pass(ctx, time.Second)
			replicas.terminate(place)
			replicas.start(ctx, place)
		}
		clients.Stop()
		w.tellPeaks(wantNothingOver(ctx))
		wantServed(clients.Tally)
	})

	for i, fault := range proxy.StoreFaults() {
		It(fmt.Sprintf("keep to the limit when writes of ledgers meet this often: %s", fault), func(ctx SpecContext) {
			replicas.startAll(ctx)
			w := newWorld(ctx, 6)
			before := replicas.injected()[fault]
			clients := load.Start(ctx, api, w.plan(10+uint64(i)))
			defer clients.Stop()
			Eventually(ctx, func() int { return clients.Tally.Count(load.Exceeded) }).Should(BeNumerically(">", 0), "the limit is met")
			inject(proxy.Rates{fault: 0.4})
			defer inject(nil)
			pass(ctx, 6*time.Second)
			clients.Stop()
			AddReportEntry("injected", fmt.Sprintf("%s: %d", fault, replicas.injected()[fault]-before))
			Expect(replicas.injected()[fault]).To(BeNumerically(">", before))
			w.tellPeaks(wantNothingOver(ctx))
			wantServed(clients.Tally)
		})
	}

	It("agree with the judge once all is quiet, and let all that is free be used", func(ctx SpecContext) {
		replicas.startAll(ctx)
		for _, place := range replicas.places {
			replicas.waitUntilServing(ctx, place)
		}
		wantAgreement(ctx, quiet)
		wantAllUsable(ctx, worlds...)
		wantAgreement(ctx, suite.Deadline)
		wantNothingOver(ctx)
		AddReportEntry("injected by the proxies", counts(replicas.injected()))
		AddReportEntry("writes of ledgers", counts(replicas.writes()))
	}, NodeTimeout(10*time.Minute))
})

// pass lets clients and faults do their work.
func pass(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
