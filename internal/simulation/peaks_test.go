// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// peak is the most of a quota since nothing is disturbed any more.
type peak struct {
	uid types.UID
	// reported is by the machines, held by the ledger and by grants from escrow, and live is what lived.
	reported, held, live figures
	// unasked: something came that nobody was asked about. shrunk: something went, or was granted and never came.
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

// measurePeak adds up what a ledger holds. With escrow, what is held is what lives, and what was granted and may still
// come: the ledger may have counted what isn't recorded yet.
func (w *world) measurePeak(q int) {
	stored := w.ledgers.newest[q]
	if !w.shape.calm || stored == nil {
		return
	}
	escrow := w.hasEscrow()
	type slot struct{ resource, namespace, name, from string }
	slots := map[slot]figures{}
	for key, reservation := range stored.snapshot.State.Reservations {
		if !reservation.IsEscrow() && (!escrow || !w.hasCome(key)) {
			at := slot{reservation.Resource.Resource, reservation.Namespace, reservation.Name, reservation.From}
			slots[at] = slots[at].max(w.amounts(reservation.Amounts))
		}
	}
	held := w.amounts(stored.snapshot.State.Used)
	if escrow {
		held = w.room[q].live
	}
	for _, amounts := range slots {
		held = held.plus(amounts)
	}
	for granted := range w.unrecorded {
		if granted.quota == q && !w.hasCome(granted.key) {
			held = held.plus(masked(q, w.charged[granted.key].rise))
		}
	}
	w.peaks[q].held = w.peaks[q].held.max(held)
}

func (w *world) hasEscrow() bool { return w.shape.seed&withEscrow != 0 }

// hasCome reports whether what was charged lives, or has lived.
func (w *world) hasCome(key ledger.Key) bool {
	request := w.charged[key]
	return request != nil && request.status == persisted
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

// shrinkIfEnded takes it that a ledger was written: something was granted and never came if a reservation ended.
func (w *world) shrinkIfEnded(before, written *stored) {
	if before == nil {
		return
	}
	for key, reservation := range before.snapshot.State.Reservations {
		if _, holds := written.snapshot.State.Reservations[key]; !holds && !reservation.IsEscrow() && !w.hasCome(key) {
			w.shrink()
		}
	}
}

// checkPeaks compares what was reported with what was so.
func (w *world) checkPeaks() {
	escrow := w.hasEscrow()
	for q, peak := range w.peaks {
		// What a replica grants from escrow it adds to the ledger that it knows. If something went since, that may be
		// more than is held.
		if current := w.quotas.newest[q]; current == nil || current.uid != peak.uid || escrow && peak.shrunk {
			continue
		}
		w.counts.peaks++
		// A leader may report what it has counted, and write a later count, in which something has gone.
		most := peak.held.max(peak.live)
		if peak.reported.max(most) != most || !escrow && peak.reported.max(peak.held) != peak.reported {
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
