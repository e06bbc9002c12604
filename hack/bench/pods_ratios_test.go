// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
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
func TestRatiosCompareWithinRounds(t *testing.T) {
	results := &results{}
	for _, rates := range [][2]float64{{1000, 800}, {500, 450}, {900, 630}} {
		results.add(many, allowing, turn{figures: figures{rate: rates[0]}})
		results.add(many, double, turn{figures: figures{rate: rates[1]}})
	}
	want := []ratio{{
		What: "1000 clients: operator against the allowing webhook", Value: 0.8, Rounds: []float64{0.8, 0.9, 0.7},
	}}
	got := results.ratios()
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("ratios (-want,+got):\n%s", diff)
	}
	if spread := got[0].spread(); spread != "0.70 to 0.90" {
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
	want := []ratio{{What: "a client that pauses: p50 above the allowing webhook's, ms", Value: 5, Rounds: []float64{4, 6}}}
	if diff := cmp.Diff(want, results.ratios(), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("ratios (-want,+got):\n%s", diff)
	}
}
