// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// holding wants what was reported by the last step; -1 for nothing.
func (s *story) holding(want int64) {
	s.t.Helper()
	reported := s.holds
	s.holds = Holds{}
	switch {
	case want < 0 && reported.Quota != "":
		s.t.Errorf("got %v, want nothing reported", reported)
	case want >= 0 && (reported.Quota != "team" || len(reported.Amounts) != 1 || reported.Amounts.Pods().Value() != want):
		s.t.Errorf("got %v, want %d pods reported", reported, want)
	}
}

func TestHoldsAreReportedWithWhatIsKnown(t *testing.T) {
	t.Run("of a ledger that is read, and once a charge is written", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 9), "load")
		s.holding(-1)
		s.step(ms, Loaded{Snapshot: stored(7, 3)}, "swap 7: used 3, 1 reserved")
		s.holding(3)
		s.step(ms, written(8), "committed", "answer 1: Granted")
		s.holding(4)
	})
	t.Run("not of a write that may not have happened", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 9), "load")
		s.step(ms, Loaded{Snapshot: stored(7, 3)}, "swap 7: used 3, 1 reserved")
		s.holding(3)
		s.step(ms, Swapped{Err: errors.New("lost")}, "failed", "wake after 2ms")
		s.holding(-1)
	})
	t.Run("of a ledger that another replica wrote", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, Seen{Snapshot: stored(7, 3)})
		s.holding(3)
		s.step(0, Seen{Snapshot: stored(7, 3)})
		s.holding(-1)
		s.step(0, Seen{Snapshot: holding(8, foreign(5, false))})
		s.holding(10) // without the escrow
	})
	t.Run("of none that is gone", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, Seen{Snapshot: stored(7, 3)})
		s.holding(3)
		s.step(0, Gone{})
		s.holding(-1)
	})
	t.Run("of what is granted from escrow, before it is written", func(t *testing.T) {
		s := taken(t, 100)
		s.holding(11)
		s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
		s.holding(12)
		s.step(ms, Charge{ID: 3, Charge: charge(3, 100).Charge, Probe: true}, "answer 3: Granted", "wake after 998ms")
		s.holding(-1)
		s.step(ms, charge(4, 100), "answer 4: Granted", "wake after 997ms")
		s.holding(13)
		s.step(997*ms, Tick{}, "swap 8: used 10, 4 reserved")
		s.step(ms, written(9), "committed", "wake after 999ms")
		s.holding(13)
		s.step(ms, charge(5, 100), "answer 5: Granted", "wake after 998ms")
		s.holding(14)
	})
	t.Run("of what is granted from escrow on a ledger that another replica wrote", func(t *testing.T) {
		s := taken(t, 100)
		s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
		s.holding(12)
		seen := s.machine.Current()
		draft := ledger.Edit(seen.State)
		draft.Admit(charge(9, 100).Charge.Reservation)
		s.step(ms, Seen{Snapshot: Snapshot{Version: Version{ResourceVersion: 9, UID: "ledger"}, State: draft.State()}}, "wake after 998ms")
		s.holding(13)
	})
}

// recounted is a ledger that another replica wrote: it has counted further, and uses so much.
func recounted(before Snapshot, used int64) Snapshot {
	next := before
	next.Version.ResourceVersion++
	next.State.Used = podsList(used)
	next.State.Counted = map[schema.GroupResource]uint64{pods: next.Version.ResourceVersion}
	return next
}

