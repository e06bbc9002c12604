// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"iter"

	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Labelled finds the namespaces that a Selector may select by their labels: a thousand quotas that each looked at twenty
// thousand namespaces took a leader four seconds. It isn't for concurrent use.
//
// It remembers each label key that a Selector has asked for, until it is dropped itself: administrators, who alone make
// quotas, select by few keys.
type Labelled struct {
	// label key that a Selector has asked for -> value -> names of namespaces
	names map[string]map[string]sets.Set[string]
}

// NewLabelled makes a Labelled without namespaces.
func NewLabelled() Labelled { return Labelled{names: map[string]map[string]sets.Set[string]{}} }

// Change notes that a namespace has other labels; before or after is nil if it came or went.
func (l Labelled) Change(name string, before, after map[string]string) {
	for key, values := range l.names {
		was, had := before[key]
		is, has := after[key]
		if had == has && was == is {
			continue
		}
		if had {
			values[was].Delete(name)
			if values[was].Len() == 0 {
				delete(values, was)
			}
		}
		if has {
			add(values, is, name)
		}
	}
}

func add(values map[string]sets.Set[string], value, name string) {
	if values[value] == nil {
		values[value] = sets.Set[string]{}
	}
	values[value].Insert(name)
}

// Candidates yields the names of the namespaces that the Selector may select, each once. All are the noted namespaces,
// with their labels.
func (l Labelled) Candidates(selector Selector, all iter.Seq2[string, map[string]string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		key, wanted, listed := selector.values()
		if !listed {
			for name := range all {
				if !yield(name) {
					return
				}
			}
			return
		}
		if l.names[key] == nil {
			l.index(key, all)
		}
		for _, value := range wanted {
			for name := range l.names[key][value] {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func (l Labelled) index(key string, all iter.Seq2[string, map[string]string]) {
	values := map[string]sets.Set[string]{}
	for name, has := range all {
		if value, labelled := has[key]; labelled {
			add(values, value, name)
		}
	}
	l.names[key] = values
}

// values returns a label that each namespace must have to be selected, and the values of it; false if there is none.
func (s Selector) values() (key string, values []string, listed bool) {
	requirements, _ := s.Labels().Requirements()
	for i := range requirements {
		switch requirements[i].Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			return requirements[i].Key(), requirements[i].Values().UnsortedList(), true
		default:
		}
	}
	return "", nil, false
}
