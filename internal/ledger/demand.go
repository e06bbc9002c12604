// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Demand counts the grants of the interval under way and of the one before it.
type Demand struct {
	since       time.Time
	now, before grants
}

type grants struct {
	charges int
	amounts corev1.ResourceList
}

// Add counts a charge that was granted.
func (d *Demand) Add(now time.Time, every time.Duration, charge Charge) {
	d.roll(now, every)
	d.now.charges++
	d.now.amounts = quota.Add(d.now.amounts, charge.Granted().Amounts)
}

// Charges returns how many were granted in the busier of both times.
func (d *Demand) Charges(now time.Time, every time.Duration) int {
	d.roll(now, every)
	return max(d.now.charges, d.before.charges)
}

func (d *Demand) roll(now time.Time, every time.Duration) {
	switch passed := now.Sub(d.since); {
	case passed >= 2*every:
		*d = Demand{since: now}
	case passed >= every:
		*d = Demand{since: d.since.Add(every), before: d.now}
	}
}

// twice returns twice the demand of the busier interval.
func (d *Demand) twice() corev1.ResourceList {
	most := quota.RemoveZeros(quota.Max(d.now.amounts, d.before.amounts))
	return quota.Add(most, most)
}

// Granted returns the reservation that the charge makes if it is granted: of the resources that the quota limits.
func (c Charge) Granted() Reservation {
	granted := c.Reservation
	granted.Amounts = c.Limits.Charged(granted.Amounts)
	return granted
}
