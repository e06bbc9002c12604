// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// departures remembers deleted objects for some time.
type departures struct {
	// UID -> when it was last seen to be gone
	since map[types.UID]time.Time
	// order holds what is in since, the oldest first. An object that was seen to
	// be gone again is in it twice, and only the later one counts.
	order []departure
}

type departure struct {
	uid types.UID
	at  time.Time
}

func newDepartures() departures {
	return departures{since: map[types.UID]time.Time{}}
}

func (d *departures) add(uid types.UID, now time.Time) {
	d.since[uid] = now
	d.order = append(d.order, departure{uid: uid, at: now})
}

func (d *departures) has(uid types.UID) bool {
	_, gone := d.since[uid]
	return gone
}

// forget drops what went before a time.
func (d *departures) forget(before time.Time) {
	for len(d.order) > 0 && d.order[0].at.Before(before) {
		oldest := d.order[0]
		d.order = d.order[1:]
		if d.since[oldest.uid].Equal(oldest.at) {
			delete(d.since, oldest.uid)
		}
	}
	if len(d.since) == 0 && d.order != nil {
		*d = newDepartures() // A map never shrinks by itself.
	}
}
