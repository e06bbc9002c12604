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
	s.step(93*ms, Loaded{Err: errNoAnswer}, "failed", refusal, "load")
	s.step(time.Second, Loaded{Err: errNoAnswer}, "failed", "wake after 8ms")
	s.step(0, charge(2, 1), "wake after 8ms")
	s.step(8*ms, Tick{}, "load")
	reserved := stored(8, 0)
	draft := ledger.Edit(reserved.State)
	draft.Reserve(charge(1, 1).Charge)
	reserved.State = draft.State()
	s.step(ms, Loaded{Snapshot: reserved}, "swap 8: used 0, 0 reserved")
	s.step(ms, written(9), "committed", "swap 9: used 0, 1 reserved")
	s.step(ms, written(10), "committed", "answer 2: Granted")
}

// No pause lasts longer than a batch is tried, and while a caller waits the pauses stay short.
func TestTheLastRestEndsWithTheTimeOfTheBatch(t *testing.T) {
	for name, test := range map[string]struct {
		event   Event
		longest time.Duration
		again   int
		last    time.Duration
		end     []string
	}{
		"a caller waits": {
			event: charge(1, 1), longest: shortRest, again: 10, last: 246 * ms,
			end: []string{"failed", "answer 1: its ledger can't be read or written: no answer"},
		},
		"nobody waits": {
			event: Edit{Change: func(*ledger.Draft) {}, Until: time.Unix(1<<40, 0)}, longest: longestRest, again: 1, last: 978 * ms,
			end: []string{"failed", "load"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, Options{})
			s.step(0, test.event, "load")
			fails := func(rest time.Duration) {
				s.step(0, Loaded{Err: errNoAnswer}, "failed", fmt.Sprintf("wake after %s", rest))
				s.step(rest, Tick{}, "load")
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
	s.step(0, proof, "load")
	s.step(0, Loaded{Err: errNoAnswer}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load")
	s.step(ms, Loaded{Snapshot: stored(7, 1)}, "swap 7: used 1, 0 reserved")
	s.step(ms, written(7)) // the API server has stored nothing new
	s.step(time.Second, proof, "swap 7: used 1, 0 reserved")
	s.step(ms, written(8), "committed")
	s.step(time.Second, Gone{})
	s.step(0, proof, "load")
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
