// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// peak is the most of a quota since nothing is disturbed any more.
type peak struct {
	uid types.UID
	// reported is by the machines, held by the ledger and by grants from escrow, and live is what lived.
	reported, held, live figures
	// unasked: something came that nobody was asked about. shrunk: something went.
	unasked, shrunk bool
}

// beginPeaks begins to measure them, while everything stands still.
func (w *world) beginPeaks() {
	for q, quota := range w.quotas.newest {
		w.peaks[q] = peak{}
		if quota != nil {
			w.peaks[q].uid = quota.uid
			w.measurePeak(q)
			w.peaks[q].reported, w.peaks[q].live = w.peaks[q].held, w.room[q].live
		}
	}
}

// hear takes what a machine reports as held.
func (w *world) hear(d *driver, holds machine.Holds) {
	peak, amounts := &w.peaks[d.quota], w.amounts(holds.Amounts)
	if w.mutation.heldEscrows {
		amounts = amounts.plus(w.amounts(d.machine.Current().State.Escrowed()))
	}
	if peak.uid == holds.Quota && !w.mutation.silent {
		peak.reported = peak.reported.max(amounts)
	}
}

// measurePeak adds up what a ledger holds, and what was granted from escrow and isn't in it.
func (w *world) measurePeak(q int) {
	stored := w.ledgers.newest[q]
	if !w.shape.calm || stored == nil {
		return
	}
	type slot struct{ resource, namespace, name, from string }
	slots := map[slot]figures{}
	for _, reservation := range stored.snapshot.State.Reservations {
		if !reservation.IsEscrow() {
			at := slot{reservation.Resource.Resource, reservation.Namespace, reservation.Name, reservation.From}
			slots[at] = slots[at].max(w.amounts(reservation.Amounts))
		}
	}
	held := w.amounts(stored.snapshot.State.Used)
	for _, amounts := range slots {
		held = held.plus(amounts)
	}
	for granted := range w.unrecorded {
		if granted.quota == q {
			held = held.plus(masked(q, w.charged[granted.key].rise))
		}
	}
	w.peaks[q].held = w.peaks[q].held.max(held)
}

func (w *world) unask() {
	for q := range w.peaks {
		w.peaks[q].unasked, w.peaks[q].shrunk = true, true
	}
}

func (w *world) shrink() {
	for q := range w.peaks {
		w.peaks[q].shrunk = true
	}
}

// checkPeaks compares what was reported with what was so.
func (w *world) checkPeaks() {
	escrow := w.shape.seed&withEscrow != 0
	for q, peak := range w.peaks {
		// What a replica grants from escrow it adds to the ledger that it knows. That may be larger than the one
		// that is stored, and lack what others granted.
		if current := w.quotas.newest[q]; current == nil || current.uid != peak.uid || escrow && peak.shrunk {
			continue
		}
		w.counts.peaks++
		if peak.reported != peak.held && (!escrow || peak.reported.max(peak.held) != peak.held) {
			w.failf("quota %s: %v were reported as held, and it was %v", w.vocabulary.quotas[q], peak.reported, peak.held)
		}
		if !peak.unasked && peak.reported.max(peak.live) != peak.reported {
			w.failf("quota %s: %v were reported as held, and %v lived", w.vocabulary.quotas[q], peak.reported, peak.live)
		}
	}
}

// enforces notes that a quota refuses something now: by its mode, or by a fence. If an edit is refused after its fence was
// set, because another edit was first, the fence still binds replicas that have seen neither.
func (w *world) enforces(q int) {
	quota, ledger := w.quotas.newest[q], w.ledgers.newest[q]
	if quota != nil && (!quota.audits || ledger != nil && ledger.snapshot.State.Fence.Generation != 0) {
		w.enforced[q] = w.revision
	}
}
