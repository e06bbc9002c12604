// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var errNoAnswer = errors.New("no answer")

// Reservations that may have been made are released, and requested releases still
// are.
func TestABatchWhoseCallsFailIsTriedForThreeSeconds(t *testing.T) {
	const refusal = "answer 1: its ledger can't be read or written: no answer"
	s := tell(t, Options{})
	s.step(0, charge(1, 1), "load")
	s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(2*time.Second, Swapped{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load")
	s.step(900*ms, Loaded{Err: errNoAnswer}, "failed", "wake after 4ms")
	s.step(4*ms, Tick{}, "load")
	s.step(93*ms, Loaded{Err: errNoAnswer}, "failed", refusal, "load the ledger")
	s.step(time.Second, Loaded{Err: errNoAnswer}, "failed", "wake after 8ms")
	s.step(0, charge(2, 1), "wake after 8ms")
	s.step(8*ms, Tick{}, "load the ledger")
	reserved := stored(8, 0)
	draft := ledger.Edit(reserved.State)
	draft.Reserve(charge(1, 1).Charge)
	reserved.State = draft.State()
	s.step(ms, Loaded{Snapshot: reserved}, "swap 8: used 0, 0 reserved")
	s.step(ms, written(9), "committed", "swap 9: used 0, 1 reserved")
	s.step(ms, written(10), "committed", "answer 2: Granted")
}

// The ledger of a quota in trouble is tried all the time, so nearly always a batch fails already when a caller comes. A call that
// isn't answered takes two seconds.
func TestACallerWaitsForThreeSecondsAndACallWhicheverBatchFails(t *testing.T) {
	for _, call := range []time.Duration{5 * ms, 1490 * ms, 2 * time.Second} {
		for came := time.Duration(0); came < 5*time.Second; came += 97 * ms {
			waited, calls := waits(call, came)
			if waited < triedFor || waited > triedFor+call || call < 10*ms && calls < 11 {
				t.Errorf("calls of %s: a caller that came after %s was answered after %s and %d calls", call, came, waited, calls)
			}
		}
	}
}

// waits returns how long a caller waits and how many calls fail meanwhile, if each takes so long.
func waits(call, came time.Duration) (waited time.Duration, calls int) {
	machine, now, next := New(Options{MaxWaiting: 10}), at(0), at(0)
	var reply Event
	step := func(event Event) {
		for _, effect := range machine.Step(now, event) {
			switch effect := effect.(type) {
			case Load:
				reply, next = Loaded{Err: errNoAnswer}, now.Add(call)
			case WakeAt:
				reply, next = Tick{}, effect.Time
			case Answer:
				if effect.ID == 2 {
					waited = now.Sub(at(came))
				}
			}
		}
	}
	step(Edit{Change: func(*ledger.Draft) {}, Until: at(time.Minute)})
	step(charge(1, 1))
	for arrived := false; waited == 0; {
		if !arrived && !next.Before(at(came)) {
			arrived, now = true, at(came)
			step(charge(2, 1))
			continue
		}
		now = next
		if _, failed := reply.(Loaded); failed && arrived {
			calls++
		}
		step(reply)
	}
	return waited, calls
}

// Its three seconds begin again with each write before its own that succeeds.
func TestACallerWaitsLongerIfTheLedgerWorks(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, charge(1, 9), "load")
	s.step(0, charge(2, 9))
	s.step(1900*ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(1900*ms, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 2 reserved")
	s.step(1900*ms, Swapped{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load")
	s.step(1100*ms, Loaded{Err: errNoAnswer}, "failed", "answer 2: its ledger can't be read or written: no answer", "load the ledger")
}

// A check that is given up leaves a batch that has nothing to write. That it ends says nothing of the ledger.
func TestACallerWaitsNoLongerForABatchThatWritesNothing(t *testing.T) {
	nothing := func(*ledger.Draft) {}
	s := tell(t, Options{})
	s.step(0, Edit{Change: nothing, Until: at(time.Minute)}, "load the ledger")
	s.step(0, Edit{Change: nothing, Written: true, Until: at(2900 * ms)})
	s.step(0, Edit{Change: nothing, Until: at(time.Minute)})
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 0 reserved")
	s.step(10*ms, charge(1, 9))
	s.step(2900*ms, Swapped{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load the ledger")
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(100*ms, Swapped{Err: errNoAnswer}, "failed", "answer 1: its ledger can't be read or written: no answer", "load the ledger")
}

// It waited for room, and not for the ledger.
func TestAParkedChargeWaitsLongerIfTheLedgerFailsAtLast(t *testing.T) {
	s := tell(t, Options{})
	patient := charge(1, 1)
	patient.Patience = at(2500 * ms)
	s.step(0, patient, "load")
	s.step(0, Loaded{Snapshot: stored(7, 1)}, "wake after 2.5s")
	s.step(2500*ms, Tick{}, "load")
	s.step(time.Second, Loaded{Err: errNoAnswer}, "failed", "wake after 2ms")
}

func TestAPauseIsShortenedForACallerThatComes(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, Edit{Change: func(*ledger.Draft) {}, Until: at(time.Minute)}, "load the ledger")
	for rest := 2 * ms; rest < time.Second; rest *= 2 {
		s.step(0, Loaded{Err: errNoAnswer}, "failed", fmt.Sprintf("wake after %s", rest))
		s.step(rest, Tick{}, "load the ledger")
	}
	s.step(0, Loaded{Err: errNoAnswer}, "failed", "wake after 1s")
	s.step(100*ms, Edit{Change: func(*ledger.Draft) {}}, "wake after 900ms") // without a caller
	s.step(100*ms, charge(1, 1), "wake after 250ms")
	s.step(100*ms, charge(2, 1), "wake after 150ms")
}

// No pause lasts longer than a batch is tried, and while a caller waits the pauses stay short.
func TestTheLastRestEndsWithTheTimeOfTheBatch(t *testing.T) {
	for name, test := range map[string]struct {
		event   Event
		load    string
		longest time.Duration
		again   int
		last    time.Duration
		end     []string
	}{
		"a caller waits": {
			event: charge(1, 1), load: "load", longest: shortRest, again: 10, last: 246 * ms,
			end: []string{"failed", "answer 1: its ledger can't be read or written: no answer"},
		},
		"nobody waits": {
			event: Edit{Change: func(*ledger.Draft) {}, Until: time.Unix(1<<40, 0)}, load: "load the ledger", longest: longestRest, again: 1, last: 978 * ms,
			end: []string{"failed", "load the ledger"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, Options{})
			s.step(0, test.event, test.load)
			fails := func(rest time.Duration) {
				s.step(0, Loaded{Err: errNoAnswer}, "failed", fmt.Sprintf("wake after %s", rest))
				s.step(rest, Tick{}, test.load)
			}
			for rest := 2 * ms; rest < test.longest; rest *= 2 {
				fails(rest)
			}
			for range test.again {
				fails(test.longest)
			}
			fails(test.last)
			s.step(0, Loaded{Err: errNoAnswer}, test.end...)
		})
	}
}

func TestTheEntryThatALedgerCannotHaveFailsAlone(t *testing.T) {
	rejected := Swapped{Err: fmt.Errorf("too large: %w", ErrRejected)}
	s := tell(t, Options{})
	s.step(0, charge(1, 9), "load")
	for id := range RequestID(3) {
		s.step(0, charge(2+id, 9))
	}
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 4 reserved")
	s.step(0, rejected, "failed", "swap 8: used 0, 3 reserved")
	s.step(0, charge(5, 9))
	s.step(0, written(9), "committed", "answer 2: Granted", "answer 3: Granted", "swap 9: used 0, 5 reserved")
	s.step(0, rejected, "failed", "swap 9: used 0, 4 reserved")
	s.step(0, rejected, "failed", "answer 4: too large: the ledger can't be stored so", "swap 9: used 0, 4 reserved")
	s.step(0, written(10), "committed", "answer 5: Granted")
}

// It may be the settle that is to blame. Then no charge fails for it.
func TestASettleThatIsRejectedKeepsNobodyWaiting(t *testing.T) {
	rejected := Swapped{Err: ErrRejected}
	s := tell(t, Options{})
	s.counting = true
	s.step(0, Seen{Snapshot: stored(7, 0)}, "observe 0")
	s.step(0, Observed{Observation: counted(1, 5)}, "swap 7: used 1, 0 reserved")
	s.step(0, charge(1, 9))
	s.step(0, rejected, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "observe 0")
	s.step(0, Observed{Observation: counted(1, 5)}, "swap 7: used 1, 0 reserved")
	s.step(3*time.Second, rejected, "failed", "observe 0")
	s.step(0, Observed{Observation: counted(1, 5)}, "swap 7: used 1, 1 reserved")
	s.step(0, rejected, "failed", "swap 7: used 0, 1 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted", "observe 1")
}

// It is how a machine finds out that a ledger can be written again.
func TestALedgerIsWrittenAsAProofThoughNothingChanges(t *testing.T) {
	proof := Edit{Change: func(*ledger.Draft) {}, Written: true, Until: time.Unix(1<<40, 0)}
	s := tell(t, Options{})
	s.step(0, proof, "load the ledger")
	s.step(0, Loaded{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load the ledger")
	s.step(ms, Loaded{Snapshot: stored(7, 1)}, "swap 7: used 1, 0 reserved")
	s.step(ms, written(7)) // the API server has stored nothing new
	s.step(time.Second, proof, "swap 7: used 1, 0 reserved")
	s.step(ms, written(8), "committed")
	s.step(time.Second, Gone{})
	s.step(0, proof, "load the ledger")
	s.step(ms, Loaded{}) // there is nothing to write over
}

// The caller of a charge has gone that a lost write may have reserved, and that a rejected one
// has put back into the queue.
func TestPossibleReservationsOfALostWriteAreReleasedFromTheQueue(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, charge(1, 9), "load")
	s.step(0, charge(2, 9))
	s.step(0, charge(3, 9))
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 3 reserved")
	s.step(0, Swapped{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load")
	reserved := stored(9, 0)
	draft := ledger.Edit(reserved.State)
	for id := range RequestID(3) {
		draft.Reserve(charge(1+id, 9).Charge)
	}
	draft.Release(charge(1, 9).Charge.Reservation.Key()) // so that there is something to write
	reserved.State = draft.State()
	s.step(0, Loaded{Snapshot: reserved}, "swap 9: used 0, 2 reserved")
	s.step(0, Swapped{Err: ErrRejected}, "failed", "swap 9: used 0, 2 reserved")
	s.step(0, Cancel{ID: 3, Reserved: charge(3, 9).Charge.Reservation.Key(), Until: time.Unix(1<<40, 0)})
	s.step(0, written(10), "committed", "answer 2: Granted", "swap 10: used 0, 1 reserved")
}
