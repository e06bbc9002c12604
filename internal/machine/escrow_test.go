// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func escrowing() Options {
	return Options{Pace: 40 * ms, Escrow: EscrowOptions{
		Holder: "replica", UID: "own", Life: 2 * time.Second, Recall: 2200 * ms, Every: time.Second, Busy: 1, Parts: 4,
	}}
}

// holding is a ledger of which 10 pods are used, with escrows.
func holding(version uint64, escrows ...ledger.Escrow) Snapshot {
	snapshot := stored(version, 10)
	draft := ledger.Edit(snapshot.State)
	for _, escrow := range escrows {
		draft.Hold(escrow)
	}
	snapshot.State = draft.State()
	return snapshot
}

func foreign(number int64, recalled bool) ledger.Escrow {
	return escrowOf("other", number, recalled)
}

func escrowOf(process types.UID, number int64, recalled bool) ledger.Escrow {
	return ledger.Escrow{EscrowKey: ledger.EscrowKey{Process: process, Number: 1}, Amounts: podsList(number), Recalled: recalled}
}

// taken tells a story up to where the machine holds an escrow of two pods, taken at 0, in version 8 of a
// ledger that has one reservation besides.
func taken(t *testing.T, limit int64) *story {
	t.Helper()
	s := tell(t, escrowing())
	s.step(0, Seen{Snapshot: stored(7, 10)})
	s.step(0, charge(1, limit), "swap 7: used 10, 2 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted", "wake after 1s")
	return s
}

// Grants are recorded in one write, which takes twice the recent demand. It comes sooner once less than half is left, but not
// at once.
func TestGrantsFromEscrow(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(ms, charge(3, 100), "answer 3: Granted", "wake after 248ms")
	s.step(ms, charge(4, 100), "swap 8: used 10, 5 reserved")
	s.step(ms, charge(5, 100)) // the next escrow is not more than the last, until it is stored
	s.step(ms, written(9), "committed", "answer 4: Granted", "answer 5: Granted", "wake after 998ms")
	if got := s.machine.Current().State.ForeignEscrows("")[0].Amounts; got.Pods().Value() != 8 {
		t.Errorf("escrow: got %v, want twice what was granted", got)
	}
	s.step(ms, charge(6, 100), "answer 6: Granted", "wake after 997ms")
}

// Far below ledger.MaxBytes, many grants are left unrecorded. Then a charge waits for the write, so that what replicas leave
// unrecorded together fits into the ledger.
func TestGrantsThatAreNotRecordedAreBounded(t *testing.T) {
	s := tell(t, escrowing())
	s.machine.escrow.until, s.machine.escrow.written = s.now.Add(2*time.Second), s.now
	s.step(0, Seen{Snapshot: holding(7, escrowOf("own", 5000, false))}, "wake after 1s")
	granted := 0
	for id := RequestID(1); s.machine.spend(id, charge(id, 1_000_000).Charge, false); id++ {
		granted++
	}
	size := charge(1000, 1).Charge.Reservation.Size()
	if most := ledger.MaxBytes / 8 / size; granted < most*9/10 || granted > most*11/10 {
		t.Errorf("%d grants of %d bytes were left unrecorded, want about %d", granted, size, most)
	}
}

// A caller that asks seldom causes no more writes than before.
func TestAnEscrowIsReturned(t *testing.T) {
	s := taken(t, 100)
	s.step(time.Second, Tick{}, "swap 8: used 10, 2 reserved")
	s.step(ms, written(9), "committed", "wake after 999ms")
	s.step(1999*ms, Tick{}, "swap 9: used 10, 1 reserved")
	s.step(ms, written(10), "committed")

	s = taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(ms, Return{}, "swap 8: used 10, 2 reserved")
	s.step(ms, charge(3, 100))
	s.step(ms, written(9), "committed", "swap 9: used 10, 3 reserved")
}

// Near the limit there is none.
func TestAnEscrowIsAPartOfWhatIsFree(t *testing.T) {
	for limit, want := range map[int64]int{18: 2, 15: 2, 14: 1, 11: 1} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s := tell(t, escrowing())
			s.step(0, Seen{Snapshot: stored(7, 10)})
			s.step(0, charge(1, limit), fmt.Sprintf("swap 7: used 10, %d reserved", want))
		})
	}
}

