// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// An audit finds a drift that only a defect within can bring about, repairs it,
// reports it, and is content afterwards.
func TestAnAuditFindsWhateverDrifted(t *testing.T) {
	one := corev1.ResourceList{"pods": resource.MustParse("1")}
	for name, corrupt := range map[string]func(count *Count, red *tally){
		"the total": func(_ *Count, red *tally) { red.total = quota.Add(red.total, one) },
		"a slice, and the total with it": func(_ *Count, red *tally) {
			red.slices["a"], red.total = quota.Add(red.slices["a"], one), quota.Add(red.total, one)
		},
		"a slice alone": func(_ *Count, red *tally) { red.slices["a"] = quota.Add(red.slices["a"], one) },
		"a namespace is missing": func(count *Count, red *tally) {
			count.lockedUncover("a", red)
		},
		"a namespace is one too many": func(_ *Count, red *tally) {
			red.slices["b"], red.total = one, quota.Add(red.total, one)
		},
		"a namespace that doesn't exist": func(_ *Count, red *tally) {
			red.slices["nowhere"], red.total = one, quota.Add(red.total, one)
		},
	} {
		t.Run(name, func(t *testing.T) {
			count, heard := redQuota(t), &teller{told: map[string]bool{}}
			if err := count.Source(pods).Set(podAt("a", "x", "1x", 20), start); err != nil {
				t.Fatal(err)
			}
			count.changed = heard.tell
			corrupt(count, count.tallies["red"])
			if drift := count.Audit("red", start); len(drift) == 0 || !heard.told["red"] {
				t.Errorf("want a drift and the quota told, got %v, told %v", drift, heard.told)
			}
			requireSumOfSlices(t, count)
			requireNoDrift(t, count, start)
			if used := totalOf(count, "red")["pods"]; used.Value() != 1 || len(count.tallies["red"].slices) != 1 {
				t.Errorf("want 1 pod in one namespace, got %v", count.tallies["red"].slices)
			}
		})
	}
}

func TestAnAuditThatFindsNothingTellsNobody(t *testing.T) {
	count, heard := redQuota(t), &teller{told: map[string]bool{}}
	if err := count.Source(pods).Set(podAt("a", "x", "1x", 20), start); err != nil {
		t.Fatal(err)
	}
	count.changed, count.freed = heard.tell, heard.tell
	selection := count.tallies["red"].selection
	if drift := count.Audit("red", start.Add(time.Hour)); len(drift) > 0 || len(heard.told) > 0 {
		t.Errorf("want no drift and nobody told, got %v, told %v", drift, heard.told)
	}
	if current := count.tallies["red"].selection; current != selection || len(count.left) > 0 {
		t.Errorf("want no namespace that came or went, got %v, and selection %d after %d", count.left, current, selection)
	}
}

// A list may be measured object by object, as they come.
func TestAMeasuredListIsTheSameAsTheListItself(t *testing.T) {
	objects := []runtime.Object{podAt("a", "x", "1x", 20), leavingPod("y")}
	plain, small := redQuota(t), redQuota(t)
	var measured []runtime.Object
	for _, object := range objects {
		current, err := small.Source(pods).Measure(object)
		if err != nil {
			t.Fatal(err)
		}
		measured = append(measured, current.DeepCopyObject())
	}
	late := start.Add(time.Minute)
	for count, list := range map[*Count][]runtime.Object{plain: objects, small: measured} {
		if err := count.Source(pods).Replace(list, 30, late); err != nil {
			t.Fatal(err)
		}
		requireNoDrift(t, count, late)
		if used := totalOf(count, "red")["pods"]; used.Value() != 2 {
			t.Errorf("want 2 pods, got %s", used.String())
		}
		count.Read("red", func(view View) {
			if !view.Includes(pods, "a", "x", "1x", 19) || view.Includes(pods, "a", "x", "1x", 20) {
				t.Error("want the pod included as of its version")
			}
		})
	}
	if !measured[0].GetObjectKind().GroupVersionKind().Empty() {
		t.Error("want what is measured to be of no kind")
	}
}

func TestAnObjectOfAnotherResourceIsNotMeasured(t *testing.T) {
	source := redQuota(t).Source(pods)
	for _, object := range []runtime.Object{&corev1.Service{}, &runtime.Unknown{}} {
		if _, err := source.Measure(object); err == nil {
			t.Errorf("%T: want an error", object)
		}
		if err := source.Replace([]runtime.Object{object}, 30, start); err == nil {
			t.Errorf("%T: want an error of the list", object)
		}
	}
}

// A quota is told of a source that it is counted from, though none of its
// figures moved; others are left alone.
func TestOnlyThoseWhoCountFromASourceAreToldHowFarItIs(t *testing.T) {
	for name, event := range map[string]func(source *Source) error{
		"a bookmark": func(source *Source) error { source.At(100); return nil },
		"a list":     func(source *Source) error { return source.Replace(nil, 200, start) },
	} {
		count, heard := redQuota(t), &teller{told: map[string]bool{}}
		count.changed = heard.tell
		if err := event(count.Source(configMaps)); err != nil || heard.told["red"] {
			t.Errorf("%s of what isn't limited: want nobody told, got %v, %v", name, heard.told, err)
		}
		if err := event(count.Source(pods)); err != nil || !heard.told["red"] {
			t.Errorf("%s: want the quota told, got %v, %v", name, heard.told, err)
		}
	}
}

func TestNothingIsKeptOfAQuotaThatWasDeleted(t *testing.T) {
	count := redQuota(t)
	count.Forget("red")
	count.Advance(start, time.Minute)
	if len(count.left) > 0 {
		t.Errorf("want no namespace that left it, got %v", count.left)
	}
}
