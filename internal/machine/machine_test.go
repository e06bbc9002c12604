// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var pods = schema.GroupResource{Resource: "pods"}

func podsList(number int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(number, resource.DecimalSI)}
}

func basis() ledger.Basis { return ledger.Basis{Quota: "team", Generation: 1, Digest: "d"} }

// stored is a ledger at a version, of which so many pods are used.
func stored(version uint64, used int64) Snapshot {
	return Snapshot{
		Version: Version{ResourceVersion: version, UID: "ledger"},
		State:   ledger.State{Basis: basis(), Used: podsList(used)},
	}
}

// unsettled is an open ledger that no count was settled in.
var unsettled = Snapshot{Version: Version{ResourceVersion: 7, UID: "ledger"}, State: ledger.State{Basis: ledger.Basis{Quota: "team"}}}

// unlisted is a count of which nothing is listed yet.
func unlisted() *ledger.Observation {
	count := counted(0, 0)
	count.Used, count.Counted = nil, map[schema.GroupResource]uint64{ledger.Namespaces: 1}
	return count
}

func charge(id RequestID, limit int64) Charge {
	return Charge{ID: id, Charge: ledger.Charge{
		Limits: ledger.Limits{Basis: basis(), Name: "team", Hard: podsList(limit)},
		Reservation: ledger.Reservation{
			Object:  ledger.Object{Resource: pods.WithVersion("v1"), Namespace: "a", Name: fmt.Sprint(id), UID: types.UID(fmt.Sprint(id))},
			Amounts: podsList(1),
		},
		Knowledge: ledger.Knowledge{Seen: math.MaxUint64},
	}}
}

func counted(used int64, upTo uint64, seen ...RequestID) *ledger.Observation {
	return &ledger.Observation{
		Basis: basis(), Used: podsList(used),
		Sources: map[corev1.ResourceName][]schema.GroupResource{corev1.ResourcePods: {pods}},
		Counted: map[schema.GroupResource]uint64{pods: upTo, ledger.Namespaces: 1},
		Touched: map[schema.GroupResource]uint64{pods: upTo},
		Seen: func(reservation ledger.Reservation) bool {
			return slices.ContainsFunc(seen, func(id RequestID) bool { return string(reservation.UID) == fmt.Sprint(id) })
		},
	}
}

// story steps a machine, and tells its effects in words.
type story struct {
	t       *testing.T
	machine *Machine
	now     time.Time
	// counting: this process counts the quota, so that the story has each Observe.
	counting bool
}

func tell(t *testing.T, options Options) *story {
	t.Helper()
	if options.MaxWaiting == 0 {
		options.MaxWaiting = 100
	}
	return &story{t: t, machine: New(options), now: at(0)}
}

