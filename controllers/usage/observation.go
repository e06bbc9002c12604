// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func basisOf(target counting.Target) ledger.Basis { return counting.BasisOf(target) }

// Counter gives the machines of quotas the count.
type Counter struct {
	count *counting.Count
}

// NewCounter makes a Counter.
func NewCounter(count *counting.Count) Counter { return Counter{count: count} }

// Observe implements driver.Counter. The count and the reservations that it
// includes are of one instant.
func (c Counter) Observe(quota string, known ledger.State) *ledger.Observation {
	var observed *ledger.Observation
	c.count.Read(quota, func(view counting.View) {
		observed = counting.SettlementOf(view, known)
		if observed == nil {
			return
		}
		seen := map[ledger.Key]bool{}
		for key, reservation := range known.Reservations {
			if observed.Seen(reservation) {
				seen[key] = true
			}
		}
		observed.Seen = func(reservation ledger.Reservation) bool { return seen[reservation.Key()] }
	})
	return observed
}

// sources turns the names that each resource uses into the resources that each
// name is counted from. A resource that isn't served is a source only of a name
// that has no other: objects of it can't exist, and a name that is counted from
// others too must not wait for it.
func sources(
	tracked map[schema.GroupResource][]corev1.ResourceName, served func(schema.GroupResource) bool,
) map[corev1.ResourceName][]schema.GroupResource {
	all, available := map[corev1.ResourceName][]schema.GroupResource{}, map[corev1.ResourceName][]schema.GroupResource{}
	for resource, names := range tracked {
		for _, name := range names {
			all[name] = append(all[name], resource)
			if served(resource) {
				available[name] = append(available[name], resource)
			}
		}
	}
	maps.Copy(all, available)
	for _, resources := range all {
		slices.SortFunc(resources, compare)
	}
	return all
}
