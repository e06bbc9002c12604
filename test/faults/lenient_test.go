// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
)

// ledgerHistory says from which revision of a ledger to which one it held something for a request.
type ledgerHistory struct {
	// reservation, as it is stored -> since when the ledger holds it
	held map[string]int64
	// UID of an object or a request -> the times in which the ledger held something for it
	past map[types.UID][][2]int64
}

func newLedgerHistory() *ledgerHistory {
	return &ledgerHistory{held: map[string]int64{}, past: map[types.UID][][2]int64{}}
}

// read takes in a version of the ledger.
func (l *ledgerHistory) read(revision int64, reservations []string) {
	now := make(map[string]int64, len(reservations))
	for _, reservation := range reservations {
		now[reservation] = revision
		if since, known := l.held[reservation]; known {
			now[reservation] = since
		}
	}
	for reservation, since := range l.held {
		if _, still := now[reservation]; !still {
			l.note(reservation, since, revision)
		}
	}
	l.held = now
}

func (l *ledgerHistory) note(reservation string, since, until int64) {
	for _, uid := range uids.FindAllString(reservation, -1) {
		l.past[types.UID(uid)] = append(l.past[types.UID(uid)], [2]int64{since, until})
	}
}

// has tells whether something was held for a write when it was stored, or was recorded later, as what is granted from
// escrow is, but by the revision upTo. The object was written before by the revision after.
func (l *ledgerHistory) has(uid types.UID, after, stored, upTo int64) bool {
	for reservation, since := range l.held {
		if after < since && since <= upTo && strings.Contains(reservation, string(uid)) {
			return true
		}
	}
	return slices.ContainsFunc(l.past[uid], func(held [2]int64) bool {
		return after < held[0] && held[0] <= upTo && held[1] > stored
	})
}

// allow notes that a quota lets requests pass that nobody can decide, until the returned function is called.
func (w *witness) allow(quota string) (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lenient := &[2]time.Time{time.Now()}
	w.lenient[quota] = append(w.lenient[quota], lenient)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		lenient[1] = time.Now()
	}
}

// wasUnchecked tells whether a quota that lets requests pass which nobody can decide did so with a write: the client was
// warned, or the quota held nothing for it. One that isn't known was decided.
//
// A replica that was late may have reserved for the write after all: once the client was warned, or once the API server had
// waited for as long as it waits for an answer. So what was recorded only after such a write was stored decided nothing.
func (w *witness) wasUnchecked(quota string, write load.Write, after int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if write.UID == "" || !slices.ContainsFunc(w.lenient[quota], func(lenient *[2]time.Time) bool {
		return !write.Answered.Before(lenient[0]) && (lenient[1].IsZero() || write.Sent.Before(lenient[1]))
	}) {
		return false
	}
	if slices.Contains(write.Unchecked, quota) || slices.Contains(write.Unchecked, "") {
		return true
	}
	upTo := int64(math.MaxInt64)
	if write.Answered.Sub(write.Sent) >= reach.Timeout {
		upTo = write.Revision
	}
	ledger := w.ledgers[quota]
	return ledger == nil || !ledger.has(write.UID, after, write.Revision, upTo)
}

func TestWhatNobodyDecidedIsInNoLedger(t *testing.T) {
	const (
		uid   = "3f0c6c1e-57a5-4c50-8b6e-0d3ea64b1df0"
		held  = "d94a6a51-0b0e-4e60-a1a4-52fd0b0a3f11"
		other = "8d4d3a0e-11c2-4b8e-9c58-6f6c1ce0b7aa"
	)
	sent := time.Now()
	write := func(uid types.UID, revision int64, after time.Duration) load.Write {
		return load.Write{UID: uid, Revision: revision, Sent: sent.Add(after), Answered: sent.Add(after)}
	}
	warned := func(write load.Write, unchecked ...string) load.Write {
		write.Unchecked = unchecked
		return write
	}
	lasting := func(write load.Write, took time.Duration) load.Write {
		write.Answered = write.Sent.Add(took)
		return write
	}
	w := newWitness()
	w.lenient["team"] = []*[2]time.Time{{sent, sent.Add(time.Minute)}}
	w.ledgers["team"] = newLedgerHistory()
	w.ledgers["team"].read(5, []string{"pods web/a " + uid})
	w.ledgers["team"].read(8, []string{"pods web/b " + held})
	for name, test := range map[string]struct {
		quota string
		write load.Write
		after int64
		want  bool
	}{
		"what is held":                                 {quota: "team", write: write(held, 9, 0)},
		"what is held for the write before":            {quota: "team", write: write(held, 10, 0), after: 9, want: true},
		"what was held":                                {quota: "team", write: write(uid, 6, 0)},
		"what was released before it was stored":       {quota: "team", write: write(uid, 9, 0), want: true},
		"what was held for the write before":           {quota: "team", write: write(uid, 7, 0), after: 6, want: true},
		"what was recorded after it was stored":        {quota: "team", write: write(uid, 4, 0)},
		"what was recorded too late to have let it in": {quota: "team", write: lasting(write(uid, 4, 0), reach.Timeout), want: true},
		"what was held before it took so long":         {quota: "team", write: lasting(write(uid, 6, 0), reach.Timeout)},
		"what was never held":                          {quota: "team", write: write(other, 6, 0), want: true},
		"what was never held, before that is let by":   {quota: "team", write: write(other, 6, -time.Second)},
		"what was never held, after that":              {quota: "team", write: write(other, 6, time.Minute)},
		"what the client was warned of":                {quota: "team", write: warned(write(uid, 6, 0), "team"), want: true},
		"what the client was warned of for all":        {quota: "team", write: warned(write(uid, 6, 0), ""), want: true},
		"what the client was warned of for another":    {quota: "team", write: warned(write(uid, 6, 0), "strict")},
		"what another quota held":                      {quota: "strict", write: write(other, 6, 0)},
		"what isn't known":                             {quota: "team", write: write("", 6, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.wasUnchecked(test.quota, test.write, test.after); got != test.want {
				t.Errorf("unchecked: got %t, want %t", got, test.want)
			}
		})
	}
}
