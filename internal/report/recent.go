// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Recent remembers what was told within an interval, of a number of things at
// most. The zero value must not be used; it has no lock.
//
// Invariant: what was told less than the interval ago is in one of the two maps.
type Recent struct {
	interval time.Duration
	most     int
	// rotated is when current was begun.
	rotated time.Time
	// what -> when it was told
	current, previous map[topic]time.Time
}

// topic is what a refusal is told as.
type topic struct {
	quota, namespace, reason string
	resource                 corev1.ResourceName
}

// NewRecent makes a Recent that remembers twice most things, and has room for
// most new ones in an interval.
func NewRecent(interval time.Duration, most int) *Recent {
	return &Recent{interval: interval, most: most, current: map[topic]time.Time{}}
}

// Due reports whether a refusal must be told now: no refusal by this quota, in this
// namespace, for this reason and for want of this resource was told within the
// interval, and there is room to remember it.
func (r *Recent) Due(refusal *Refusal, now time.Time) bool {
	if now.Sub(r.rotated) >= r.interval {
		r.rotated, r.previous, r.current = now, r.current, map[topic]time.Time{}
	}
	topic := topicOf(refusal)
	told, known := r.current[topic]
	if !known {
		told, known = r.previous[topic]
	}
	if known && now.Sub(told) < r.interval {
		return false
	}
	return len(r.current) < r.most
}

// Told remembers that a refusal that was due has been told.
func (r *Recent) Told(refusal *Refusal, now time.Time) {
	r.current[topicOf(refusal)] = now
}

func topicOf(refusal *Refusal) topic {
	return topic{refusal.Quota, refusal.Namespace, refusal.Reason, refusal.Resource}
}
