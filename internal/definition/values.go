// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	operators "k8s.io/apimachinery/pkg/selection"
)

// valueSet is a set of states of a label: absent, or one of its values. There are
// too many values to list them all, so a set may instead list the values that it
// lacks.
type valueSet struct {
	// absent reports whether an absent label is in the set.
	absent bool
	// except reports whether listed are the values that are not in the set.
	except bool
	// listed is sorted and has no duplicates.
	// Invariant: it isn't changed, for sets share it.
	listed []string
}

func anything() valueSet { return valueSet{absent: true, except: true} }

// allowedBy returns the set of states that the requirement allows its label.
func allowedBy(requirement labels.Requirement) valueSet {
	listed := slices.Compact(slices.Sorted(slices.Values(requirement.ValuesUnsorted())))
	switch requirement.Operator() {
	case operators.In, operators.Equals, operators.DoubleEquals:
		return valueSet{listed: listed}
	case operators.NotIn, operators.NotEquals:
		return valueSet{absent: true, except: true, listed: listed}
	case operators.Exists:
		return valueSet{except: true}
	case operators.DoesNotExist:
		return valueSet{absent: true}
	default:
		// None of a LabelSelector. Too wide is slow; too narrow isn't enforced.
		return anything()
	}
}

func (v valueSet) isAnything() bool { return v.absent && v.except && len(v.listed) == 0 }

// isExpressible reports whether requirements of a LabelSelector can express the
// set. They can't express "absent or one of these values".
func (v valueSet) isExpressible() bool { return !v.absent || v.except || len(v.listed) == 0 }

// expressible returns the set in disjoint parts that requirements can express.
func (v valueSet) expressible() []valueSet {
	if v.isExpressible() {
		return []valueSet{v}
	}
	return []valueSet{{absent: true}, {listed: v.listed}}
}

// width is larger for a set than for any part of it.
func (v valueSet) width() int {
	width := len(v.listed)
	if v.except {
		// More than any selector lists: an object holds less than 2 MB.
		width = 1<<21 - width
	}
	if v.absent {
		width++
	}
	return width
}

func (v valueSet) complement() valueSet {
	return valueSet{absent: !v.absent, except: !v.except, listed: v.listed}
}

func (v valueSet) overlaps(other valueSet) bool {
	switch {
	case v.absent && other.absent, v.except && other.except:
		return true
	case v.except, !other.except && len(other.listed) < len(v.listed):
		return other.overlaps(v)
	}
	rest := other.listed
	for _, value := range v.listed {
		if rest = from(rest, value); (len(rest) > 0 && rest[0] == value) != other.except {
			return true
		}
	}
	return false
}

func (v valueSet) within(other valueSet) bool { return !v.overlaps(other.complement()) }

func (v valueSet) intersection(other valueSet) valueSet {
	return v.combined(other, func(a, b bool) bool { return a && b })
}

// union returns the union of the sets, of which there is one at least.
func union(sets []valueSet) valueSet {
	if len(sets) == 1 {
		return sets[0]
	}
	middle := len(sets) / 2
	return union(sets[:middle]).combined(union(sets[middle:]), func(a, b bool) bool { return a || b })
}

// combined returns the set of all that is in it according to whether it is in each of two.
func (v valueSet) combined(other valueSet, isIn func(a, b bool) bool) valueSet {
	result := valueSet{absent: isIn(v.absent, other.absent), except: isIn(v.except, other.except)}
	for a, b := v.listed, other.listed; len(a)+len(b) > 0; {
		order := cmp.Compare(len(b), len(a)) // of an empty list, the other one is first
		if len(a) > 0 && len(b) > 0 {
			order = strings.Compare(a[0], b[0])
		}
		var value string
		inA, inB := order <= 0, order >= 0
		if inA {
			value, a = a[0], a[1:]
		}
		if inB {
			value, b = b[0], b[1:]
		}
		if isIn(inA != v.except, inB != other.except) != result.except {
			result.listed = append(result.listed, value)
		}
	}
	return result
}

// String is another for every other set: a value has none of its signs, but
// may be empty.
func (v valueSet) String() string {
	signs := "="
	if v.except {
		signs = "!"
	}
	if v.absent {
		signs += "?"
	}
	if len(v.listed) == 0 {
		return signs
	}
	return signs + "," + strings.Join(v.listed, ",")
}

// requirements expresses the set. Invariant: it isExpressible, and not anything.
func (v valueSet) requirements(key string) []metav1.LabelSelectorRequirement {
	exists := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
	listed := metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: slices.Clone(v.listed)}
	if v.except {
		listed.Operator = metav1.LabelSelectorOpNotIn
	}
	switch {
	case v.absent && !v.except:
		return []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpDoesNotExist}}
	case v.absent || !v.except:
		return []metav1.LabelSelectorRequirement{listed}
	case len(v.listed) == 0:
		return []metav1.LabelSelectorRequirement{exists}
	default:
		return []metav1.LabelSelectorRequirement{exists, listed}
	}
}

// from returns the rest of a sorted list from a value on. It looks near the beginning first.
func from(sorted []string, value string) []string {
	near := 1
	for near < len(sorted) && sorted[near] < value {
		near *= 2
	}
	i, _ := slices.BinarySearch(sorted[:min(near+1, len(sorted))], value)
	return sorted[i:]
}

func sortedSet(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
