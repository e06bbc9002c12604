// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// settled steps a machine that counts one widget in use, up to a version, until
// it has nothing more to do at the moment, and returns the last ledger that it
// wrote.
func settled(t *testing.T, m *Machine, now time.Time, upTo uint64, event Event) (written *ledger.State) {
	t.Helper()
	widgets := schema.GroupResource{Resource: "widgets"}
	used := corev1.ResourceList{"count/widgets": *resource.NewQuantity(1, resource.DecimalSI)}
	events := []Event{event}
	for len(events) > 0 {
		next := events[0]
		events = events[1:]
		for _, effect := range m.Step(now, next) {
			switch effect := effect.(type) {
			case Observe:
				events = append(events, Observed{Observation: &ledger.Observation{
					Basis: ledger.Basis{Quota: "uid", Generation: 1, Digest: "d"}, Used: used,
					Sources: map[corev1.ResourceName][]schema.GroupResource{"count/widgets": {widgets}},
					Counted: map[schema.GroupResource]uint64{ledger.Namespaces: upTo, widgets: upTo},
					Touched: map[schema.GroupResource]uint64{ledger.Namespaces: 1}, Members: upTo,
					Seen: func(ledger.Reservation) bool { return true },
				}})
			case Load:
				events = append(events, Loaded{Snapshot: m.Current()})
			case Swap:
				written = &effect.Next
				version := effect.Previous
				version.ResourceVersion++
				events = append(events, Swapped{Version: version})
			default:
			}
		}
	}
	return written
}

func TestCountsAnew(t *testing.T) {
	basis := ledger.Basis{Quota: "uid", Generation: 1, Digest: "d"}
	tests := map[string]struct {
		newest, later uint64
		after         time.Duration
	}{
		"in a moment, if an edit forgot what is used":                     {newest: 5, later: 5},
		"once the count has come far enough, though nothing else is told": {newest: 8, later: 8, after: time.Second},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, now := New(Options{MaxWaiting: 10}), time.Unix(0, 0)
			settled(t, m, now, 5, Seen{Snapshot: Snapshot{Version: Version{ResourceVersion: 9, UID: "ledger"}, State: ledger.State{Basis: basis}}})
			recount := Edit{ID: 1, Change: func(draft *ledger.Draft) {
				draft.Forget(1)
				draft.Require(1, ledger.Newest{Versions: map[schema.GroupResource]uint64{ledger.Namespaces: test.newest}})
			}}
			now = now.Add(time.Minute)
			settled(t, m, now, 5, recount)
			now = now.Add(test.after)
			written := settled(t, m, now, test.later, Tick{})
			if used := m.Current().State.Used["count/widgets"]; used.Value() != 1 {
				t.Errorf("used is %v, and was last written as %v", m.Current().State.Used, written)
			}
		})
	}
}

// A leader that writes a caller's question into the ledger itself sees no event of another replica that makes it answer.
// Nor does it see one if its count comes as far as the question without a change of use.
func TestALeaderAnswersItsOwnQuestionForWhatJoined(t *testing.T) {
	for name, counted := range map[string]uint64{
		"the count is as far as the question": 8,
		"the count is behind the question":    6,
	} {
		t.Run(name, func(t *testing.T) {
			m, now := New(Options{MaxWaiting: 10}), time.Unix(0, 0)
			basis := ledger.Basis{Quota: "uid", Generation: 1, Digest: "d"}
			known := Snapshot{Version: Version{ResourceVersion: 9, UID: "ledger"}, State: ledger.State{Basis: basis}}
			settled(t, m, now, 5, Seen{Snapshot: known})
			now = now.Add(time.Minute)
			settled(t, m, now, counted, Charge{ID: 1, Charge: ledger.Charge{
				Limits:    ledger.Limits{Basis: basis},
				Knowledge: ledger.Knowledge{Joined: 7, Seen: 7, Asks: true},
			}})
			now = now.Add(weighEvery)
			settled(t, m, now, counted, Tick{})
			now = now.Add(behindEvery)
			settled(t, m, now, 8, Tick{})
			if state := m.Current().State; state.Asked != 0 || state.Joined < 7 {
				t.Errorf("asked for %d, and counted what joined up to %d", state.Asked, state.Joined)
			}
		})
	}
}

