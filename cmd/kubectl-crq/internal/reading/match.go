// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// Requirement is one thing that a quota asks of its namespaces.
type Requirement struct {
	// Text is as people read it: "label team=payments".
	Text string
	// Has is the namespace's value of that name, likewise; empty for nothing.
	Has string
}

// Match is how a namespace stands to a quota.
type Match struct {
	// Covered reports whether the quota selects the namespace.
	Covered bool
	// Met and Unmet are the quota's requirements, sorted; nothing is unmet where it is covered.
	Met, Unmet []Requirement
}

// NearMiss reports whether all but one requirement is met, one of them by something
// that the namespace has. Without that, each team would be near every other's quota.
func (m Match) NearMiss() bool {
	return len(m.Unmet) == 1 && slices.ContainsFunc(m.Met, func(met Requirement) bool { return met.Has != "" })
}

// MatchSelector compares a quota's selector with a namespace's labels and annotations. The
// error is for a selector that can't be compiled.
func MatchSelector(selector quotav1.ClusterResourceQuotaSelector, namespaceLabels, annotations map[string]string) (Match, error) {
	compiled, err := definition.CompileSelector(selector)
	if err != nil {
		return Match{}, err
	}
	match := Match{Covered: compiled.Matches(namespaceLabels, annotations)}
	note := func(met bool, requirement Requirement) {
		if met {
			match.Met = append(match.Met, requirement)
			return
		}
		match.Unmet = append(match.Unmet, requirement)
	}
	matchLabels(compiled.Labels(), namespaceLabels, note)
	matchAnnotations(selector.AnnotationSelector, annotations, note)
	return match, nil
}

func matchLabels(selector labels.Selector, namespaceLabels map[string]string, note func(met bool, requirement Requirement)) {
	written, _ := selector.Requirements()
	requirements := slices.SortedFunc(slices.Values(written), func(a, b labels.Requirement) int {
		return cmp.Compare(a.String(), b.String())
	})
	for i := range requirements {
		requirement := &requirements[i]
		note(requirement.Matches(labels.Set(namespaceLabels)), Requirement{
			Text: "label " + requirement.String(),
			Has:  entry(namespaceLabels, requirement.Key()),
		})
	}
}

func matchAnnotations(wanted, annotations map[string]string, note func(met bool, requirement Requirement)) {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		got, found := annotations[key]
		note(found && got == wanted[key], Requirement{
			Text: fmt.Sprintf("annotation %s=%s", key, wanted[key]),
			Has:  entry(annotations, key),
		})
	}
}

// entry is one label or annotation as people write it; empty if there is none.
func entry(of map[string]string, key string) string {
	if value, found := of[key]; found {
		return key + "=" + value
	}
	return ""
}
