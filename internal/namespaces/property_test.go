// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"pgregory.net/rapid"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// history is the revision of each change of an object, and whether it existed then.
type history map[string][]change

type change struct {
	revision uint64
	exists   bool
}

func (h history) note(name string, revision uint64, exists bool) {
	h[name] = append(h[name], change{revision, exists})
}

// at returns the last change up to a revision.
func (h history) at(name string, revision uint64) change {
	last := change{}
	for _, change := range h[name] {
		if change.revision <= revision {
			last = change
		}
	}
	return last
}

// existedSince reports whether an object has existed all the time since a revision.
func (h history) existedSince(name string, revision uint64) bool {
	exists := h.at(name, revision).exists
	for _, change := range h[name] {
		exists = exists && (change.revision < revision || change.exists)
	}
	return exists
}

// world is a cluster with its history, and with changes that may happen in it.
type world struct {
	*cluster
	quotaHistory, namespaceHistory history
	// labelled are all versions of namespaces, in their order.
	labelled []*metav1.PartialObjectMetadata
}

// lastJoined returns when the last of the namespaces joined that a selector selects at a revision.
func (w *world) lastJoined(selector definition.Selector, at uint64) uint64 {
	joined := map[string]uint64{}
	for _, object := range w.labelled {
		version := ledger.ParseVersion(object.ResourceVersion)
		switch selects := selector.Matches(object.Labels, nil); {
		case version > at:
		case !selects:
			delete(joined, object.Name)
		case joined[object.Name] == 0:
			joined[object.Name] = version
		}
	}
	return slices.Max(append(slices.Collect(maps.Values(joined)), 0))
}

// team labels a namespace.
func (w *world) team(name, team string) {
	w.label(name, "team="+team)
	w.namespaceHistory.note(name, w.revision, true)
	w.labelled = append(w.labelled, w.namespaces[name])
}

func (w *world) relabel(t *rapid.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace")
	w.team(name, rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "team"))
}

func (w *world) define(t *rapid.T) {
	name := rapid.SampledFrom([]string{"q", "r", "s"}).Draw(t, "quota")
	pods := rapid.SampledFrom([]string{"1", "2", "-1"}).Draw(t, "pods")
	w.quota(name, pods, "team="+rapid.SampledFrom([]string{"x", "y"}).Draw(t, "team"))
	w.quotaHistory.note(name, w.revision, true)
}

func (w *world) remove(t *rapid.T) {
	names := slices.Sorted(maps.Keys(w.quotas))
	if len(names) == 0 {
		t.Skip()
	}
	name := rapid.SampledFrom(names).Draw(t, "quota")
	w.deleteQuota(name)
	w.quotaHistory.note(name, w.revision, false)
}

// ask is about the present configuration, as if it were written and loaded at
// once. Something may happen meanwhile: then the answer is of before or after.
func (w *world) ask(t *rapid.T) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.namespaces))).Draw(t, "namespace")
	atLeast := uint64(rapid.IntRange(0, int(w.revision)).Draw(t, "at least"))
	if rapid.Bool().Draw(t, "interrupted") {
		team := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "next team")
		w.interrupt = func() {
			w.team(name, team)
			w.watched()
		}
	}
	before := w.covering(name)
	got, err := w.index.Covering(t.Context(), w.asked(name), name, atLeast)
	if err != nil {
		t.Fatal(err)
	}
	w.interrupt = nil
	var covering []string
	for i := range got.Definitions {
		limits := got.Definitions[i].Limits
		covering = append(covering, fmt.Sprint(limits.Name, " ", limits.Quota, " ", limits.Generation))
	}
	// An entry that no quota covers is no witness: memory is good enough, because
	// a quota too many grants nothing.
	if diff := cmp.Diff(before, covering); diff != "" && before != nil && !slices.Equal(covering, w.covering(name)) {
		t.Fatalf("covering %s (-want,+got):\n%s", name, diff)
	}
	for i, knowledge := range got.Knowledge {
		if knowledge.Seen < atLeast || knowledge.All > knowledge.Seen {
			t.Fatalf("knowledge of %s: got %+v, want at least %d", name, knowledge, atLeast)
		}
		if joined := w.lastJoined(got.Definitions[i].Selector, knowledge.All); knowledge.Joined < joined {
			t.Fatalf("knowledge of %s: got %+v, but a namespace joined at %d", name, knowledge, joined)
		}
	}
}

