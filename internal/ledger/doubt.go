// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Doubts are the doubtful reservations of one namespace: its requests were admitted and, as it seems, failed
// after that, such as by another webhook. They hold room until they expire, because a request may still be
// under way. If the namespace held more than it may, it stays a Suspect for a while longer.
type Doubts struct {
	// Number of the reservations that hold something.
	Number int
	// Amounts are the sum of these reservations.
	Amounts corev1.ResourceList
}

// freePart is the part of the free amount that one namespace may hold so, if that is more than its share of the limit:
// a fifth.
const freePart = 5

// heldPart is the part of the free amount that one namespace may hold before names are looked up: a tenth.
const heldPart = 10

// Doubt marks a reservation as doubtful.
func (d *Draft) Doubt(doubtful Key) {
	held, known := d.state.Reservations[doubtful]
	if !known || held.Doubtful {
		return
	}
	held.Doubtful = true
	d.put(held)
	d.changed = true
}

// DropAll drops expired reservations, as Drop does. Each namespace that held more in doubt than it may becomes a
// Suspect, if it is none yet and one of them was doubtful. Until is when that ends, for people.
func (d *Draft) DropAll(expired []Key, hard corev1.ResourceList, percent int64, until time.Time) {
	excessive := d.excessive(hard, percent)
	for _, key := range expired {
		held := d.state.Reservations[key]
		d.Drop(key)
		if _, known := d.state.Suspects[held.Namespace]; held.Doubtful && !known && excessive[held.Namespace] {
			d.suspect(held.Namespace, &Suspect{Object: held.Object, Attempt: held.Attempt, Expiry: until})
		}
	}
}

// Acquit ends a suspicion, if it is still the same one.
func (d *Draft) Acquit(suspect Suspect) {
	if held, known := d.state.Suspects[suspect.Namespace]; known && held.Life() == suspect.Life() {
		d.suspect(suspect.Namespace, nil)
	}
}

// suspect makes a namespace a suspect, or ends that.
func (d *Draft) suspect(namespace string, made *Suspect) {
	d.index.bytes -= d.state.Suspects[namespace].Size()
	delete(d.state.Suspects, namespace)
	if made != nil {
		d.state.Suspects[namespace] = *made
		d.index.bytes += made.Size()
	}
	d.suspected, d.changed = nil, true
}

// excessive are the namespaces that hold more in doubt than they may.
func (d *Draft) excessive(hard corev1.ResourceList, percent int64) map[string]bool {
	excessive := map[string]bool{}
	charged := d.Charged()
	for namespace, doubts := range d.doubts() {
		for name, held := range doubts.Amounts {
			limit, limited := hard[name]
			most := mostInDoubt(name, held, limit, charged[name], percent)
			if limited && held.Cmp(most) > 0 {
				excessive[namespace] = true
			}
		}
	}
	return excessive
}

// Doubtful returns the doubtful reservations of each namespace that has any.
func (s State) Doubtful() map[string]Doubts {
	return (&Draft{state: s, index: s.Indexed().index}).doubts()
}

func (r Reservation) doubt() int {
	if r.Doubtful {
		return 1
	}
	return 0
}

// doubtMore notes that so many more reservations are doubtful.
func (d *Draft) doubtMore(number int) {
	d.index.doubtful += number
	if number != 0 {
		d.suspected = nil
	}
}

// doubts gathers the doubtful reservations. A slot is charged as its largest attempt, and so it is here.
func (d *Draft) doubts() map[string]Doubts {
	if d.index.doubtful == 0 {
		return nil
	}
	slots := map[slot]corev1.ResourceList{}
	doubts := map[string]Doubts{}
	for _, reservation := range d.state.Reservations {
		if reservation.Doubtful {
			in := doubts[reservation.Namespace]
			in.Number++
			doubts[reservation.Namespace] = in
			slots[reservation.slot()] = quota.Max(slots[reservation.slot()], reservation.Amounts)
		}
	}
	for slot, amounts := range slots {
		in := doubts[slot.namespace]
		in.Amounts = quota.Add(in.Amounts, amounts)
		doubts[slot.namespace] = in
	}
	return doubts
}

// gather returns the amounts of each namespace that is a suspect or has a doubtful reservation: its newer reservations are
// no better known than that one. A slot is charged as its largest attempt.
func (d *Draft) gather() map[string]corev1.ResourceList {
	suspected := map[string]corev1.ResourceList{}
	for namespace := range d.state.Suspects {
		suspected[namespace] = corev1.ResourceList{}
	}
	for _, reservation := range d.state.Reservations {
		if reservation.Doubtful {
			suspected[reservation.Namespace] = corev1.ResourceList{}
		}
	}
	for slot := range d.index.slots {
		if held, ok := suspected[slot.namespace]; ok {
			suspected[slot.namespace] = quota.Add(held, d.slotAmounts(slot))
		}
	}
	return suspected
}

// HeldBy returns the amounts that a namespace holds for objects that have not been counted, and when the last of its
// reservations expires. A slot is charged as its largest attempt.
func (s State) HeldBy(namespace string) (held corev1.ResourceList, until time.Time) {
	draft := &Draft{state: s, index: s.Indexed().index}
	for slot, keys := range draft.index.slots {
		if slot.namespace != namespace {
			continue
		}
		held = quota.Add(held, draft.slotAmounts(slot))
		for _, key := range keys {
			if expiry := s.Reservations[key].Expiry; expiry.After(until) {
				until = expiry
			}
		}
	}
	return held, until
}

// isLarge reports whether the asked and held amounts are more than a tenth of the amount that would be free without
// them.
func isLarge(free, asked, held resource.Quantity) bool {
	asked, free = asked.DeepCopy(), free.DeepCopy()
	asked.Add(held)
	free.Add(held)
	asked.Mul(heldPart)
	return asked.Cmp(free) > 0
}
