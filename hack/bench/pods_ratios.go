// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// ratio compares two figures of one run. Of two variants that took turns it is
// the median of the rounds' ratios: what the machine does besides changes from
// round to round, and less within one.
type ratio struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Target string  `json:"target"`
	// Rounds are the ratios of each round, where there are any.
	Rounds []float64 `json:"rounds,omitempty"`
}

// spread tells how much the rounds differ.
func (r ratio) spread() string {
	if len(r.Rounds) < 2 {
		return ""
	}
	return fmt.Sprintf("%.2f to %.2f", slices.Min(r.Rounds), slices.Max(r.Rounds))
}

// ratios returns those whose figures were measured.
func (r *results) ratios() []ratio {
	var known []ratio
	add := func(name, target string, value float64, rounds []float64) {
		if value != 0 {
			known = append(known, ratio{name, value, target, rounds})
		}
	}
	compare := func(name, target string, rounds []float64) { add(name, target, median(rounds), rounds) }
	for _, scenario := range []struct{ name, floor, native string }{
		{one, "≥ 0.9", "≥ 1.3"}, {ten, "≥ 0.85", "≥ 1.3"}, {hundred, "≥ 0.85", "≥ 1.6"}, {many, "", ""},
	} {
		name := scenario.name
		compare(name+": operator against the allowing webhook", scenario.floor, r.rates(name, double, name, allowing))
		compare(name+": operator against native ResourceQuota", scenario.native, r.rates(name, double, name, native))
	}
	for _, scenario := range []struct{ name, target string }{{one, "≤ 1"}, {idle, ""}} {
		above, rounds := r.above(scenario.name)
		add(scenario.name+": p50 above the allowing webhook's, ms", scenario.target, above, rounds)
	}
	compare(hundred+": two replicas against one", "≥ 0.95", r.rates(hundred, double, hundred, single))
	compare(hundred+": what the API server allocates, against the allowing webhook", "≤ 1.15", r.byRound(hundred, double, hundred, allowing,
		func(one, other turnFigures) float64 { return one.APIServerHeap / max(other.APIServerHeap, 1e-9) }))
	for _, scenario := range []struct{ name, target string }{{one, "≤ 0.2"}, {hundred, "≤ 0.05"}} {
		if operator, measured := r.find(scenario.name, double); measured {
			add(scenario.name+": writes for each request", scenario.target, operator.Writes, nil)
		}
	}
	compare(hundredAtURL+": operator against the allowing webhook", "", r.rates(hundredAtURL, atURL, hundredAtURL, allowingAtURL))
	compare(full+": refusals against the allowing webhook's rate", "≥ 0.9", r.rates(full, double, full, allowing))
	compare(full+": refusals against those of a webhook that refuses everything", "", r.rates(full, double, full, refusing))
	for _, scenario := range []struct{ name, target string }{{applied, "≤ 5"}, {appliedByTen, ""}} {
		for _, percent := range []float64{50, 99} {
			above, rounds := r.later(scenario.name, preflightWarn, preflightOff, percent)
			add(fmt.Sprintf("%s: p%.0f above that without preflight, ms", scenario.name, percent), scenario.target, above, rounds)
		}
	}
	for _, s := range r.Scenarios {
		compare(s.Name+": operator against the other build", "", r.rates(s.Name, double, s.Name, another))
	}
	for _, v := range []string{single, double} {
		add("from a deletion to its capacity granted elsewhere, "+v+", p50 ms", "≤ 30", r.limit(freed, v), nil)
	}
	return known
}

func (r *results) find(scenario, variant string) (*variantResult, bool) {
	for _, s := range r.Scenarios {
		for _, v := range s.Variants {
			if s.Name == scenario && v.Name == variant {
				return v, true
			}
		}
	}
	return nil, false
}

// rates are the ratios of two variants' rates, round by round.
func (r *results) rates(scenario, variant, otherScenario, otherVariant string) []float64 {
	return r.byRound(scenario, variant, otherScenario, otherVariant, func(one, other turnFigures) float64 {
		return one.Rate / max(other.Rate, 1e-9)
	})
}

// above is how much later than the allowing webhook the operator answers: over all rounds, and
// in each.
func (r *results) above(scenario string) (all float64, rounds []float64) {
	operator, measured := r.find(scenario, double)
	floor, too := r.find(scenario, allowing)
	if !measured || !too {
		return 0, nil
	}
	return operator.P50 - floor.P50, r.byRound(scenario, double, scenario, allowing, func(one, other turnFigures) float64 {
		return milliseconds(percentile(one.latency, 50) - percentile(other.latency, 50))
	})
}

// later is by how much one variant's percentile is above another's: over all rounds, and in each.
func (r *results) later(scenario, variant, other string, percent float64) (all float64, rounds []float64) {
	rounds = r.byRound(scenario, variant, scenario, other, func(one, other turnFigures) float64 {
		return milliseconds(percentile(one.latency, percent) - percentile(other.latency, percent))
	})
	return median(rounds), rounds
}

func (r *results) byRound(
	scenario, variant, otherScenario, otherVariant string, figure func(one, other turnFigures) float64,
) []float64 {
	one, measured := r.find(scenario, variant)
	other, too := r.find(otherScenario, otherVariant)
	if !measured || !too {
		return nil
	}
	var rounds []float64
	for i := range min(len(one.turns), len(other.turns)) {
		rounds = append(rounds, figure(one.turns[i], other.turns[i]))
	}
	return rounds
}

func (r *results) limit(scenario, variant string) float64 {
	one, ok := r.find(scenario, variant)
	if !ok || one.Limit == nil {
		return 0
	}
	return one.Limit.P50
}
