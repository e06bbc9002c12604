// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Outcome is the answer.
type Outcome string

// The answers, from best to worst.
const (
	Fits    Outcome = "fits"
	Unknown Outcome = "unknown"
	DoesNot Outcome = "does not fit"
)

// Row is the demand for one resource of a quota.
type Row struct {
	Limit    *Limit
	Resource corev1.ResourceName
	// Requested must be free at some moment, or not all comes to be. This and the next two are below zero only if
	// Available is: deletions must bring the quota within its limit.
	Requested resource.Quantity
	// InTheEnd is the amount that is taken when all is done.
	InTheEnd resource.Quantity
	// WholeSurge is the amount that rollouts would take for a while if they
	// could.
	WholeSurge resource.Quantity
	// Counted: how much is left is known.
	Counted bool
	// Available may be below zero, where more is used than is allowed.
	Available resource.Quantity
	// Shortfall is the part of Requested that is missing, never below zero. Of a rollout it is less by the amount that may take surge.
	Shortfall resource.Quantity
	// Grows: the pods are larger than the ones that they replace, so that they get no surge.
	Grows bool
	// Surge is the reason why the quota's surge doesn't help with the Shortfall.
	Surge Surge
}

// Surge is the reason why surge of a quota, which is room for pods that replace others, doesn't help with a shortage.
type Surge string

// The reasons.
const (
	// SurgeNone: nothing. The quota has none of the resource, or the missing pods replace nothing.
	SurgeNone Surge = ""
	// SurgeTaken: it would do if others didn't hold it.
	SurgeTaken Surge = "taken"
	// SurgeTooSmall: it wouldn't do, even if all of it were free.
	SurgeTooSmall Surge = "too small"
	// SurgeGrows: the new pods get none, because they are larger than the ones that they replace.
	SurgeGrows Surge = "not for larger pods"
)

// surge is that of the quota that the pods may take.
func (r Row) surge() resource.Quantity {
	if r.Grows {
		return resource.Quantity{}
	}
	return r.Limit.Surge[r.Resource]
}

// SurgeLeft returns the rest of the quota's surge, never below zero.
func (r Row) SurgeLeft() resource.Quantity {
	return greater(lesser(r.surge(), more(r.Available, r.surge())), resource.Quantity{})
}

// TakesSurge returns how much of the quota's surge a rollout takes that fits, at most; zero if none.
func (r Row) TakesSurge() resource.Quantity {
	if !r.Counted || !r.Shortfall.IsZero() {
		return resource.Quantity{}
	}
	above := less(r.WholeSurge, greater(r.Available, resource.Quantity{}))
	return greater(lesser(above, r.SurgeLeft()), resource.Quantity{})
}

// Waits returns the amount that a rollout is short of that fits, and hasn't room for its whole surge, so that it waits between
// its steps; zero if it doesn't.
func (r Row) Waits() resource.Quantity {
	if !r.Counted || !r.Shortfall.IsZero() || r.WholeSurge.Cmp(r.Requested) <= 0 {
		return resource.Quantity{}
	}
	return greater(less(r.WholeSurge, more(r.Available, r.surge())), resource.Quantity{})
}

// Refusal is an object that is refused independently of the room.
type Refusal struct {
	// Kind, Namespace and Name of the manifest that asks for it.
	Kind, Namespace, Name string
	// Refused is the kind of the refused object.
	Refused string
	Message string
}

// Verdict is whether everything fits, and why.
type Verdict struct {
	// Rows of all that is asked for and limited, by limit and resource.
	Rows []Row
	// Refusals, each told once.
	Refusals []Refusal
}

// Outcome returns the answer: certain shortage outweighs uncertainty.
func (v Verdict) Outcome() Outcome {
	outcome := Fits
	for _, row := range v.Rows {
		switch {
		case row.Limit.Admits != "":
		case !row.Shortfall.IsZero():
			return DoesNot
		case !row.Counted:
			outcome = Unknown
		}
	}
	if len(v.Refusals) > 0 {
		return DoesNot
	}
	return outcome
}

// rows leaves out a resource of which nothing is created, or no more than is freed before, if that
// fits.
func rows(limit *Limit, total map[corev1.ResourceName]moments) []Row {
	var rows []Row
	for _, name := range slices.Sorted(maps.Keys(total)) {
		need := total[name]
		if !need.created {
			continue
		}
		available, counted := limit.Left[name]
		if available.Sign() >= 0 {
			need = need.neverBelowZero()
		}
		row := Row{
			Limit: limit, Resource: name, Requested: need.most, InTheEnd: need.last, WholeSurge: need.whole,
			Counted: counted, Available: available, Grows: need.grows,
		}
		if counted {
			row.Shortfall, row.Surge = need.short(row.Available, limit.Surge[name])
		}
		if counted && row.Shortfall.IsZero() && row.WholeSurge.Sign() <= 0 {
			continue
		}
		rows = append(rows, row)
	}
	return rows
}
