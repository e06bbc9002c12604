// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// An object that was admitted under a quota and stored just as its namespace left is never
// counted, and its reservation must not wait for something else to happen.
func TestTellsOfObjectsInNamespacesThatLeft(t *testing.T) {
	told := 0
	count := newCount()
	count.changed = func([]string) { told++ }
	count.ReplaceNamespaces([]NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "red"}, Version: 1}}, 1, start)
	count.Define(targetFor(t, "red"), start)
	count.SetNamespace("a", nil, nil, 2, start)
	set := func(name string) bool {
		before := told
		if err := count.Source(pods).Set(podAt("a", name, "uid", 3), start); err != nil {
			t.Fatal(err)
		}
		return told > before
	}
	if !set("x") {
		t.Error("the quota that the namespace left was not told")
	}
	for minute := range 5 {
		count.Advance(start.Add(time.Duration(minute)*time.Minute), 3*time.Minute)
	}
	if set("y") {
		t.Error("the quota was told after the namespace had left long ago")
	}
}

// Between two versions of a namespace that isn't selected in the second it may
// have been selected and have left. A charge by a replica that knows it as it was
// then must not be judged by this count.
func TestANamespaceMayHaveLeftUnseen(t *testing.T) {
	namespaces := func(other uint64) []NamespaceLabels {
		return []NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "red"}, Version: 1}, {Name: "b", Version: other}}
	}
	for name, test := range map[string]struct {
		then                  func(*Count)
		touched, left, joined uint64
	}{
		"in the first list":               {then: func(*Count) {}, touched: 2, left: 2, joined: 1},
		"not, if a list shows no change":  {then: func(c *Count) { c.ReplaceNamespaces(namespaces(2), 9, start) }, touched: 2, left: 2, joined: 1},
		"in a list that shows a change":   {then: func(c *Count) { c.ReplaceNamespaces(namespaces(5), 9, start) }, touched: 5, left: 5, joined: 1},
		"not, if a watch shows it change": {then: func(c *Count) { c.SetNamespace("b", nil, nil, 5, start) }, touched: 2, left: 2, joined: 1},
		"nor if it is defined anew then": {then: func(c *Count) {
			c.SetNamespace("b", nil, nil, 5, start)
			c.Define(targetFor(t, "red"), start)
		}, touched: 2, left: 2, joined: 1},
		"what has left is not forgotten then": {then: func(c *Count) {
			c.SetNamespace("a", nil, nil, 5, start)
			c.Define(targetFor(t, "red"), start)
		}, touched: 5, left: 5},
		"one that is selected may have left, and come back": {then: func(c *Count) {
			c.ReplaceNamespaces([]NamespaceLabels{
				{Name: "a", Labels: map[string]string{"team": "red"}, Version: 6}, {Name: "b", Version: 2},
			}, 9, start)
		}, touched: 6, left: 2, joined: 6},
		"not, if a watch shows that it stayed": {then: func(c *Count) {
			c.SetNamespace("a", map[string]string{"team": "red", "stage": "prod"}, map[string]string{"note": "x"}, 6, start)
		}, touched: 2, left: 2, joined: 1},
	} {
		t.Run(name, func(t *testing.T) {
			count := newCount()
			count.ReplaceNamespaces(namespaces(2), 2, start)
			count.Define(targetFor(t, "red"), start)
			test.then(count)
			count.Read("red", func(view View) {
				touched, left, joined := view.Touched()[Namespaces], view.LastLeft(), view.LastJoined()
				if touched != test.touched || left != test.left || joined != test.joined {
					t.Errorf("got touched %d, left %d and joined %d, want %d, %d and %d",
						touched, left, joined, test.touched, test.left, test.joined)
				}
			})
		})
	}
}

// A ledger that has counted a namespace that isn't selected has not counted the namespaces that joined before that.
func TestANamespaceThatIsNotSelectedProvesNoJoin(t *testing.T) {
	red := map[string]string{"team": "red"}
	count := newCount()
	count.ReplaceNamespaces([]NamespaceLabels{
		{Name: "a", Labels: red, Version: 1}, {Name: "b", Version: 2}, {Name: "c", Labels: red, Version: 3}, {Name: "d", Version: 4},
	}, 4, start)
	count.Define(targetFor(t, "red"), start)
	count.Read("red", func(view View) {
		var got []string
		for _, one := range view.Unproved(func(uint64) bool { return false }) {
			got = append(got, fmt.Sprintf("%s@%d before %d", one.Namespace, one.Version, one.Before))
		}
		if diff := cmp.Diff([]string{"a@1 before 0", "c@3 before 1"}, got); diff != "" {
			t.Errorf("joins (-want,+got):\n%s", diff)
		}
	})
}

// touchedOf is the newest version of a pod that changed the count.
func touchedOf(count *Count) (version uint64) {
	count.Read("red", func(view View) { version = view.Touched()[pods] })
	return version
}

// A view from before the list would count the pod that is gone and not the pod
// that came.
func TestAListOfOtherObjectsThatUseAsMuchIsAChange(t *testing.T) {
	count := redQuota(t)
	source, touched := count.Source(pods), func() uint64 { return touchedOf(count) }
	replace := func(version uint64, listed ...runtime.Object) uint64 {
		if err := source.Replace(listed, version, start); err != nil {
			t.Fatal(err)
		}
		return touched()
	}
	x, y := podAt("a", "x", "uid-x", 2), podAt("a", "y", "uid-y", 3)
	replace(2, x)
	if touched := replace(4, y); touched != 4 {
		t.Errorf("the newest change is %d, want 4", touched)
	}
	if touched := replace(5, y); touched != 4 {
		t.Errorf("the newest change is %d after a list of the same, want 4", touched)
	}
}

// The ledger would be written again for it, after each pod that ends.
func TestTheDeletionOfAPodThatUsesNothingAnyMoreIsNoChange(t *testing.T) {
	count := redQuota(t)
	source, touched := count.Source(pods), func() uint64 { return touchedOf(count) }
	ended, gone := podAt("a", "x", "uid-x", 3), podAt("a", "x", "uid-x", 4)
	ended.Status.Phase, gone.Status.Phase = corev1.PodSucceeded, corev1.PodSucceeded
	for _, step := range []struct {
		happens string
		then    func() error
		touched uint64
	}{
		{"a pod is created", func() error { return source.Set(podAt("a", "x", "uid-x", 2), start) }, 2},
		{"it ends", func() error { return source.Set(ended, start) }, 3},
		{"it is deleted", func() error { return source.Delete(gone, start) }, 3},
	} {
		if err := step.then(); err != nil {
			t.Fatal(err)
		}
		if got := touched(); got != step.touched {
			t.Errorf("%s: the newest change is %d, want %d", step.happens, got, step.touched)
		}
	}
}
