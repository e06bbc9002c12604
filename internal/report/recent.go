// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Recent remembers the news of an interval, of a number of topics at most. The
// zero value must not be used; it has no lock.
//
// Invariant: news that is younger than the interval is in one of the two maps.
type Recent[T comparable] struct {
	interval time.Duration
	most     int
	// rotated is when current was begun.
	rotated time.Time
	// topic -> when it was told
	current, previous map[T]time.Time
}

// topic groups refusals: refusals by one quota, in one namespace, for one reason and for want of one resource have the
// same.
type topic struct {
	quota, namespace, reason string
	resource                 corev1.ResourceName
}

// NewRecent makes a Recent that remembers twice most topics, and has room for
// most new ones in an interval.
func NewRecent[T comparable](interval time.Duration, most int) *Recent[T] {
	return &Recent[T]{interval: interval, most: most, current: map[T]time.Time{}}
}

// Due reports whether a topic must be told now: it wasn't told within the interval, and there is room
// to remember it.
func (r *Recent[T]) Due(topic T, now time.Time) bool {
	if now.Sub(r.rotated) >= r.interval {
		r.rotated, r.previous, r.current = now, r.current, map[T]time.Time{}
	}
	told, known := r.current[topic]
	if !known {
		told, known = r.previous[topic]
	}
	if known && now.Sub(told) < r.interval {
		return false
	}
	return len(r.current) < r.most
}

// Told remembers that a topic that was due has been told.
func (r *Recent[T]) Told(topic T, now time.Time) {
	r.current[topic] = now
}

// topicOf returns the topic of a refusal.
func topicOf(refusal *outcomes.Refusal) topic {
	return topic{refusal.Quota, refusal.Namespace, refusal.Reason, refusal.Resource()}
}
