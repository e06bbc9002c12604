// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/judge"
)

func TestWhenTheLeaderMustHaveLearned(t *testing.T) {
	start := time.Now().Add(-time.Hour)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	w := &witness{deaf: []*[2]time.Time{{at(10), at(20)}, {at(21), at(30)}, {at(40), at(50)}}}
	for name, test := range map[string]struct{ committed, want int }{
		"it hears":                          {committed: 2, want: 5},
		"it is deaf soon after":             {committed: 8, want: 33},
		"it is deaf":                        {committed: 15, want: 33},
		"it is deaf again before it learns": {committed: 19, want: 33},
		"it was deaf":                       {committed: 31, want: 34},
		"it is deaf at the end":             {committed: 38, want: 53},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.learned(at(test.committed)); !got.Equal(at(test.want)) {
				t.Errorf("learned after %s, want %ds", got.Sub(start), test.want)
			}
		})
	}
}

func TestALeaderThatIsStillDeafNeedNotHaveLearned(t *testing.T) {
	w := newWitness()
	end := w.deafen()
	if got := w.learned(time.Now()); got.Before(time.Now()) {
		t.Errorf("learned at %s, which is past", got)
	}
	end()
	if got := w.learned(time.Now()); got.After(time.Now().Add(learnsWithin)) {
		t.Errorf("learned at %s, want %s after it could hear", got, learnsWithin)
	}
}

func TestAnEditIsInForceFromItsAnswerOn(t *testing.T) {
	w := newWitness()
	edited := func(before string, revision int) func() {
		var quota client.Object = builders.Quota("team").Obj()
		quota.SetResourceVersion(strconv.Itoa(revision))
		return w.edited(before, quota)
	}
	edited("4", 5)()
	edited("5", 9)
	terms := func(revision int64) judge.Change {
		return judge.Change{Cause: judge.Terms, Key: "/registry/quota.sharedquota.dev/clusterresourcequotas/team", Revision: revision}
	}
	first, lost, second, later := w.inForce(terms(5)), w.inForce(terms(7)), w.inForce(terms(9)), w.inForce(terms(10))
	if first.IsZero() || second.Before(first) {
		t.Errorf("in force from %s and %s on, want both known and in this order", first, second)
	}
	if !lost.Equal(second) {
		t.Errorf("a call whose answer was lost is in force from %s on, want %s as the one that was answered", lost, second)
	}
	for _, others := range []time.Time{later, w.inForce(terms(4))} {
		if !others.IsZero() {
			t.Errorf("in force from %s on, want nothing known of an edit that is nobody's here", others)
		}
	}
}

func TestTheCallBehindACommit(t *testing.T) {
	start := time.Now()
	write := func(name string, after int) load.Write {
		return load.Write{Namespace: "web", Name: name, Sent: start.Add(time.Duration(after) * time.Second)}
	}
	lost := []load.Write{write("pods-1-0", 3), write("pods-1-0", 1), write("pods-1-", 2), write("pods-2-0", 4)}
	for name, want := range map[string]int{"pods-1-0": 3, "pods-1-x7k2p": 2, "pods-2-0": 4} {
		change := judge.Change{Namespace: "web", Key: "/registry/pods/web/" + name}
		if got := lastOf(lost, change); !got.Sent.Equal(start.Add(time.Duration(want) * time.Second)) {
			t.Errorf("%s was sent after %s, want %ds", name, got.Sent.Sub(start), want)
		}
	}
	if got := lastOf(lost, judge.Change{Namespace: "web", Key: "/registry/pods/web/other"}); !got.Sent.IsZero() {
		t.Errorf("of another object's call %+v is known, want nothing", got)
	}
}

func TestAskedObjectsStandInLedgers(t *testing.T) {
	const asked, attempt, unasked = "3f0c6c1e-57a5-4c50-8b6e-0d3ea64b1df0", "8d4d3a0e-11c2-4b8e-9c58-6f6c1ce0b7aa", "d94a6a51-0b0e-4e60-a1a4-52fd0b0a3f11"
	w := newWitness()
	ledger := func(reservations ...string) []byte {
		stored, err := json.Marshal(quotav1.QuotaLedger{Entries: quotav1.QuotaLedgerEntries{Reservations: reservations}})
		if err != nil {
			t.Fatal(err)
		}
		return stored
	}
	w.readLedger(5, ledger("pods web/a "+asked+" "+attempt))
	w.readLedger(9, ledger("pods web/a "+asked+" "+attempt)) // It stands there still.
	for name, test := range map[string]struct {
		write load.Write
		after int64
		want  bool
	}{
		"what was reserved before it was stored":           {write: load.Write{UID: asked, Revision: 6}, want: true},
		"what was reserved for the write before it":        {write: load.Write{UID: asked, Revision: 8}, after: 6},
		"what was reserved only for a write that followed": {write: load.Write{UID: asked, Revision: 4}},
		"what was never reserved":                          {write: load.Write{UID: unasked, Revision: 6}},
		"what isn't known":                                 {write: load.Write{Revision: 6}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := w.wasAsked(test.write, test.after); got != test.want {
				t.Errorf("asked: got %t, want %t", got, test.want)
			}
		})
	}
}
