// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/set"
)

// Lag follows one projection of all quotas. Its methods may be called concurrently.
type Lag struct {
	clock clock.PassiveClock
	// elected is closed once this replica shows anything. Its first statuses
	// include all earlier changes.
	elected <-chan struct{}

	mu sync.Mutex // guards the fields below
	// quota name -> its changes that aren't shown
	behind map[string]*behind
}

// behind has the changes of one quota that aren't shown.
type behind struct {
	// shown: everything was shown once.
	shown bool
	// first and last are when the oldest and the newest change happened that may not
	// be shown; zero for none.
	first, last time.Time
	// A quota with many parts may change again before all are written. Then it is
	// shown as of the time at which every part left at that time has been written.
	passed time.Time
	left   set.Set[string]
}

// NewLag makes a Lag in which nothing has changed.
func NewLag(clock clock.PassiveClock, elected <-chan struct{}) *Lag {
	return &Lag{clock: clock, elected: elected, behind: map[string]*behind{}}
}

// Changed notes that there is something to show of the quotas.
func (l *Lag) Changed(quotas []string) {
	select {
	case <-l.elected:
	default:
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, quota := range quotas {
		l.locked(quota).changed(l.clock.Now())
	}
}

// Shown notes that everything that was so at a time has been written, but for the
// parts that are left.
func (l *Lag) Shown(quota string, asOf time.Time, left ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.locked(quota).shown = true
	l.locked(quota).wrote(asOf, set.New(left...))
}

// WasShown reports whether this replica has shown a quota.
func (l *Lag) WasShown(quota string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.behind[quota]
	return current != nil && current.shown
}

// Forget drops a quota that is gone.
func (l *Lag) Forget(quota string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.behind, quota)
}

// Of returns the age of the oldest change of a quota that isn't shown; zero if
// all is.
func (l *Lag) Of(quota string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.behind[quota]
	if current == nil || current.first.IsZero() {
		return 0
	}
	return max(l.clock.Since(current.first), 0)
}

func (l *Lag) locked(quota string) *behind {
	current, known := l.behind[quota]
	if !known {
		current = &behind{}
		l.behind[quota] = current
	}
	return current
}

func (b *behind) changed(now time.Time) {
	b.last = now
	if b.first.IsZero() {
		b.first = now
	}
}

func (b *behind) wrote(asOf time.Time, left set.Set[string]) {
	if len(left) == 0 {
		b.left = nil
		b.shownUntil(asOf)
		return
	}
	if b.left = b.left.Intersection(left); len(b.left) == 0 {
		b.shownUntil(b.passed)
		b.passed, b.left = asOf, left
	}
}

// shownUntil forgets the changes before a time. When the first one after it was is
// not known: it may have been right then.
func (b *behind) shownUntil(asOf time.Time) {
	switch {
	case b.first.IsZero() || b.first.After(asOf):
	case b.last.After(asOf):
		b.first = asOf
	default:
		b.first, b.last = time.Time{}, time.Time{}
	}
}
