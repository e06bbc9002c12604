// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// comparison is a goal whose figure compares two variants that took turns: the median of the rounds' ratios, or
// differences. The machine's speed changes from round to round, and less within one. Without another variant,
// it is the figure itself.
type comparison struct {
	scenario, what string
	target         target
	variant, other string
	figure         figure
	how            func(one, other float64) float64
}

func divided(one, other float64) float64 { return one / max(other, 1e-9) }
func above(one, other float64) float64   { return one - other }

const (
	againstAllowing = "rate against the allowing webhook"
	againstNative   = "rate against native ResourceQuota"
	allCPU          = "CPU of API server, etcd and operator for each pod, against the allowing webhook"
	longerP50       = "p50 longer than without preflight, ms"
	longerP99       = "p99 longer than without preflight, ms"
)

var comparisons = []comparison{
	{one, againstAllowing, "≥ 0.95", double, allowing, rate, divided},
	{one, againstNative, "≥ 1.3", double, native, rate, divided},
	{one, "p50 above the allowing webhook's, ms", "≤ 1", double, allowing, p50, above},
	{one, "writes for each request", "≤ 0.2", double, "", writes, nil},
	{ten, againstAllowing, "≥ 0.92", double, allowing, rate, divided},
	{ten, againstNative, "≥ 1.3", double, native, rate, divided},
	{ten, allCPU, "≤ 1.15", double, allowing, totalCPU, divided},
	{hundred, againstAllowing, "≥ 0.92", double, allowing, rate, divided},
	{hundred, againstNative, "≥ 1.6", double, native, rate, divided},
	{hundred, allCPU, "≤ 1.15", double, allowing, totalCPU, divided},
	{hundred, "memory that the API server allocates, against the allowing webhook", "≤ 1.10", double, allowing, apiServerHeap, divided},
	{hundred, "writes for each request", "≤ 0.05", double, "", writes, nil},
	{hundred, "rate of two replicas against one", "≥ 0.95", double, single, rate, divided},
	{many, againstAllowing, "≥ 0.85", double, allowing, rate, divided},
	{many, "CPU of the operator for each request, ms", "≤ 1.0", double, "", ownCPU, nil},
	{many, "CPU of the allowing webhook for each request, ms", "", allowing, "", ownCPU, nil},
	{newTen, againstAllowing, "≥ 0.9", double, allowing, rate, divided},
	{newTen, againstNative, "≥ 1.4", double, native, rate, divided},
	{newHundred, againstAllowing, "≥ 0.9", double, allowing, rate, divided},
	{newHundred, againstNative, "≥ 1.4", double, native, rate, divided},
	{idle, "p50 above the allowing webhook's, ms", "", double, allowing, p50, above},
	{trying, "rate against one quota alone", "≥ 0.6", tried, double, rate, divided},
	{full, "rate against a webhook that refuses everything", "≥ 0.9", double, refusing, rate, divided},
	{full, "p50 above that webhook's, ms", "≤ 5", double, refusing, p50, above},
	{freed, "p50, ms", "≤ 20", double, "", p50, nil},
	{freed, "p99, ms", "≤ 35", double, "", p99, nil},
	{applied, longerP50, "≤ 1.0", preflightWarn, preflightOff, p50, above},
	{applied, longerP99, "", preflightWarn, preflightOff, p99, above},
	{appliedByTen, longerP50, "≤ 2.0", preflightWarn, preflightOff, p50, above},
	{appliedByTen, "p50 longer with the allowing webhook, ms", "", allowing, preflightOff, p50, above},
	{appliedByTen, longerP99, "", preflightWarn, preflightOff, p99, above},
}

// goals returns those whose figures were measured.
func (r *results) goals() []goal {
	var known []goal
	for _, c := range comparisons {
		known = append(known, r.compare(c)...)
	}
	failures := goal{What: "all scenarios: requests that failed", Target: "≤ 0"}
	for _, s := range r.Scenarios {
		known = append(known, r.compare(comparison{s.Name, "rate against the other build", "", double, another, rate, divided})...)
		for _, v := range s.Variants {
			failures.Value += total(v.all(failed))
		}
	}
	return append(known, failures)
}

// compare returns the goal, if its figures were measured.
func (r *results) compare(c comparison) []goal {
	reached := goal{What: c.scenario + ": " + c.what, Target: c.target}
	variant, other := r.find(c.scenario, c.variant), r.find(c.scenario, c.other)
	switch {
	case variant == nil || other == nil && c.other != "":
		return nil
	case c.other == "":
		reached.Value, reached.Rounds = variant.medians[c.figure], variant.all(c.figure)
		return []goal{reached}
	}
	for i := range min(len(variant.turns), len(other.turns)) {
		reached.Rounds = append(reached.Rounds, c.how(variant.turns[i].figures[c.figure], other.turns[i].figures[c.figure]))
	}
	reached.Value = median(reached.Rounds)
	return []goal{reached}
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
