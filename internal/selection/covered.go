// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Everything returns the Selector that matches every namespace.
func Everything() Selector { return Selector{labels: labels.Everything()} }

// HasAnnotations reports whether the selector asks for annotations too, which no
// label selector can.
func (s Selector) HasAnnotations() bool { return len(s.annotations) > 0 }

// maxPieces bounds the work of Covered and of Entry.LiesIn.
const maxPieces = 10000

// Covered reports whether the label selectors together match every namespace that
// the selector matches by its labels, but for the protected ones. What would take
// too long to tell, it takes for uncovered.
func Covered(selector Selector, protected []string, by []metav1.LabelSelector) bool {
	wanted, some := unprotected(selector, protected)
	if !some {
		return true // it matches nothing
	}
	var covering []conjunction
	for i := range by {
		compiled, err := metav1.LabelSelectorAsSelector(&by[i])
		if err != nil {
			continue // the API server takes none that is invalid
		}
		if covers, some := conjunctionOf(Selector{labels: compiled}); some {
			covering = append(covering, covers)
		}
	}
	return wanted.liesIn(covering)
}

// LiesIn reports whether the selectors together match, by their labels, every
// namespace that meets the entry. If that would take too long to find out, it is
// false.
func (e Entry) LiesIn(selectors []Selector) bool {
	var around []conjunction
	for _, selector := range selectors {
		if where, some := conjunctionOf(selector); some {
			around = append(around, where)
		}
	}
	return e.where.liesIn(around)
}

// liesIn reports whether the others together choose all that the conjunction does.
func (c conjunction) liesIn(others []conjunction) bool {
	left := []conjunction{c}
	for _, other := range others {
		outside := make([]conjunction, 0, len(left))
		for _, piece := range left {
			outside = append(outside, piece.minus(other)...)
		}
		if left = outside; len(left) > maxPieces {
			return false
		}
	}
	return len(left) == 0
}
