// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	"pgregory.net/rapid"
)

// A stand-in matches every quota that its object matches, and no other.
func TestStandInsMatchWhatTheirObjectsMatch(t *testing.T) {
	evaluators, outcomes := newTestEvaluators(), tally{}
	rapid.Check(t, func(t *rapid.T) {
		typed := anyTyped().Draw(t, "object")
		evaluator := evaluators.evaluator(typed.resource)
		if evaluator == nil {
			return // Events.
		}
		facts, err := factsOf(evaluator, typed.object)
		if err != nil {
			t.Fatal(err)
		}
		standIn := facts.standIn(neededObject(typed.resource))
		for _, spec := range rapid.SliceOfN(anyScopedSpec(), 30, 30).Draw(t, "specs") {
			spec.Hard = quotaOf("scoped", limitableNames()...).Spec.Hard
			quota := Quota{Name: "scoped", Spec: spec}
			want, err := evaluator.Matches(countedQuota(quota), typed.object)
			got, standInErr := evaluator.Matches(countedQuota(quota), standIn)
			if want != got || err != nil || standInErr != nil {
				t.Fatalf("object %v, %v; stand-in %v, %v; %v", want, err, got, standInErr, spec)
			}
			outcomes[map[bool]string{true: "matched", false: "not matched"}[want]]++
		}
	})
	outcomes.require(t, 100, "matched", "not matched")
}
