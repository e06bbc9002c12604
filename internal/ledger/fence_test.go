// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func fence(generation int64, hard ...string) Fence {
	return Fence{Generation: generation, Hard: list(hard...), Until: expiry}
}

func raised(state State, fences ...Fence) State {
	draft := Edit(state)
	for _, fence := range fences {
		draft.SetFence(fence)
	}
	return draft.State()
}

func TestAFenceBindsWhoHasNotSeenTheEdit(t *testing.T) {
	state := counted("pods", "3", "cpu", "1")
	asked := creation("a", "a", "pods", "1")
	denied := func(limit string) Decision {
		return Denied{Quota: "team", Requested: list("pods", "1"), Used: list("pods", "3"), Limited: list("pods", limit)}
	}
	newer := limits("pods", "6", "cpu", "9")
	newer.Generation = 4
	for name, test := range map[string]struct {
		fences []Fence
		limits Limits
		want   Decision
	}{
		"without one the spec that is known decides":     {limits: limits("pods", "6"), want: Granted{}},
		"the lower limit decides":                        {fences: []Fence{fence(4, "pods", "3")}, limits: limits("pods", "6"), want: denied("3")},
		"a limit that was raised doesn't hold yet":       {fences: []Fence{fence(4, "pods", "9", "cpu", "0")}, limits: limits("pods", "3"), want: denied("3")},
		"what it doesn't lower is as before":             {fences: []Fence{fence(4, "pods", "6", "cpu", "0")}, limits: limits("pods", "6"), want: Granted{}},
		"a caller that knows the edit goes by the spec":  {fences: []Fence{fence(4, "pods", "3")}, limits: newer, want: Granted{}},
		"of two edits under way both bind":               {fences: []Fence{fence(4, "pods", "3"), fence(4, "pods", "5")}, limits: limits("pods", "6"), want: denied("3")},
		"a fence of an older spec than is known is void": {fences: []Fence{fence(2, "pods", "3")}, limits: limits("pods", "6"), want: Granted{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Edit(raised(state, test.fences...)).Reserve(asking(test.limits, asked))); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAFenceEndsWithTheCountForItsSpec(t *testing.T) {
	for name, test := range map[string]struct {
		generation int64
		want       int64
	}{
		"the spec before keeps it": {generation: 3, want: 4},
		"its spec ends it":         {generation: 4},
		"so does one after it":     {generation: 5},
	} {
		t.Run(name, func(t *testing.T) {
			observed := count(list("pods", "1"), versions{namespaceResource: 10, pods: 10})
			observed.Sources = map[corev1.ResourceName][]schema.GroupResource{"pods": {pods}}
			observed.Generation = test.generation
			draft := Edit(raised(counted("pods", "1"), fence(4, "pods", "3")))
			draft.Settle(observed)
			if got := draft.State().Fence.Generation; got != test.want {
				t.Errorf("the fence is for generation %d, want %d", got, test.want)
			}
		})
	}
}

func TestAFenceOfAnEditThatFailedIsLowered(t *testing.T) {
	first := fence(4, "pods", "3")
	draft := Edit(raised(counted("pods", "1"), first, first))
	draft.RemoveFence(first, 3)
	if draft.State().Fence.Generation == 0 {
		t.Error("want a fence kept that was raised again")
	}
	draft = Edit(draft.State())
	draft.RemoveFence(draft.Peek().Fence, 3)
	if draft.State().Fence.Generation != 0 || !draft.Changed() {
		t.Error("want it gone, and that stored")
	}
}

// One edit was stored, and the one after it failed: until used is counted for the first, its limits bind.
func TestAFenceStaysUntilTheStoredSpecIsCounted(t *testing.T) {
	state := raised(counted("pods", "3"), fence(4, "pods", "3"), fence(5, "cpu", "1"))
	draft := Edit(state)
	draft.RemoveFence(state.Fence, 4)
	asked := creation("a", "a", "pods", "1")
	if decision := draft.Judge(asking(limits("pods", "6"), asked)); IsGranted(decision) {
		t.Errorf("by the limit before: got %v", decision)
	}
	state.Generation = 4
	draft = Edit(state)
	draft.RemoveFence(state.Fence, 4)
	if draft.State().Fence.Generation != 0 {
		t.Error("want it gone: who judges by the limit before is known to be behind")
	}
}

// The limits of a spec that was replaced since bind no charge, and the limits of
// the stored spec do, also if they are higher.
func TestAStandingFenceOfAnOlderSpecBindsByTheStoredOne(t *testing.T) {
	draft := Edit(raised(counted("pods", "3", "cpu", "1"), fence(4, "pods", "3", "cpu", "1")))
	draft.UpdateFence(5, Limits{Hard: list("pods", "10")})
	draft.SetFence(fence(6, "services", "8"))
	want := fence(6, "pods", "10", "services", "8")
	want.Until = want.Until.Add(time.Second) // one more than the standing one
	if diff := cmp.Diff(want, draft.State().Fence); diff != "" {
		t.Errorf("fence (-want,+got):\n%s", diff)
	}
	draft = Edit(raised(counted("pods", "3"), fence(6, "pods", "3")))
	draft.UpdateFence(5, Limits{Hard: list("pods", "10")})
	if diff := cmp.Diff(fence(6, "pods", "3"), draft.State().Fence); diff != "" || draft.Changed() {
		t.Errorf("one of an edit under way (-want,+got):\n%s", diff)
	}
}
