// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"iter"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Namespaces come, change and go, and selectors are asked about in between.
func TestCandidatesHaveEachSelectedNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored, labelled := map[string]map[string]string{}, NewLabelled()
		all := func() iter.Seq2[string, map[string]string] {
			return func(yield func(string, map[string]string) bool) {
				for name, labels := range stored {
					if !yield(name, labels) {
						return
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"a namespace changes": func(t *rapid.T) {
				name, after := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "name")), anySet(0).Draw(t, "labels")
				labelled.Change(name, stored[name], after)
				stored[name] = after
			},
			"a namespace goes": func(t *rapid.T) {
				name := fmt.Sprint(rapid.IntRange(0, 5).Draw(t, "name"))
				labelled.Change(name, stored[name], nil)
				delete(stored, name)
			},
			"a selector is asked about": func(t *rapid.T) {
				drawn := anySelector().Draw(t, "selector")
				drawn.AnnotationSelector = nil
				selector, err := CompileSelector(drawn)
				if err != nil {
					t.Skip(err)
				}
				candidates := sets.Set[string]{}
				for name := range labelled.Candidates(selector, all()) {
					if candidates.Has(name) || stored[name] == nil {
						t.Errorf("%s comes twice, or isn't there", name)
					}
					candidates.Insert(name)
				}
				for name, labels := range stored {
					if selector.Matches(labels, nil) && !candidates.Has(name) {
						t.Errorf("%s of %v is selected by %s, and is no candidate: %v", name, labels, selector, candidates)
					}
				}
			},
		})
	})
}

func TestCandidatesAreFew(t *testing.T) {
	stored := map[string]map[string]string{"one": {"team": "a"}, "two": {"team": "b"}, "three": {}}
	labelled := NewLabelled()
	selector, err := CompileSelector(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range labelled.Candidates(selector, func(yield func(string, map[string]string) bool) {
		for name, labels := range stored {
			if !yield(name, labels) {
				return
			}
		}
	}) {
		if name != "one" {
			t.Errorf("%s is looked at, which has another label", name)
		}
	}
}