// Nothing is granted on knowledge that is older than an escrow's life.
func TestAnEscrowEnds(t *testing.T) {
	s := taken(t, 100)
	s.step(1999*ms, charge(2, 100), "answer 2: Granted", "swap 8: used 10, 3 reserved")
	s = taken(t, 100)
	s.step(2*time.Second, charge(2, 100), "swap 8: used 10, 3 reserved")

	s = taken(t, 100)
	s.now = s.now.Add(3 * time.Second).Round(0) // the machine slept, and its own clock with it
	s.step(0, charge(2, 100), "swap 8: used 10, 3 reserved")
}

// A write may be begun long after it was asked for, because others are before it. The escrow that it takes
// ends no later.
func TestAnEscrowThatIsTakenLateHasEnded(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(999*ms, Tick{}, "swap 8: used 10, 3 reserved")
	s.step(1500*ms, charge(3, 100))
	s.step(500*ms, written(9), "committed", "swap 9: used 10, 4 reserved")
	s.step(ms, written(10), "committed", "answer 3: Granted", "wake after 999ms")
}

// If the reply to a write was lost, it is unknown whether it happened, and so is the room for grants.
func TestNothingIsGrantedInDoubt(t *testing.T) {
	s := taken(t, 100)
	s.step(time.Second, Tick{}, "swap 8: used 10, 2 reserved")
	s.step(ms, charge(2, 100), "answer 2: Granted")
	s.step(ms, Swapped{Err: errors.New("lost")}, "failed", "wake after 2ms")
	s.step(ms, charge(3, 100), "wake after 1ms")
	s.step(ms, Tick{}, "load the ledger")
	s.step(ms, Loaded{Snapshot: holding(9, escrowOf("own", 2, false))},
		"swap 9: used 10, 2 reserved")
	s.step(ms, charge(4, 100)) // the write that was lost may still happen
	s.step(ms, written(10), "committed", "answer 3: Granted", "answer 4: Granted", "wake after 248ms")
}

// A charge that is not needed is given back: to the escrow, or in the ledger if
// it may have it.
func TestAChargeFromEscrowIsCancelled(t *testing.T) {
	key := func(id RequestID) ledger.Key { return charge(id, 0).Charge.Reservation.Key() }
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(ms, charge(3, 100), "answer 3: Granted", "wake after 248ms")
	s.step(ms, Cancel{Reserved: key(2)}, "wake after 247ms")
	s.step(ms, charge(4, 100), "answer 4: Granted", "wake after 246ms")
	s.step(246*ms, Tick{}, "swap 8: used 10, 4 reserved")
	s.step(ms, Cancel{Reserved: key(3)})
	s.step(ms, written(9), "committed", "wake after 20ms")
	s.step(20*ms, Tick{}, "swap 9: used 10, 3 reserved")
}

// A probe is answered from escrow, and holds nothing.
func TestAProbeOfEscrow(t *testing.T) {
	s := taken(t, 100)
	for id := range RequestID(5) {
		probe := charge(10+id, 100)
		probe.Probe = true
		s.step(0, probe, fmt.Sprintf("answer %d: Granted", 10+id), "wake after 1s")
	}
}

// A charge that would be denied while another replica holds escrow asks for it,
// and waits for it.
func TestADenialAsksForEscrow(t *testing.T) {
	s := tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, false))})
	s.step(0, charge(1, 12), "swap 7: used 10, 1 reserved")
	if !s.asksBack() {
		t.Error("want it asked back")
	}
	s.step(ms, written(8), "committed", "wake after 2.199s")
	s.step(ms, Seen{Snapshot: holding(9)}, "wake after 9ms")
	s.step(9*ms, Tick{}, "swap 9: used 10, 1 reserved")
	s.step(ms, written(10), "committed", "answer 1: Granted")

	s = tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, true))})
	s.step(0, charge(1, 12), "wake after 2.2s")
	s.step(2200*ms, Tick{}, "load")
	s.step(ms, Loaded{Snapshot: holding(7, foreign(2, true))}, "answer 1: Denied") // the holder doesn't answer
}

// asksBack reports whether the write under way asks for an escrow.
func (s *story) asksBack() bool {
	for _, escrow := range s.machine.work.next.ForeignEscrows("own") {
		if !escrow.Recalled {
			return false
		}
	}
	return true
}

