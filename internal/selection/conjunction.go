// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// need is what one label must be.
type need struct {
	key     string
	allowed valueSet
	// text is another for every other need. Needs are compared more often than
	// made: 500 areas that don't join took 42 ms without it, and 24 with.
	text string
}

func needOf(key string, allowed valueSet) need { return need{key, allowed, key + allowed.String()} }

// conjunction chooses the sets of labels that meet all its needs; without any
// it chooses them all.
// Invariant: sorted by key, each key once; no need is empty, so that some
// labels are chosen, and none allows anything, so that equal ones look equal.
type conjunction []need

// conjunctionOf returns what the selector asks of labels. It is false for one
// that no labels meet.
func conjunctionOf(selector Selector) (conjunction, bool) {
	if selector.labels == nil {
		return nil, false
	}
	requirements, satisfiable := selector.labels.Requirements()
	var all conjunction
	for i := range requirements {
		if !satisfiable {
			break
		}
		all, satisfiable = all.with(requirements[i].Key(), allowedBy(requirements[i]))
	}
	return all, satisfiable
}

// with adds a need, which isn't empty. It is false if no labels are left.
func (c conjunction) with(key string, allowed valueSet) (conjunction, bool) {
	i, found := c.find(key)
	switch {
	case !found && allowed.isAnything(), found && c[i].allowed.within(allowed):
		return c, true
	case !found:
		return slices.Concat(c[:i], conjunction{needOf(key, allowed)}, c[i:]), true
	case !c[i].allowed.overlaps(allowed):
		return nil, false
	}
	return c.replaced(i, c[i].allowed.intersection(allowed)), true
}

// replaced returns the conjunction with another need in place of the one at i.
func (c conjunction) replaced(i int, allowed valueSet) conjunction {
	if allowed.isAnything() {
		return slices.Delete(slices.Clone(c), i, i+1)
	}
	other := slices.Clone(c)
	other[i] = needOf(c[i].key, allowed)
	return other
}

func (c conjunction) find(key string) (int, bool) {
	return slices.BinarySearchFunc(c, key, func(need need, key string) int { return strings.Compare(need.key, key) })
}

func (c conjunction) allowed(key string) valueSet {
	if i, found := c.find(key); found {
		return c[i].allowed
	}
	return anything()
}

func (c conjunction) overlaps(other conjunction) bool {
	for _, need := range c {
		if !need.allowed.overlaps(other.allowed(need.key)) {
			return false
		}
	}
	return true
}

// within reports whether all that the conjunction chooses the other does, too.
func (c conjunction) within(other conjunction) bool {
	for _, need := range other {
		if !c.allowed(need.key).within(need.allowed) {
			return false
		}
	}
	return true
}

// cut returns the part inside another conjunction that overlaps, and the parts
// outside: those that miss its first need, those that meet the first and miss
// the second, and so on, which makes them disjoint.
func (c conjunction) cut(other conjunction) (inside conjunction, outside []conjunction) {
	inside = c
	for _, need := range other {
		if part, satisfiable := inside.with(need.key, need.allowed.complement()); satisfiable {
			outside = append(outside, part)
		}
		inside, _ = inside.with(need.key, need.allowed)
	}
	return inside, outside
}

// minus returns disjoint parts that are together what is outside the other.
func (c conjunction) minus(other conjunction) []conjunction {
	if !c.overlaps(other) {
		return []conjunction{c}
	}
	_, outside := c.cut(other)
	return outside
}

// expressible returns disjoint parts that a LabelSelector can express each. It
// is false if they are more than most, as each need may double them.
func (c conjunction) expressible(most int) ([]conjunction, bool) {
	parts := []conjunction{c}
	for i, need := range c {
		if need.allowed.isExpressible() {
			continue
		}
		var finer []conjunction
		for _, part := range parts {
			for _, allowed := range need.allowed.expressible() {
				finer = append(finer, part.replaced(i, allowed))
			}
		}
		if len(finer) > most {
			return nil, false
		}
		parts = finer
	}
	return parts, true
}

func (c conjunction) width() int {
	width := 0
	for _, need := range c {
		width += need.allowed.width()
	}
	return width
}

// keys is the same for conjunctions that need the same labels.
func (c conjunction) keys() string {
	keys := make([]string, 0, len(c))
	for _, need := range c {
		keys = append(keys, need.key)
	}
	return strings.Join(keys, ";")
}

// String is another for every other conjunction: labels have no semicolon.
func (c conjunction) String() string { return c.without(len(c)) }

// without is the String of all needs but the one at i.
func (c conjunction) without(i int) string {
	var text strings.Builder
	for j, need := range c {
		if j != i {
			text.WriteString(need.text)
			text.WriteByte(';')
		}
	}
	return text.String()
}

func (c conjunction) compare(other conjunction) int {
	return slices.CompareFunc(c, other, func(a, b need) int { return strings.Compare(a.text, b.text) })
}

func (c conjunction) labelSelector() metav1.LabelSelector {
	var selector metav1.LabelSelector
	for _, need := range c {
		selector.MatchExpressions = append(selector.MatchExpressions, need.allowed.requirements(need.key)...)
	}
	return selector
}
