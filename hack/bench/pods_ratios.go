// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
)

// ratio compares a figure of two variants that took turns: it is the median of the rounds'
// ratios, or differences. What the machine does besides changes from round to round, and less
// within one.
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

// comparison is a ratio that is wanted. Without another variant, it is the figure itself.
type comparison struct {
	scenario, what, target string
	variant, other         string
	figure                 figure
	how                    func(one, other float64) float64
}

func divided(one, other float64) float64 { return one / max(other, 1e-9) }
func above(one, other float64) float64   { return one - other }

var comparisons = []comparison{
	{one, "operator against the allowing webhook", "≥ 0.9", double, allowing, rate, divided},
	{one, "operator against native ResourceQuota", "≥ 1.3", double, native, rate, divided},
	{one, "p50 above the allowing webhook's, ms", "≤ 1", double, allowing, p50, above},
	{one, "writes for each request", "≤ 0.2", double, "", writes, nil},
	{ten, "operator against the allowing webhook", "≥ 0.85", double, allowing, rate, divided},
	{ten, "operator against native ResourceQuota", "≥ 1.3", double, native, rate, divided},
	{hundred, "operator against the allowing webhook", "≥ 0.85", double, allowing, rate, divided},
	{hundred, "operator against native ResourceQuota", "≥ 1.6", double, native, rate, divided},
	{hundred, "two replicas against one", "≥ 0.95", double, single, rate, divided},
	{hundred, "what the API server allocates, against the allowing webhook", "≤ 1.15", double, allowing, apiServerHeap, divided},
	{hundred, "writes for each request", "≤ 0.05", double, "", writes, nil},
	{many, "operator against the allowing webhook", "", double, allowing, rate, divided},
	{idle, "p50 above the allowing webhook's, ms", "", double, allowing, p50, above},
	{trying, "with a limit that is tried, against without", "≥ 0.6", tried, double, rate, divided},
	{trying, "p50 above that without, ms", "", tried, double, p50, above},
	{full, "refusals against the allowing webhook's rate", "≥ 0.9", double, allowing, rate, divided},
	{full, "refusals against those of a webhook that refuses everything", "", double, refusing, rate, divided},
	{freed, "from a deletion to its capacity granted elsewhere, 1 replica, p50 ms", "≤ 30", single, "", p50, nil},
	{freed, "from a deletion to its capacity granted elsewhere, 2 replicas, p50 ms", "≤ 30", double, "", p50, nil},
	{applied, "p50 above that without preflight, ms", "≤ 5", preflightWarn, preflightOff, p50, above},
	{applied, "p99 above that without preflight, ms", "≤ 5", preflightWarn, preflightOff, p99, above},
	{appliedByTen, "p50 above that without preflight, ms", "", preflightWarn, preflightOff, p50, above},
	{appliedByTen, "p99 above that without preflight, ms", "", preflightWarn, preflightOff, p99, above},
}

// ratios returns those whose figures were measured.
func (r *results) ratios() []ratio {
	wanted := slices.Clone(comparisons)
	for _, s := range r.Scenarios {
		wanted = append(wanted, comparison{s.Name, "operator against the other build", "", double, another, rate, divided})
	}
	var known []ratio
	for _, c := range wanted {
		if value, rounds := r.compare(c); value != 0 {
			known = append(known, ratio{c.scenario + ": " + c.what, value, c.target, rounds})
		}
	}
	return known
}

func (r *results) compare(c comparison) (value float64, rounds []float64) {
	variant := r.find(c.scenario, c.variant)
	if variant == nil {
		return 0, nil
	}
	if c.other == "" {
		return variant.medians[c.figure], nil
	}
	other := r.find(c.scenario, c.other)
	if other == nil {
		return 0, nil
	}
	for i := range min(len(variant.turns), len(other.turns)) {
		rounds = append(rounds, c.how(variant.turns[i].figures[c.figure], other.turns[i].figures[c.figure]))
	}
	return median(rounds), rounds
}

func (r *results) find(scenario, variant string) *variantResult {
	for _, s := range r.Scenarios {
		for _, v := range s.Variants {
			if s.Name == scenario && v.Name == variant {
				return v
			}
		}
	}
	return nil
}