func TestWeighsWhatWasRead(t *testing.T) {
	m, now := New(Options{MaxWaiting: 10}), time.Unix(0, 0)
	m.Step(now, Charge{ID: 1})
	state := ledger.State{Basis: ledger.Basis{Quota: "uid", Generation: 1, Digest: "d"}}
	written := settled(t, m, now, 5, Loaded{Snapshot: Snapshot{Version: Version{ResourceVersion: 9, UID: "ledger"}, State: state}})
	if written == nil {
		t.Error("nothing was settled in the ledger that was read")
	}
}

// A deletion that a watch shows before the reply to a call is the newer of the two, or the
// watch goes on to show the ledger that the call was about. In doubt nothing is known.
func TestForgetsAReplyFromBeforeADeletion(t *testing.T) {
	now, version := time.Unix(0, 0), Version{ResourceVersion: 9, UID: "ledger"}
	tests := map[string]struct {
		known Snapshot
		reply Event
	}{
		"to a load": {reply: Loaded{Snapshot: Snapshot{Version: version}}},
		"to a swap": {
			known: Snapshot{Version: Version{ResourceVersion: 8, UID: "ledger"}, State: ledger.State{Sealed: now}},
			reply: Swapped{Version: version},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := New(Options{MaxWaiting: 10})
			m.Step(now, Seen{Snapshot: test.known})
			m.Step(now, Observed{})
			m.Step(now, Edit{ID: 1, Change: func(draft *ledger.Draft) { draft.SetFence(ledger.Fence{Generation: 2}) }})
			m.Step(now, Gone{})
			m.Step(now, test.reply)
			if known := m.Current().Version; !known.IsZero() {
				t.Errorf("knows %v", known)
			}
		})
	}
}

// A leader that says that a quota is ready, while its ledger takes no count, keeps people from looking for the cause.
func TestACountThatIsNotTakenIsReported(t *testing.T) {
	errPolicy := fmt.Errorf("%w: a policy forbids it", ErrRejected)
	for name, test := range map[string]struct {
		ledger func(*ledger.State)
		// reply to each write of the use; nil if it succeeds.
		reply error
		// cured is after how many seconds the cause ends; zero for never.
		cured int
		want  []string
	}{
		"a ledger that takes it": {},
		"a ledger of a newer spec": {
			ledger: func(s *ledger.State) { s.Generation = 9 },
			want:   []string{"false it is of generation 9 of the quota, and generation 1 was counted"},
		},
		"a ledger that includes more": {
			ledger: func(s *ledger.State) { s.Counted = map[schema.GroupResource]uint64{pods: 70} },
			want:   []string{"false it includes pods up to resourceVersion 70, and they were counted up to 5"},
		},
		"writes that are rejected, beside charges that are not": {reply: errPolicy, want: []string{"false " + errPolicy.Error()}},
		"writes that another writer always precedes":            {reply: ErrConflict, want: []string{"false " + ErrConflict.Error()}},
		"rejected for a moment":                                 {reply: errPolicy, cured: 3},
		"taken again":                                           {reply: errPolicy, cured: 8, want: []string{"false " + errPolicy.Error(), "true <nil>"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, now, known := New(Options{MaxWaiting: 10}), at(0), stored(7, 0)
			if test.ledger != nil {
				test.ledger(&known.State)
			}
			var got []string
			pending := []Event{Seen{Snapshot: known}}
			for id := RequestID(1); now.Before(at(12 * time.Second)); now = now.Add(100 * ms) {
				if !now.Before(at(time.Duration(test.cured)*time.Second)) && test.cured > 0 {
					test.reply = nil
				}
				if len(pending) == 0 {
					pending, id = []Event{charge(id, 99), Tick{}}, id+1
				}
				event := pending[0]
				pending = pending[1:]
				for _, effect := range m.Step(now, event) {
					switch effect := effect.(type) {
					case Observe:
						pending = slices.Insert(pending, 0, Event(Observed{Observation: counted(3, 5)}))
					case Load:
						pending = append(pending, Loaded{Snapshot: known})
					case Swap:
						if settles := !quota.Equals(effect.Next.Used, known.State.Used); settles && test.reply != nil {
							pending = append(pending, Swapped{Err: test.reply})
							continue
						}
						known = Snapshot{Version: Version{ResourceVersion: known.Version.ResourceVersion + 1, UID: "ledger"}, State: effect.Next}
						pending = append(pending, Swapped{Version: known.Version})
					case Untaken:
						got = append(got, fmt.Sprintf("%t %v", effect.Since.IsZero(), effect.Err))
						if late := now.Sub(effect.Since); !effect.Since.IsZero() && (late < untakenFor || late > untakenFor+time.Second) {
							t.Errorf("reported after %s", late)
						}
					default:
					}
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
