// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Pace tells for each name when it may be written again. Its methods may be
// called concurrently.
type Pace struct {
	clock clock.PassiveClock

	// mu guards the fields below.
	mu sync.Mutex
	// name -> when it may be written again
	next map[string]time.Time
	// name -> since when its write isn't worth while
	premature map[string]time.Time
}

const (
	// lookSoon is how soon torn figures are read again. The ledger that another
	// replica wrote takes less to arrive.
	lookSoon = 30 * time.Millisecond
	// tornFor is how long figures are torn before they are written as they are.
	tornFor = 5 * lookSoon
)

// NewPace makes a Pace at which everything may be written at once.
func NewPace(clock clock.PassiveClock) *Pace {
	return &Pace{clock: clock, next: map[string]time.Time{}, premature: map[string]time.Time{}}
}

// Left returns how long the name must wait; zero or less for not at all.
func (p *Pace) Left(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next[name].Sub(p.clock.Now())
}

// Rest lets the name wait so long from now on.
func (p *Pace) Rest(name string, duration time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[name] = p.clock.Now().Add(duration)
}

// LookAgain returns how soon to read the figures of a name again, because those that
// were just read are torn: they aren't of one moment. Zero means to write them: they
// aren't torn, or have been for so long that waiting doesn't help.
func (p *Pace) LookAgain(name string, torn bool) time.Duration {
	return p.Postpone(name, torn, lookSoon, tornFor)
}

// Postpone returns how soon to look at a name again because a write isn't worth while yet; zero to write it, which
// is so once that has been for so long.
func (p *Pace) Postpone(name string, premature bool, again, atMost time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	since, known := p.premature[name]
	if !premature || known && now.Sub(since) >= atMost {
		delete(p.premature, name)
		return 0
	}
	if !known {
		p.premature[name] = now
	}
	return again
}

// Forget drops the memory of a name that is gone.
func (p *Pace) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, name)
	delete(p.premature, name)
}
