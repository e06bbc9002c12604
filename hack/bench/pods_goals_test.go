// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMedian(t *testing.T) {
	for name, test := range map[string]struct {
		values []float64
		want   float64
	}{
		"of nothing":         {},
		"of one":             {values: []float64{7}, want: 7},
		"of an odd number":   {values: []float64{9, 1, 4}, want: 4},
		"of an even number":  {values: []float64{8, 1, 2, 4}, want: 3},
		"of those that tie":  {values: []float64{2, 2, 5}, want: 2},
		"without reordering": {values: []float64{3, 1, 2}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := median(test.values); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	var latency []time.Duration
	for i := range 100 {
		latency = append(latency, time.Duration(100-i)*time.Millisecond)
	}
	for percent, want := range map[float64]float64{0: 1, 50: 51, 99: 100, 100: 100} {
		if got := percentile(latency, percent); got != want {
			t.Errorf("percentile %v: got %v, want %v", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("of nothing: got %v, want 0", got)
	}
}

// The machine halves its speed in the second round: that is no difference between
// the variants, which the ratio of their medians would make of it.
func TestGoalsCompareWithinRounds(t *testing.T) {
	results := &results{}
	for _, rates := range [][2]float64{{1000, 800}, {500, 450}, {900, 630}} {
		results.add(many, allowing, turn{figures: figures{rate: rates[0]}})
		results.add(many, double, turn{figures: figures{rate: rates[1]}})
	}
	want := goal{
		What: "1000 clients: rate against the allowing webhook", Value: 0.8, Target: "≥ 0.85", Rounds: []float64{0.8, 0.9, 0.7},
	}
	got := results.goals()[0]
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("goals (-want,+got):\n%s", diff)
	}
	if spread := got.spread(); spread != "0.70 to 0.90" {
		t.Errorf("spread: got %q, want 0.70 to 0.90", spread)
	}
}

func TestAClientThatPausesIsComparedByItsLatency(t *testing.T) {
	results := &results{}
	for _, milliseconds := range [][2]int{{5, 9}, {4, 10}} {
		for i, variant := range []string{allowing, double} {
			latency := time.Duration(milliseconds[i]) * time.Millisecond
			results.add(idle, variant, turn{latency: []time.Duration{latency}})
		}
	}
	want := goal{What: "a client that pauses: p50 above the allowing webhook's, ms", Value: 5, Rounds: []float64{4, 6}}
	if diff := cmp.Diff(want, results.goals()[0], cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("goals (-want,+got):\n%s", diff)
	}
}

// A figure that is zero is one that was measured.
func TestAGoalWithoutAnotherVariantIsTheFigureItself(t *testing.T) {
	results := &results{}
	results.add(one, double, turn{figures: figures{writes: 0.1}})
	results.add(hundred, double, turn{})
	want := []goal{
		{What: "1 client: writes for each request", Value: 0.1, Target: "≤ 0.2", Rounds: []float64{0.1}},
		{What: "100 clients: writes for each request", Target: "≤ 0.05", Rounds: []float64{0}},
		{What: "all scenarios: requests that failed", Target: "≤ 0"},
	}
	if diff := cmp.Diff(want, results.goals()); diff != "" {
		t.Errorf("goals (-want,+got):\n%s", diff)
	}
}

func TestRequestsThatFailAreAGoalThatIsMissed(t *testing.T) {
	results := &results{}
	results.add(many, double, turn{figures: figures{failed: 3}})
	got := results.goals()
	text, err := table(got[len(got)-1:])
	if want := "| all scenarios: requests that failed | **3.00** |  | ≤ 0 |"; err != nil || !strings.Contains(text, want) {
		t.Errorf("want %q, got %v and\n%s", want, err, text)
	}
}
