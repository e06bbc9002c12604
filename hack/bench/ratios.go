/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

// ratio compares two figures of one run.
type ratio struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Target string  `json:"target"`
}

// ratios returns those whose figures were measured.
func (r *results) ratios() []ratio {
	var known []ratio
	add := func(what, target string, value float64, ok bool) {
		if ok {
			known = append(known, ratio{what, value, target})
		}
	}
	rate := func(f turnFigures) float64 { return f.Rate }
	const hundred = "100 namespaces"
	value, ok := r.compare(hundred, single, hundred, allowing, rate)
	add("100 namespaces: operator against the allowing webhook", "≥ 0.95", value, ok)
	value, ok = r.compare(hundred, single, hundred, native, rate)
	add("100 namespaces: operator against native ResourceQuota", "≥ 1.5", value, ok)
	const twice = "100 namespaces, 2 API servers"
	value, ok = r.compare(twice, double, twice, single, rate)
	add("100 namespaces, 2 API servers: two replicas against one", "≥ 0.9", value, ok)
	value, ok = r.compare("1000 namespaces", single, "10 namespaces", single, rate)
	add("operator: 1000 namespaces against 10", "≥ 0.9", value, ok)
	value, ok = r.compare("1000 namespaces", allowing, "10 namespaces", allowing, rate)
	add("allowing webhook: 1000 namespaces against 10", "", value, ok)
	value, ok = r.difference("a single idle client", single, allowing, func(f turnFigures) float64 { return f.P50 })
	add("a single idle client's p50 above the allowing webhook's, ms", "≤ 5", value, ok)
	value, ok = r.compare("exhausted quota", single, "exhausted quota", allowing, rate)
	add("exhausted quota: refusals against the allowing webhook's rate", "≥ 0.9", value, ok)
	value, ok = r.compare("exhausted quota", single, "exhausted quota", refusing, rate)
	add("exhausted quota: refusals against those of a webhook that refuses everything", "", value, ok)
	value, ok = r.limit("freed capacity", single)
	add("from a deletion to its capacity granted elsewhere, p50 ms", "≤ 100", value, ok)
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

func (r *results) compare(
	scenario, variant, otherScenario, otherVariant string, figure func(turnFigures) float64,
) (float64, bool) {
	one, ok1 := r.find(scenario, variant)
	other, ok2 := r.find(otherScenario, otherVariant)
	if !ok1 || !ok2 || figure(other.turnFigures) == 0 {
		return 0, false
	}
	return figure(one.turnFigures) / figure(other.turnFigures), true
}

func (r *results) difference(scenario, variant, other string, figure func(turnFigures) float64) (float64, bool) {
	one, ok1 := r.find(scenario, variant)
	two, ok2 := r.find(scenario, other)
	if !ok1 || !ok2 {
		return 0, false
	}
	return figure(one.turnFigures) - figure(two.turnFigures), true
}

func (r *results) limit(scenario, variant string) (float64, bool) {
	one, ok := r.find(scenario, variant)
	if !ok || one.Limit == nil {
		return 0, false
	}
	return one.Limit.P50, true
}
