// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// settled steps a machine that counts one widget in use, up to a version, until it has
// nothing more to do at the moment, and returns what it wrote last.
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
					Touched: map[schema.GroupResource]uint64{ledger.Namespaces: 1},
					Seen:    func(ledger.Reservation) bool { return true },
				}})
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
				draft.Forget(now)
				draft.Require(draft.State().Forgotten(), map[schema.GroupResource]uint64{ledger.Namespaces: test.newest})
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
