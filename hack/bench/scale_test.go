// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
)

func TestAllPodsAreSharedOut(t *testing.T) {
	o := scaleOptions{namespaces: 500, quotas: 50}
	for _, pods := range []int{0, 5000, 5009, 50000} {
		sum := 0
		for namespace := range o.namespaces {
			sum += o.share(namespace, pods)
		}
		if sum != pods {
			t.Errorf("want %d pods, got %d", pods, sum)
		}
	}
	if many, few := o.share(0, 50000), o.share(o.namespaces-1, 50000); many != 5000 || few != 90 {
		t.Errorf("want namespaces of 5000 and 90 pods, got %d and %d", many, few)
	}
}

func TestTheExpectedLedgersAreThoseOfTheLoad(t *testing.T) {
	w := scaleWorld{options: scaleOptions{namespaces: 20, quotas: 3}, loaded: 457}
	sum := usage{}
	for _, used := range w.expected() {
		sum.pods, sum.milliCPU = sum.pods+used.pods, sum.milliCPU+used.milliCPU
	}
	if sum.pods != 457 || sum.milliCPU < 457*milliCPU(0) {
		t.Errorf("got %+v of 457 pods", sum)
	}
}

// Pods that are loaded stay.
func TestWithMorePodsNoNamespaceHoldsLess(t *testing.T) {
	o := scaleOptions{namespaces: 500, quotas: 50}
	for namespace := range o.namespaces {
		for pods := range 2000 {
			if o.share(namespace, pods) > o.share(namespace, pods+1) {
				t.Fatalf("namespace %d holds less of %d pods than of %d", namespace, pods+1, pods)
			}
		}
	}
}

func TestAllCustomResourcesButTheBrokenOneAreExpected(t *testing.T) {
	expected := map[string]usage{}
	scaleOptions{quotas: 3, custom: 8}.customExpected(expected)
	want := map[string]usage{"team-000": {custom: 2}, "team-001": {custom: 3}, "team-002": {custom: 2}}
	if !maps.Equal(expected, want) {
		t.Errorf("got %v", expected)
	}
}

func TestAPodLeavesTheCustomResourcesAsTheyAre(t *testing.T) {
	before := usage{pods: 3, milliCPU: 700, custom: 9}
	if after := before.plus(4, 1); after.custom != 9 || after.plus(4, -1) != before {
		t.Errorf("got %+v with a pod more", after)
	}
}

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	good := scaleOptions{pods: 5000, namespaces: 500, quotas: 50, tries: 4}
	if err := good.validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*scaleOptions){
		"no quota":             func(o *scaleOptions) { o.quotas = 0 },
		"a namespace a quota":  func(o *scaleOptions) { o.quotas = 500 },
		"no try":               func(o *scaleOptions) { o.tries = 0 },
		"less than a pod each": func(o *scaleOptions) { o.pods = 499 },
	} {
		o := good
		change(&o)
		if o.validate() == nil {
			t.Errorf("%s: want it refused", name)
		}
	}
}

func TestSeriesAreAddedUp(t *testing.T) {
	const text = "# TYPE a gauge\na 1.5e+07\n# TYPE b counter\nb{c=\"d e\"} 2\nb{c=\"f\"} 3\n"
	got, err := parseMetrics([]byte(text))
	if err != nil || got.sum("a") != 1.5e7 || got.sum("b") != 5 || got.sum("c") != 0 {
		t.Errorf("want 1.5e7, 5 and 0, got %v, %v", got, err)
	}
	if one := got.sum("b", func(labels map[string]string) bool { return labels["c"] == "f" }); one != 3 {
		t.Errorf("want 3 of one series, got %v", one)
	}
	if _, err := parseMetrics([]byte("a b\n")); err == nil {
		t.Error("want an error for what is no number")
	}
}

func TestTheTableTellsTheGrowth(t *testing.T) {
	r := report{Namespaces: 500, Quotas: 50}
	r.add(row{Memory: memory{Resident: 60e6}})
	for _, pods := range []int{5000, 50000} {
		r.add(row{
			Pods: pods, Complete: float64(pods) / 1000, Memory: memory{Resident: 60e6 + 400*float64(pods)}, Changes: make([]changes, 2),
		})
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"60.0 MB resident", "5.00  50.00  x10.00", "400    400   x1.00", "400 B resident a pod, at most 1500 wanted: met", "400 B for each one more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in:\n%s", want, out.String())
		}
	}
}

func TestTheFirstErrorEndsWhatIsDoneInParallel(t *testing.T) {
	failure := errors.New("failure")
	var done atomic.Int64
	err := inParallel(t.Context(), 1000, func(ctx context.Context, i int) error {
		if i == 3 {
			return failure
		}
		done.Add(1)
		if i > 500 {
			<-ctx.Done()
		}
		return nil
	})
	if !errors.Is(err, failure) || done.Load() == 999 {
		t.Errorf("want the failure and an early end, got %v after %d", err, done.Load())
	}
	if err := inParallel(t.Context(), 100, func(context.Context, int) error { return nil }); err != nil {
		t.Error(err)
	}
}
