// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// need is the set of values that one label must be in.
type need struct {
	key     string
	allowed valueSet
}

// size is about how many bytes it takes to ask for the need.
func (n need) size() int {
	size := len(n.key) + len("=?")
	for _, value := range n.allowed.listed {
		size += len(value) + len(",")
	}
	return size
}

func (n need) compare(other need) int {
	rank := func(n need) int { // first the needs that except values, then the needs that demand the label
		rank := 0
		if !n.allowed.except {
			rank = 2
		}
		if n.allowed.absent {
			rank++
		}
		return rank
	}
	return cmp.Or(cmp.Compare(n.key, other.key), cmp.Compare(rank(n), rank(other)), slices.Compare(n.allowed.listed, other.allowed.listed))
}

// conjunction chooses the sets of labels that meet all its needs; without any
// it chooses them all.
// Invariant: sorted by key, each key once; no need is empty, so that some
// labels are chosen, and none allows anything, so that equal ones look equal.
type conjunction []need

// conjunctionOf returns the selector's needs of labels. It is false for a
// selector that no labels meet.
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
		return slices.Concat(c[:i], conjunction{need{key, allowed}}, c[i:]), true
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
	other[i] = need{c[i].key, allowed}
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
// outside: first the part that misses its first need, then the part that meets
// the first and misses the second, and so on, which makes them disjoint.
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

// minus returns disjoint parts that together are this conjunction outside the
// other.
func (c conjunction) minus(other conjunction) []conjunction {
	if !c.overlaps(other) {
		return []conjunction{c}
	}
	_, outside := c.cut(other)
	return outside
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

// widened returns a conjunction that chooses all that this one does, with any name that isn't protected, and whose size
// without that is at most most: a label that may have one of many values may have any, and a label that there is no
// room for isn't asked for.
func (c conjunction) widened(most int, protected []string) conjunction {
	var wide conjunction
	for _, need := range c {
		if need.key == corev1.LabelMetadataName {
			continue // every namespace has a name
		}
		if need.size() > most/4 {
			need.allowed = valueSet{absent: need.allowed.absent, except: true}
		}
		if larger, _ := wide.with(need.key, need.allowed); larger.size() <= most {
			wide = larger
		}
	}
	wide, _ = wide.with(corev1.LabelMetadataName, allBut(protected))
	return wide
}

// size is about how many bytes it takes to ask for the conjunction.
func (c conjunction) size() int {
	size := 0
	for _, need := range c {
		size += need.size()
	}
	return size
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
			text.WriteString(need.key + need.allowed.String())
			text.WriteByte(';')
		}
	}
	return text.String()
}

func (c conjunction) compare(other conjunction) int {
	return slices.CompareFunc(c, other, need.compare)
}

func (c conjunction) labelSelector() metav1.LabelSelector {
	var selector metav1.LabelSelector
	for _, need := range c {
		selector.MatchExpressions = append(selector.MatchExpressions, need.allowed.requirements(need.key)...)
	}
	return selector
}
