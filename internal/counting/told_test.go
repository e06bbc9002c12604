// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

// teller remembers which quotas a Count told of, and of which that something is free.
type teller struct{ told, freed map[string]bool }

func (t *teller) tellFreed(quotas []string) {
	for _, name := range quotas {
		t.freed[name] = true
	}
}

func (t *teller) tell(quotas []string) {
	for _, name := range quotas {
		t.told[name] = true
	}
}

// passUnnoticed is the time between two looks at it.
func (w *world) passUnnoticed() { w.clock.Step(45 * time.Second) }

func (w *world) audit() { w.count.Audit(w.anyQuotaName(), w.now()) }

func (t *teller) requireToldOf(rt *rapid.T, w *world, name string, step func()) {
	before := w.allFigures()
	t.told, t.freed = map[string]bool{}, map[string]bool{}
	step()
	for quotaName, current := range w.allFigures() {
		if previous, known := before[quotaName]; known && !maps.EqualFunc(previous, current, quota.Equals) && !t.told[quotaName] {
			rt.Fatalf("%s moved the figures of %s from %v to %v and told only of %v",
				name, quotaName, previous, current, slices.Sorted(maps.Keys(t.told)))
		}
		if previous, known := before[quotaName]; known && fell(previous, current) && !t.freed[quotaName] {
			rt.Fatalf("%s let the figures of %s fall from %v to %v and told only %v that something is free",
				name, quotaName, previous, current, slices.Sorted(maps.Keys(t.freed)))
		}
	}
}

// fell reports whether less of anything is used anywhere.
func fell(previous, current map[string]corev1.ResourceList) bool {
	for where, before := range previous {
		if grown, _ := quota.LessThanOrEqual(before, current[where]); !grown {
			return true
		}
	}
	return false
}

func (w *world) allFigures() map[string]map[string]corev1.ResourceList {
	all := map[string]map[string]corev1.ResourceList{}
	for _, name := range w.count.Quotas() {
		all[name] = w.figures(w.count, name)
	}
	return all
}

// The grace of a pod is over, and the next look at the time is yet to come: the
// first call that notices must report it.
func TestTheEndOfAPodsGraceIsReported(t *testing.T) {
	late := start.Add(2 * time.Minute)
	for name, look := range map[string]func(*Count){
		"the regular look": func(count *Count) { count.Advance(late, time.Hour) },
		"an audit":         func(count *Count) { count.Audit("red", late) },
		"another quota that comes to count the pod": func(count *Count) {
			other := targetOf(count, "red")
			other.Quota.Name = "other"
			count.Define(other, late)
		},
	} {
		t.Run(name, func(t *testing.T) {
			count, heard := redQuota(t), &teller{told: map[string]bool{}}
			if err := count.Source(pods).Set(leavingPod("x"), start); err != nil {
				t.Fatal(err)
			}
			count.changed = heard.tell
			look(count)
			count.Advance(late.Add(time.Second), time.Hour) // a last chance
			total := totalOf(count, "red")
			if used := total["pods"]; !used.IsZero() || !heard.told["red"] {
				t.Errorf("want no pods and the quota told, got %s pods, told %v", used.String(), heard.told)
			}
		})
	}
}

func targetOf(count *Count, name string) Target {
	var target Target
	count.Read(name, func(view View) { target = view.Target() })
	return target
}

func totalOf(count *Count, name string) corev1.ResourceList {
	var total corev1.ResourceList
	count.Read(name, func(view View) { total = view.Total() })
	return total
}

func TestAnUnknownQuotaHasNoFigures(t *testing.T) {
	count := newCount()
	if count.Read("nobody", func(View) { t.Error("want nothing to read") }) {
		t.Error("want it unknown")
	}
	if drift := count.Audit("nobody", start); len(drift) > 0 {
		t.Errorf("want no drift, got %v", drift)
	}
}

// requireSelections wants another number of the selections that have changed.
func (w *world) requireSelections(name string, before map[string]selected) {
	for quotaName, current := range w.selections() {
		previous, known := before[quotaName]
		if current.number == 0 && len(current.namespaces) > 0 {
			w.t.Fatalf("%s: the selection of %s, %v, passes for unknown", name, quotaName, current.namespaces)
		}
		if known && previous.number == current.number && !slices.Equal(previous.namespaces, current.namespaces) {
			w.t.Fatalf("%s: the selection of %s is still %d, from %v to %v", name, quotaName, current.number, previous.namespaces, current.namespaces)
		}
	}
}

type selected struct {
	number     uint64
	namespaces []string
}

func (w *world) selections() map[string]selected {
	selections := map[string]selected{}
	for _, name := range w.count.Quotas() {
		w.count.Read(name, func(view View) {
			selections[name] = selected{number: view.Selection(), namespaces: sortedKeys(view.Slices())}
		})
	}
	return selections
}

func TestThatAPodCameLeavesTheSelectionAsItWas(t *testing.T) {
	count := redQuota(t)
	selection := func() (number uint64) {
		count.Read("red", func(view View) { number = view.Selection() })
		return number
	}
	before := selection()
	if err := count.Source(pods).Set(podAt("a", "p", "u", 6), start); err != nil {
		t.Fatal(err)
	}
	if after := selection(); before == 0 || after != before {
		t.Errorf("selection %d became %d", before, after)
	}
	count.DeleteNamespace("a", 7)
	if after := selection(); after == before {
		t.Errorf("selection %d is the same without the namespace", after)
	}
}