// What is granted from escrow may be counted before it is recorded. It is in no report twice.
func TestNothingIsReportedTwice(t *testing.T) {
	t.Run("what this machine granted, and another replica counted", func(t *testing.T) {
		s := taken(t, 100)
		s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
		s.holding(12)
		s.step(ms, Seen{Snapshot: recounted(s.machine.Current(), 11)}, "wake after 998ms")
		s.holding(-1)
		s.step(ms, charge(3, 100), "answer 3: Granted", "wake after 997ms")
		s.holding(-1)
	})
	t.Run("what another replica granted, and records once it is counted", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, Seen{Snapshot: holding(8, foreign(5, false))})
		s.holding(10)
		s.step(0, Seen{Snapshot: recounted(s.machine.Current(), 11)})
		s.holding(11)
		recorded := recounted(s.machine.Current(), 11)
		draft := ledger.Edit(recorded.State)
		draft.Admit(charge(1, 100).Charge.Reservation)
		recorded.State = draft.State()
		s.step(0, Seen{Snapshot: recorded})
		s.holding(-1)
		settled := recounted(recorded, 11)
		draft = ledger.Edit(settled.State)
		draft.Release(charge(1, 100).Charge.Reservation.Key())
		settled.State = draft.State()
		s.step(0, Seen{Snapshot: settled})
		s.holding(11)
	})
	t.Run("but by a count", func(t *testing.T) {
		s := taken(t, 100)
		s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
		s.step(ms, charge(3, 100), "answer 3: Granted", "wake after 998ms")
		s.holding(13)
		s.counting = true
		s.step(ms, Counted{Freed: true}, "observe 3")
		s.step(0, Observed{Observation: counted(11, 9, 2)}, "wake after 17ms")
		s.holding(13) // the second is counted, the first and the third are not
	})
}

// The most that is reported is the most that was used and reserved.
func TestTheMostThatIsReportedIsTheMostThatWasHeld(t *testing.T) {
	for _, advisory := range []bool{false, true} {
		t.Run(fmt.Sprintf("advisory %v", advisory), func(t *testing.T) {
			limit := int64(100)
			ask := func(id RequestID) Charge {
				asked := charge(id, limit)
				if advisory {
					asked.Charge.Limits.Hard = podsList(3)
					asked.Charge.Limits.Advisory = map[corev1.ResourceName]bool{corev1.ResourcePods: true}
				}
				return asked
			}
			s := tell(t, escrowing())
			most, reported := int64(0), int64(0)
			held := int64(10)
			step := func(delta int64, event Event, want ...string) {
				t.Helper()
				s.holds = Holds{}
				s.step(ms, event, want...)
				held += delta
				most = max(most, held)
				if s.holds.Quota != "" {
					reported = max(reported, s.holds.Amounts.Pods().Value())
				}
			}
			step(0, Seen{Snapshot: stored(7, 10)})
			step(0, ask(1), "swap 7: used 10, 2 reserved")
			step(1, written(8), "committed", "answer 1: Granted", "wake after 999ms")
			step(1, ask(2), "answer 2: Granted", "wake after 998ms")
			step(1, ask(3), "answer 3: Granted", "wake after 997ms")
			step(-1, Cancel{Reserved: ledger.Key{UID: "3"}}, "wake after 996ms")
			step(1, ask(4), "answer 4: Granted", "wake after 995ms")
			step(0, ask(5), "swap 8: used 10, 5 reserved")
			step(1, written(9), "committed", "answer 5: Granted", "wake after 999ms")
			step(1, ask(6), "answer 6: Granted", "wake after 998ms")
			step(-1, Cancel{Reserved: ledger.Key{UID: "6"}}, "wake after 997ms")
			if most != 15 || reported != most {
				t.Errorf("at most %d were reported, and %d were held", reported, most)
			}
		})
	}
}

// What the limits would have refused is said once the charge is written.
func TestRemarksTravelWithTheAnswer(t *testing.T) {
	s := tell(t, Options{})
	asked := charge(1, 3)
	asked.Charge.Limits.Advisory = map[corev1.ResourceName]bool{corev1.ResourcePods: true}
	s.step(0, asked, "load")
	s.step(ms, Loaded{Snapshot: stored(7, 3)}, "swap 7: used 3, 1 reserved")
	effects := s.machine.Step(s.now, written(8))
	for _, effect := range effects {
		if answer, ok := effect.(Answer); ok {
			granted, _ := answer.Decision.(ledger.Granted)
			if len(granted.Remarks) != 1 || granted.Remarks[0].Kind != ledger.Unenforced {
				t.Errorf("got %#v, want one remark", answer.Decision)
			}
			return
		}
	}
	t.Errorf("got %v, want an answer", effects)
}
