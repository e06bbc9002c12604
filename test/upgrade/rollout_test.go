// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// inFlight is part of the reservation of the pod letter in an encoding.
func inFlight(t *team, encoding int32) string {
	return map[int32]string{2: " " + t.name + "-flight letter ", 3: " letter " + t.name + "-flight "}[encoding]
}

// encodings are those that a ledger was stored in, one after the other.
type encodings struct {
	mu   sync.Mutex // guards seen
	seen []int32
}

// follow records in which encoding the ledger is written, until ctx ends. No version
// of it may lack what is in flight.
func follow(ctx context.Context, t *team) *encodings {
	GinkgoHelper()
	events, err := api.Watch(ctx, &quotav1.QuotaLedgerList{},
		client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", t.name)})
	Expect(err).NotTo(HaveOccurred())
	e := &encodings{}
	go func() {
		defer GinkgoRecover()
		defer events.Stop()
		for ctx.Err() == nil {
			event, open := <-events.ResultChan()
			if !open || ctx.Err() != nil {
				return
			}
			ledger, ok := event.Object.(*quotav1.QuotaLedger)
			Expect(ok).To(BeTrue(), "%v", event.Object)
			entries := ledger.Entries
			held := slices.ContainsFunc(entries.Reservations, func(reservation string) bool {
				return strings.Contains(reservation, inFlight(t, entries.Encoding))
			})
			Expect(held).To(BeTrue(), "encoding %d: %v", entries.Encoding, entries.Reservations)
			e.add(entries.Encoding)
		}
	}()
	return e
}

func (e *encodings) add(encoding int32) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.seen = append(e.seen, encoding)
}

// since returns the encodings of the writes after the first so many, each once.
func (e *encodings) since(number int) []int32 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(e.seen[number:])))
}

func (e *encodings) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen)
}

var _ = Describe("Replicas of two releases", func() {
	It("replace each other one by one under load, forth and back, without a request that fails or a reservation that is lost",
		func(ctx SpecContext) {
			const limit = 8
			begin(ctx, built.now)
			t := newTeam(ctx, "rolling", strconv.Itoa(limit))
			t.send(ctx, "letter", 2)
			watching, stop := context.WithCancel(ctx)
			defer stop()
			written := follow(watching, t)
			clients := t.load(ctx)
			defer clients.Stop()

			for _, step := range []struct {
				release      string
				during, then []int32
			}{
				{release: built.next, during: []int32{2}, then: []int32{2}},
				{release: built.afterNext, during: []int32{2, 3}, then: []int32{3}},
				{release: built.next, during: []int32{2, 3}, then: []int32{2}},
				{release: built.now, during: []int32{2}, then: []int32{2}},
			} {
				By("rolling out " + step.release)
				goOn(ctx, clients.Tally)
				before := written.count()
				roll(ctx, step.release, func() { goOn(ctx, clients.Tally) })
				Expect(written.since(before)).To(Equal(step.during))
				// What the last replica of the old release wrote has been seen by now.
				before = written.count()
				goOn(ctx, clients.Tally)
				Expect(written.since(before)).To(Equal(step.then))
				Expect(failed(clients.Tally)).To(BeEmpty())
			}
			clients.Stop()
			AddReportEntry("while all replicas were replaced four times", clients.Tally.String())
			Expect(failed(clients.Tally)).To(BeEmpty())

			report, err := truth.Report(ctx)
			Expect(err).NotTo(HaveOccurred())
			judged := report.Quotas[t.name]
			Expect(judged.Violations).To(BeEmpty())
			Expect(judged.Peak.Pods().Value()).To(BeNumerically("<", limit), "one is in flight all the time")
			for _, namespace := range t.namespaces {
				Expect(api.DeleteAllOf(ctx, builders.Pod(namespace, "").Obj(), client.InNamespace(namespace))).To(Succeed())
			}
			Eventually(ctx, t.used(ctx)).Should(Equal("0"))
			Eventually(ctx, t.reserved).Should(Equal(1), "only the letter is in flight")
			for i := range limit - 1 {
				Expect(t.create(ctx, fmt.Sprintf("p%d", i))).To(Succeed())
			}
			Expect(t.create(ctx, "late")).To(t.beFull(strconv.Itoa(limit), strconv.Itoa(limit)))
		})
})