// The basis of grants must not change while a replica grants on it: the limits, the namespaces.
func TestAChangeAwaitsEscrows(t *testing.T) {
	fence := Edit{ID: 1, Change: func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 2, Hard: podsList(11)}) }}
	s := tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, false))})
	s.step(0, fence, "swap 7: used 10, 1 reserved")
	if !s.asksBack() || s.machine.work.next.Fence.Generation != 0 {
		t.Error("want it asked back before anything is changed")
	}
	s.step(ms, written(8), "committed", "wake after 2.2s", "wake after 2.2s")
	s.step(ms, Seen{Snapshot: holding(9)}, "swap 9: used 10, 0 reserved")
	s.step(ms, written(10), "committed", "answer 1: Granted")

	s = tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, true))})
	s.step(20*ms, fence, "wake after 2.18s")
	s.step(2180*ms, Tick{}, "swap 7: used 10, 1 reserved") // nothing is granted from it any more
	s.step(ms, written(8), "committed", "answer 1: Granted")

	s = tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, true))})
	s.step(20*ms, fence, "wake after 2.18s")
	s.step(2180*ms, Tick{}, "swap 7: used 10, 1 reserved")
	s.step(time.Second, Swapped{Err: errNoAnswer}, "failed", "wake after 2ms") // it has waited for the ledger for one second
}

// The own escrow goes with such a change, and first if another replica's is waited for: that may wait, too.
func TestAChangeReturnsTheOwnEscrow(t *testing.T) {
	fence := Edit{ID: 5, Change: func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 2, Hard: podsList(11)}) }}
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(20*ms, fence, "swap 8: used 10, 2 reserved")
	s.step(ms, charge(3, 100))
	s.step(ms, written(9), "committed", "answer 5: Granted", "load") // it would be denied

	s = taken(t, 100)
	both := s.machine.Current()
	draft := ledger.Edit(both.State)
	draft.Hold(foreign(3, false))
	both.State, both.Version.ResourceVersion = draft.State(), 9
	s.step(ms, Seen{Snapshot: both}, "wake after 999ms")
	s.step(40*ms, fence, "swap 9: used 10, 2 reserved")
	s.step(ms, written(10), "committed", "wake after 2.2s", "wake after 2.2s")
}

// An escrow that is asked back is returned at once, and none follows for a second.
func TestARecalledEscrowIsReturned(t *testing.T) {
	s := taken(t, 100)
	recalled := s.machine.Current()
	draft := ledger.Edit(recalled.State)
	draft.Recall("other")
	recalled.State, recalled.Version.ResourceVersion = draft.State(), 9
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(ms, Seen{Snapshot: recalled}, "swap 9: used 10, 2 reserved")
	s.step(ms, written(10), "committed")
	s.step(40*ms, charge(3, 100), "swap 10: used 10, 3 reserved")
	s.step(ms, written(11), "committed", "answer 3: Granted")
	s.step(time.Second, charge(4, 100), "swap 11: used 10, 5 reserved")
	next := s.machine.work.next.ForeignEscrows("other")
	if len(next) != 1 || next[0].Life() == recalled.State.ForeignEscrows("other")[0].Life() {
		t.Errorf("got %v, want one that nobody takes for the one that was asked back", next)
	}
}

// If the API server won't store the grants, the escrow holds the room until it
// ends.
func TestGrantsThatCannotBeRecorded(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(999*ms, Tick{}, "swap 8: used 10, 3 reserved")
	s.step(ms, Swapped{Err: ErrRejected}, "failed")
	if got := s.machine.Current().State.ForeignEscrows("")[0].Amounts; got.Pods().Value() != 2 {
		t.Errorf("got %v, want the escrow charged", got)
	}
	s.step(ms, charge(3, 100), "swap 8: used 10, 4 reserved") // with another escrow
}

// A charge that the API server rejects doesn't cost the escrow.
func TestARejectedChargeBesideEscrow(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	update := charge(3, 100) // an update, which is not granted from escrow
	update.Charge.Reservation.From = "7"
	s.step(ms, update, "swap 8: used 10, 4 reserved")
	s.step(ms, Swapped{Err: ErrRejected}, "failed", "swap 8: used 10, 3 reserved")
	s.step(ms, written(9), "committed", "swap 9: used 10, 4 reserved")
	s.step(ms, Swapped{Err: ErrRejected}, "failed", "answer 3: the ledger can't be stored so", "wake after 998ms")
	if got := s.machine.Current().State.ForeignEscrows("")[0].Amounts; got.Pods().Value() != 4 {
		t.Errorf("got %v, want the escrow as it was taken", got)
	}
}

