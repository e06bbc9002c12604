// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"slices"
	"sync"
	"time"
)

// Disruption is a time during which something is broken on purpose.
type Disruption struct {
	Name string
	// Excuses are the outcomes that clients may meet then.
	Excuses []Outcome
	From    time.Time
	// To is zero while it lasts.
	To time.Time
}

// Disruptions are those of a test, in the order in which they began.
type Disruptions struct {
	// mu guards all.
	mu  sync.Mutex
	all []*Disruption
}

// Begin notes a disruption, which lasts until the returned function is called.
func (d *Disruptions) Begin(name string, excuses ...Outcome) (end func()) {
	return d.BeginBefore(0, name, excuses...)
}

// BeginBefore notes a disruption that has begun so long ago.
func (d *Disruptions) BeginBefore(before time.Duration, name string, excuses ...Outcome) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	begun := &Disruption{Name: name, Excuses: excuses, From: time.Now().Add(-before)}
	d.all = append(d.all, begun)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		begun.To = time.Now()
	}
}

// All returns the disruptions so far.
func (d *Disruptions) All() []Disruption {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]Disruption, 0, len(d.all))
	for _, one := range d.all {
		all = append(all, *one)
	}
	return all
}

// excuse names the disruption that excuses the attempt, which overlaps it.
func (d *Disruptions) excuse(a attempt) (name string, excused bool) {
	for _, one := range d.All() {
		if slices.Contains(one.Excuses, a.outcome) && !a.to.Before(one.From) && (one.To.IsZero() || !a.from.After(one.To)) {
			return one.Name, true
		}
	}
	return "", false
}