// step takes an event so long after the one before, and wants these effects.
func (s *story) step(after time.Duration, event Event, want ...string) {
	s.t.Helper()
	s.now = s.now.Add(after)
	var got []string
	effects := s.machine.Step(s.now, event)
	for len(effects) > 0 {
		next := effects[0]
		effects = effects[1:]
		if _, asks := next.(Observe); asks && !s.counting {
			effects = append(effects, s.machine.Step(s.now, Observed{})...)
			continue
		}
		got = append(got, s.words(next))
	}
	if !slices.Equal(got, want) {
		s.t.Fatalf("%T: got\n\t%s\nwant\n\t%s", event, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

func (s *story) words(effect Effect) string {
	switch effect := effect.(type) {
	case Load:
		if !effect.Spec {
			return "load the ledger"
		}
		return "load"
	case Swap:
		used := effect.Next.Used
		return fmt.Sprintf("swap %d: used %s, %d reserved", effect.Previous.ResourceVersion, used.Pods(),
			len(effect.Next.Reservations)+len(effect.Next.Escrows))
	case Observe:
		return fmt.Sprintf("observe %d", len(effect.Ledger.Reservations)+len(effect.Ledger.Escrows))
	case Answer:
		if effect.Err != nil {
			return fmt.Sprintf("answer %d: %v", effect.ID, effect.Err)
		}
		return fmt.Sprintf("answer %d: %s", effect.ID, strings.TrimPrefix(fmt.Sprintf("%T", effect.Decision), "ledger."))
	case WakeAt:
		return fmt.Sprintf("wake after %s", effect.Time.Sub(s.now))
	case Impossible:
		return "impossible: " + effect.Err.Error()
	default:
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", effect), "machine."))
	}
}

func written(version uint64) Swapped {
	return Swapped{Version: Version{ResourceVersion: version, UID: "ledger"}, Took: 5 * ms}
}

func TestAChargeIsAnsweredOnceItIsWritten(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, charge(1, 1), "load")
	s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(ms, written(8), "committed", "answer 1: Granted")
	s.step(ms, charge(2, 1), "load")
	s.step(ms, Loaded{Snapshot: s.machine.Current()}, "answer 2: Denied")
}

// A charge that can't be granted waits for room, and for no batch that would only find that.
func TestAChargeThatLacksRoomWaitsForNoBatch(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.step(0, Seen{Snapshot: stored(7, 0)})
	s.step(0, charge(1, 3), "swap 7: used 0, 1 reserved")
	s.step(0, charge(4, 3))
	s.step(0, charge(5, 3))
	s.step(0, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 3 reserved")
	s.step(0, written(9), "committed", "answer 4: Granted", "answer 5: Granted")
	waits := charge(2, 3)
	waits.Patience = s.now.Add(30 * ms)
	s.step(ms, waits, "wake after 29ms")
	s.step(29*ms, Tick{}, "load")
	s.step(0, Loaded{Snapshot: s.machine.Current()}, "answer 2: Denied")

	waits = charge(3, 3)
	waits.Patience = s.now.Add(time.Second)
	s.step(100*ms, waits, "wake after 900ms")
	s.step(ms, Seen{Snapshot: stored(10, 0)}, "swap 10: used 0, 1 reserved")
	s.step(ms, written(11), "committed", "answer 3: Granted")
}

// A charge that waits for a batch comes before one that arrived later and lacks room.
func TestChargesAreJudgedInOrderOfArrival(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms, Patience: time.Second})
	s.step(0, Seen{Snapshot: stored(7, 0)})
	s.step(0, charge(1, 10), "swap 7: used 0, 1 reserved")
	s.step(0, charge(2, 10))
	s.step(0, charge(3, 10))
	s.step(0, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 3 reserved")
	s.step(0, written(9), "committed", "answer 2: Granted", "answer 3: Granted")
	first, second := charge(4, 4), charge(5, 4)
	second.Charge.Reservation.Amounts = podsList(2)
	second.Patience = s.now.Add(time.Second)
	s.step(ms, first, "wake after 79ms")
	s.step(0, second, "wake after 79ms")
	key := charge(3, 0).Charge.Reservation.Key()
	s.step(79*ms, Edit{ID: 9, Change: func(draft *ledger.Draft) { draft.Release(key) }}, "swap 9: used 0, 3 reserved")
	s.step(0, written(10), "committed", "answer 9: Granted", "answer 4: Granted", "wake after 920ms")
}

// The settle that is due may make room.
func TestAChargeThatLacksRoomWaitsForASettleThatIsDue(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.step(0, Seen{Snapshot: stored(7, 10)})
	s.counting = true
	s.machine.settling.need = lazy
	waits := charge(1, 10)
	waits.Patience = s.now.Add(150 * ms)
	s.step(0, waits, "observe 0")
	s.step(0, Observed{Observation: counted(5, 1)}, "swap 7: used 5, 1 reserved")
}

func TestAConflictIsJudgedAgainOnWhatWasSeen(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, Seen{Snapshot: stored(7, 0)})
	s.step(0, charge(1, 1), "swap 7: used 0, 1 reserved")
	s.step(ms, Seen{Snapshot: stored(8, 1)})
	s.step(ms, Swapped{Err: ErrConflict}, "conflicted", "load")
	s.step(ms, Loaded{Snapshot: stored(8, 1)}, "answer 1: Denied")
}

// If others write all the time, there is no room for a read between two writes.
func TestALedgerNewerThanAFreshOneIsNotReadAgain(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, charge(1, 1), "load")
	s.step(0, charge(2, 1))
	s.step(0, charge(3, 1))
	s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(ms, written(8), "committed", "answer 1: Granted", "load")
	fresh := stored(8, 0)
	fresh.Spec = &Spec{Quota: "team", Generation: 2}
	s.step(ms, Loaded{Snapshot: fresh}, "swap 8: used 0, 1 reserved")
	s.step(ms, Seen{Snapshot: stored(9, 0)})
	s.step(ms, Swapped{Err: ErrConflict}, "conflicted", "swap 9: used 0, 1 reserved")
	s.step(ms, Seen{Snapshot: stored(10, 0)})
	s.step(ms, Swapped{Err: ErrConflict}, "conflicted", "swap 10: used 0, 1 reserved")
	// It was denied by limits that are not those of the spec that was read with the ledger.
	s.step(ms, written(11), "committed", "answer 2: Granted", "answer 3: Undecided")
}