// A request that would never fit is refused in time, even if others hold escrow.
func TestAHopelessChargeAsksForNothing(t *testing.T) {
	s := tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, false))})
	big := charge(1, 12)
	big.Charge.Reservation.Amounts = podsList(3)
	s.step(0, big, "load")
	s.step(ms, Loaded{Snapshot: holding(7, foreign(2, false))}, "answer 1: Denied")
}

// A charge waits for escrow once: others may take another one again and again.
func TestADenialWaitsOnce(t *testing.T) {
	s := tell(t, escrowing())
	s.step(0, Seen{Snapshot: holding(7, foreign(2, false))})
	s.step(0, charge(1, 12), "swap 7: used 10, 1 reserved")
	s.step(ms, written(8), "committed", "wake after 2.199s")
	again := foreign(2, false)
	again.Expiry = again.Expiry.Add(time.Second)
	s.step(time.Second, Seen{Snapshot: holding(9, again)}, "swap 9: used 10, 1 reserved")
	s.step(ms, written(10), "committed", "wake after 1.198s")
	s.step(1198*ms, Tick{}, "load")
	s.step(ms, Loaded{Snapshot: holding(10, again)}, "answer 1: Denied")
}

// A ledger that can't be read is tried again once a second.
func TestARecordThatFailsIsTriedAgain(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	s.step(999*ms, Tick{}, "swap 8: used 10, 3 reserved")
	s.step(ms, Swapped{Err: ErrConflict}, "conflicted", "load the ledger")
	s.step(ms, Loaded{Err: ErrUnreadable}, "failed", "wake after 998ms")
}

// Grants under a quota that is gone are not charged to a quota of the same name.
func TestEscrowOfAQuotaThatIsGone(t *testing.T) {
	s := taken(t, 100)
	s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
	next := stored(20, 0)
	next.State.Quota = "next"
	s.step(ms, Seen{Snapshot: next})
	s.step(time.Minute, Tick{})
}

// A settle that changes no answer waits for a second.
func TestASettleFarFromTheLimit(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.step(0, Seen{Snapshot: stored(7, 10)})
	s.step(0, charge(1, 100), "swap 7: used 10, 1 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted")
	s.counting = true
	count := counted(12, 1)
	count.Hard = podsList(100)
	s.step(0, Counted{}, "wake after 5ms")
	s.step(5*ms, Tick{}, "observe 1")
	s.step(0, Observed{Observation: count}, "wake after 995ms")
	near := counted(12, 1)
	near.Hard = podsList(12)
	s.step(ms, Counted{}, "wake after 99ms")
	s.step(99*ms, Tick{}, "observe 1")
	s.step(0, Observed{Observation: near}, "swap 8: used 12, 1 reserved")
}

// A request that is charged again, because another quota denied it for the moment, has the same key as before. The release of its
// first charge may still wait for a write.
func TestAChargeIsNotGrantedFromEscrowBeforeItsReleaseIsWritten(t *testing.T) {
	for name, reply := range map[string]Event{
		"the write that recorded it succeeds": written(9),
		"it meets a conflict":                 Swapped{Err: ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			s := taken(t, 100)
			s.step(ms, charge(2, 100), "answer 2: Granted", "wake after 999ms")
			s.step(ms, charge(3, 100), "answer 3: Granted", "wake after 248ms")
			s.step(ms, charge(4, 100), "swap 8: used 10, 5 reserved")
			again := charge(2, 100)
			again.ID = 5
			key := again.Charge.Reservation.Key()
			s.step(ms, Cancel{Reserved: key, Until: at(time.Hour)})

			now, granted := s.now, false
			for events := []Event{again, reply, Tick{}, Tick{}, Tick{}}; len(events) > 0; events = events[1:] {
				now = now.Add(50 * ms)
				for _, effect := range s.machine.Step(now, events[0]) {
					switch effect := effect.(type) {
					case Swap:
						events = append(events, written(effect.Previous.ResourceVersion+1))
					case Load:
						events = append(events, Loaded{Snapshot: s.machine.Current()})
					case Answer:
						granted = granted || effect.ID == 5 && ledger.IsGranted(effect.Decision)
					default:
					}
				}
			}
			now = now.Add(time.Minute)
			for _, effect := range s.machine.Step(now, Return{}) {
				if swap, ok := effect.(Swap); ok {
					s.machine.Step(now, written(swap.Previous.ResourceVersion+1))
				}
			}
			if _, reserved := s.machine.Current().State.Reservations[key]; !granted || !reserved {
				t.Errorf("granted %t, reserved %t", granted, reserved)
			}
		})
	}
}