// covering are the quotas that cover a namespace, in the versions of their specs.
func (w *world) covering(namespace string) []string {
	var covering []string
	for _, name := range slices.Sorted(maps.Keys(w.quotas)) {
		if quota := w.quotas[name]; selects(quota, w.namespaces[namespace].Labels) {
			covering = append(covering, fmt.Sprint(name, " ", quota.UID, " ", quota.Generation))
		}
	}
	return covering
}

// askForMore is about a configuration that is of no help.
func (w *world) askForMore(t *rapid.T) {
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(w.namespaces))).Draw(t, "namespace")
	look := rapid.SampledFrom([]Look{LookNamespace, LookQuotas, LookEverywhere}).Draw(t, "look")
	if _, err := w.index.CoveringNow(t.Context(), webhookconfig.Question{}, name, look); err != nil {
		t.Fatal(err)
	}
	question := webhookconfig.Question{Epoch: uint64(rapid.IntRange(0, int(w.revision)).Draw(t, "epoch"))}
	if _, err := w.index.Covering(t.Context(), question, name, 0); err != nil {
		t.Fatal(err)
	}
}

// check compares the Index's claims with the history.
func (w *world) check(t *rapid.T) {
	seen := w.index.quotas.seen.Load()
	for _, name := range []string{"q", "r", "s"} {
		known, ok := w.index.quotas.byName[name]
		if !ok && w.quotaHistory.existedSince(name, seen) {
			t.Fatalf("quota %s existed at %d, up to which all are said to be known", name, seen)
		}
		if last := w.quotaHistory.at(name, seen); ok && last.revision > known.version {
			t.Fatalf("quota %s is known in version %d, but changed at %d, and all are said to be known up to %d",
				name, known.version, last.revision, seen)
		}
	}
	for name, object := range w.namespaces {
		known := w.index.namespaces.state(name, webhookconfig.Question{})
		if last := w.namespaceHistory.at(name, known.seen); known.namespace == nil && last.exists ||
			known.namespace != nil && last.revision > known.namespace.version {
			t.Fatalf("namespace %s: known %+v, but it changed at %d", name, known, last.revision)
		}
		if known.namespace != nil && known.namespace.version > ledger.ParseVersion(object.ResourceVersion) {
			t.Fatalf("namespace %s: known in version %d, which isn't written yet", name, known.namespace.version)
		}
	}
}

// For all states of the watches, the answer to a question that the leader
// generated from the present is the present, and knowledge that the answer claims
// is true.
func TestAnAnswerIsAsNewAsItsQuestion(t *testing.T) {
	within := t
	rapid.Check(t, func(t *rapid.T) {
		w := &world{cluster: newCluster(within), quotaHistory: history{}, namespaceHistory: history{}}
		hurried := &hurriedClock{}
		w.index.clock = hurried
		for _, name := range []string{"a", "b", "c"} {
			w.team(name, "")
		}
		t.Repeat(map[string]func(*rapid.T){
			"relabel": w.relabel, "define": w.define, "remove": w.remove, "ask": w.ask, "ask for more": w.askForMore,
			"watch quotas":     func(*rapid.T) { w.quotaWatch.next(1) },
			"watch namespaces": func(*rapid.T) { w.namespaceWatch.next(1) },
			"watch all":        func(*rapid.T) { w.watched() },
			"wait":             func(*rapid.T) { hurried.ahead += verifiedFor },
			"":                 w.check,
		})
	})
}

// hurriedClock waits for nothing.
type hurriedClock struct {
	clock.RealClock
	ahead time.Duration
}

func (c *hurriedClock) Now() time.Time { return c.RealClock.Now().Add(c.ahead) }

func (c *hurriedClock) Since(start time.Time) time.Duration { return c.Now().Sub(start) }

func (c *hurriedClock) NewTimer(time.Duration) clock.Timer { return c.RealClock.NewTimer(0) }

// The race detector has the say.
func TestManyAskWhileEverythingChanges(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.takes = 1000
		var running sync.WaitGroup
		for i := range 8 {
			running.Go(func() {
				for j := range 100 {
					namespace := []string{"shop", "office"}[(i+j)%2]
					if _, err := c.index.Covering(t.Context(), c.asked(namespace), namespace, 0); err != nil {
						t.Error(err)
					}
					if _, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, namespace, Look(j%3)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for i := range 200 {
			c.quota("shop", strconv.Itoa(i), "team=shop")
			c.label("office", "team="+[]string{"shop", "office"}[i%2])
			clock.RealClock{}.Sleep(500)
			c.watched()
		}
		running.Wait()
		c.whatWasRead()
		c.mustCover(t, c.asked("office"), "office", of("office"), nil)
	})
}