// The spec has not been read since the charge came, and may be another one by
// now.
func TestAChargeWhosePatienceEndsDuringAWriteIsNotDeniedWithoutALook(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, Seen{Snapshot: stored(7, 0)})
	s.step(0, charge(1, 2), "swap 7: used 0, 1 reserved")
	waits := charge(3, 2)
	waits.Patience = s.now.Add(150 * ms)
	s.step(0, charge(2, 2))
	s.step(0, waits)
	s.step(ms, written(8), "committed", "answer 1: Granted", "swap 8: used 0, 2 reserved")
	s.step(5*time.Second, written(9), "committed", "answer 2: Granted", "load")
	fresh := s.machine.Current()
	fresh.Spec = &Spec{Quota: "team", Generation: 2}
	s.step(ms, Loaded{Snapshot: fresh}, "answer 3: Undecided")
}

// A crowd is refused all the time, and to read the spec's version costs the API server much.
func TestDenialsWithinASecondShareALookAtTheSpec(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	full := stored(7, 1)
	full.Spec = &Spec{Quota: "team", Generation: 1}
	without := stored(7, 1)
	s.step(0, Seen{Snapshot: full})
	s.step(0, charge(1, 1), "load")
	s.step(5*ms, Loaded{Snapshot: full}, "answer 1: Denied")
	s.step(994*ms, charge(2, 1), "load the ledger")
	s.step(ms, Loaded{Snapshot: without}, "answer 2: Denied")
	s.step(40*ms, charge(3, 1), "load") // a second after that look began
	s.step(ms, Loaded{Snapshot: full}, "answer 3: Denied")

	edited := func(id RequestID) Charge {
		edited := charge(id, 1)
		edited.Charge.Limits.Generation = 2
		return edited
	}
	s.step(40*ms, edited(4), "load") // of a spec that the look didn't find
	full.Spec = &Spec{Quota: "team", Generation: 2}
	s.step(ms, Loaded{Snapshot: full}, "answer 4: Denied")
	s.step(40*ms, charge(5, 1), "load")
	s.step(ms, Loaded{Snapshot: full}, "answer 5: Undecided")

	s.step(40*ms, edited(6), "load the ledger")
	s.step(ms, Loaded{Err: errors.New("no answer")}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load the ledger")
	s.step(ms, Loaded{Snapshot: without}, "answer 6: Denied")
}

func TestALostReplyIsReadBeforeAnythingElse(t *testing.T) {
	s := tell(t, Options{})
	s.step(0, charge(1, 1), "load")
	s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(ms, Swapped{Err: errors.New("no answer")}, "failed", "wake after 2ms")
	s.step(2*ms, Tick{}, "load")
	s.step(ms, Loaded{Err: errors.New("no answer")}, "failed", "wake after 4ms")
	s.step(4*ms, Tick{}, "load")
	s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(ms, written(8), "committed", "answer 1: Granted")
}

func TestACallerThatGivesUpHoldsNothing(t *testing.T) {
	gone := func(id RequestID) Cancel { return Cancel{ID: id, Reserved: ledger.Key{UID: types.UID(fmt.Sprint(id))}} }
	t.Run("while the charge waits", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 9), "load")
		s.step(0, charge(2, 9))
		s.step(0, gone(2))
		s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
		s.step(ms, written(8), "committed", "answer 1: Granted")
	})
	t.Run("while it is written", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 9), "load")
		s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
		s.step(ms, gone(1))
		s.step(ms, written(8), "committed", "swap 8: used 0, 0 reserved")
		s.step(ms, written(9), "committed")
	})
	t.Run("after it was answered", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 9), "load")
		s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
		s.step(ms, written(8), "committed", "answer 1: Granted")
		s.step(ms, gone(1), "swap 8: used 0, 0 reserved")
	})
}

func TestAParkedChargeIsGrantedWhatASettleFrees(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms, PaceEach: 2 * ms})
	s.counting = true
	s.step(0, Seen{Snapshot: stored(7, 1)}, "observe 0")
	s.step(0, Observed{Observation: counted(1, 0)})
	waits := charge(1, 1)
	waits.Patience = s.now.Add(150 * ms)
	s.step(0, waits, "wake after 150ms")
	s.step(30*ms, Counted{Freed: true}, "observe 0")
	s.step(0, Observed{Observation: counted(0, 5)}, "swap 7: used 0, 1 reserved")
	s.step(ms, written(8), "committed", "answer 1: Granted")
}

func TestASettleThatChangesNothingForAnyChargeWaits(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.counting = true
	s.step(0, charge(1, 9), "load")
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
	s.step(0, written(8), "committed", "answer 1: Granted", "observe 1")
	s.step(0, Observed{Observation: counted(0, 0)})
	s.step(5*ms, Counted{}, "observe 1")
	s.step(0, Observed{Observation: counted(1, 5, 1)}, "wake after 155ms")
	s.step(155*ms, Tick{}, "swap 8: used 1, 0 reserved") // by the count that was weighed
	s.step(ms, written(9), "committed")
}

// A count that was weighed isn't settled once another one is there, or another ledger.
func TestACountThatWasWeighedIsSettledOnlyIfNothingHasChanged(t *testing.T) {
	for name, test := range map[string]struct {
		since      Event
		then, last string
	}{
		"nothing":        {since: Tick{}, then: "wake after 160ms", last: "swap 8: used 1, 0 reserved"},
		"another count":  {since: Counted{}, then: "wake after 5ms", last: "observe 1"},
		"another ledger": {since: Seen{Snapshot: stored(9, 0)}, then: "observe 0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, Options{Pace: 40 * ms})
			s.counting = true
			s.step(0, charge(1, 9), "load")
			s.step(0, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
			s.step(0, written(8), "committed", "answer 1: Granted", "observe 1")
			s.step(0, Observed{Observation: counted(1, 5, 1)}, "wake after 160ms")
			s.step(0, test.since, test.then)
			if test.last != "" {
				s.step(160*ms, Tick{}, test.last)
			}
		})
	}
}

// A client edits the ledger while a batch settles, and the operator puts it right
// before the batch has read it: the count is still to be settled.
func TestASettleIsNotLostWithALedgerThatIsReplacedMeanwhile(t *testing.T) {
	edited := Snapshot{Version: Version{ResourceVersion: 8, UID: "ledger"}, Edited: true}
	s := tell(t, Options{Pace: 40 * ms})
	s.counting = true
	s.step(0, Seen{Snapshot: stored(7, 0)}, "observe 0")
	s.step(0, Observed{Observation: counted(3, 5)}, "swap 7: used 3, 0 reserved")
	s.step(ms, Swapped{Err: ErrConflict}, "conflicted", "load the ledger")
	s.step(ms, Seen{Snapshot: edited})
	s.step(ms, Replaced{Snapshot: stored(9, 0)})
	s.step(ms, Loaded{Snapshot: edited}, "observe 0")
	s.step(0, Observed{Observation: counted(3, 5)}, "observe 0")
	s.step(0, Observed{Observation: counted(3, 5)}, "wake after 20ms")
	s.step(20*ms, Tick{}, "swap 9: used 3, 0 reserved")
}

// A namespace brings pods that were never reserved: until they are in the ledger,
// another replica grants their amounts.
func TestASettleThatRaisesWhatIsChargedDoesNotWait(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.counting = true
	s.step(0, Seen{Snapshot: stored(7, 0)}, "observe 0")
	s.step(0, Observed{Observation: counted(0, 0)})
	s.step(100*ms, Counted{}, "observe 0")
	s.step(0, Observed{Observation: counted(40, 5)}, "swap 7: used 40, 0 reserved")
}

// blank begins a story in which, for some seconds, there is nothing to settle but the spec.
func blank(t *testing.T, seconds int) *story {
	t.Helper()
	s := tell(t, Options{Pace: 40 * ms})
	s.counting = true
	s.step(0, Seen{Snapshot: unsettled}, "observe 0")
	for range seconds {
		s.step(0, Observed{Observation: unlisted()}, "wake after 1s")
		s.step(time.Second, Tick{}, "observe 0")
	}
	return s
}

// While nothing is counted, nothing is granted. The first count brings the spec along.
func TestASettleOfNothingButTheSpecWaitsForTheFirstCount(t *testing.T) {
	s := blank(t, 1)
	s.step(0, Observed{Observation: unlisted()}, "wake after 1s")
	s.step(500*ms, Counted{}, "observe 0")
	s.step(0, Observed{Observation: counted(3, 5)}, "swap 7: used 3, 0 reserved")
}

// It may be that nothing can be listed.
func TestASettleOfNothingButTheSpecDoesNotWaitForever(t *testing.T) {
	s := blank(t, 4)
	s.step(0, Observed{Observation: unlisted()}, "observe 0")
	s.step(0, Observed{Observation: unlisted()}, "swap 7: used 0, 0 reserved")
}

func TestAnImpossibleEventChangesNothing(t *testing.T) {
	for name, event := range map[string]Event{
		"a reply to no write":           written(9),
		"a reply to no read":            Loaded{Snapshot: stored(9, 0)},
		"a count that wasn't asked for": Observed{Observation: counted(0, 0)},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, Options{})
			s.step(0, event, "impossible: a reply came that nothing had asked for")
			s.step(0, charge(1, 1), "load")
			s.step(0, event2(event), "impossible: a reply came that nothing had asked for")
			s.step(ms, Loaded{Snapshot: stored(7, 1)}, "answer 1: Denied")
		})
	}
	t.Run("a ledger that goes back", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, Seen{Snapshot: stored(9, 1)})
		s.step(0, charge(1, 1), "load")
		s.step(ms, Loaded{Snapshot: stored(5, 0)},
			"impossible: the ledger went back to an older version: from 9 to 5", "answer 1: the ledger went back to an older version: from 9 to 5")
	})
	t.Run("a write that goes back", func(t *testing.T) {
		s := tell(t, Options{})
		s.step(0, charge(1, 1), "load")
		s.step(ms, Loaded{Snapshot: stored(7, 0)}, "swap 7: used 0, 1 reserved")
		s.step(ms, written(6), "impossible: the ledger went back to an older version", "answer 1: the ledger went back to an older version")
		s.step(ms, charge(2, 1), "load")
	})
	t.Run("a count for another quota", func(t *testing.T) {
		s := tell(t, Options{})
		s.counting = true
		s.step(0, charge(1, 1), "load")
		s.step(ms, Counted{})
		s.step(ms, Loaded{Snapshot: stored(7, 1)}, "answer 1: Denied", "observe 0")
		other := counted(0, 9)
		other.Quota = "other"
		s.step(ms, Observed{Observation: other}, "impossible: a count came for another quota")
		if used := s.machine.Current().State.Used; used.Pods().Value() != 1 {
			t.Errorf("%v are used, want 1 pod", used)
		}
	})
}

// event2 is a reply that is not the one to a load.
func event2(event Event) Event {
	if _, load := event.(Loaded); load {
		return written(9)
	}
	return event
}

func TestTheEndAnswersEverybody(t *testing.T) {
	s := tell(t, Options{Pace: 40 * ms})
	s.step(0, charge(1, 9), "load")
	s.step(0, charge(2, 9))
	s.step(0, End{}, "answer 2: the operator is stopping")
	s.step(0, Loaded{Snapshot: stored(7, 0)}, "answer 1: the operator is stopping")
	s.step(0, charge(3, 9), "answer 3: the operator is stopping")
	if !s.machine.Idle() {
		t.Error("want nothing under way")
	}

	s = tell(t, Options{Pace: 40 * ms})
	s.step(0, charge(1, 1), "load")
	parked := charge(2, 1)
	parked.Patience = s.now.Add(150 * ms)
	s.step(0, Loaded{Snapshot: stored(7, 1)}, "answer 1: Denied")
	s.step(0, parked, "wake after 150ms")
	s.step(ms, End{}, "answer 2: the operator is stopping")
}
