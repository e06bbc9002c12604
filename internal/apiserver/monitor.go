// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"time"
)

// Monitor asks the API server something whenever it has been silent for a second, at a break, and as soon as it answers
// after one. It ends waits when the contact is lost. Every replica runs it, as long as it answers or writes.
type Monitor struct {
	contact *Contact
	ask     func(ctx context.Context) error
}

// NewMonitor makes a Monitor. The question must be cheap, and must need an answer that etcd confirms. A part of it must
// go through a transport that the Contact wraps. If it has no error, the history is proved to be the same: see History.
func NewMonitor(contact *Contact, ask func(ctx context.Context) error) *Monitor {
	return &Monitor{contact: contact, ask: ask}
}

// Run runs until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	asked := make(chan error, 1)
	asking, began, next, again := false, time.Time{}, m.contact.clock.Now(), askAgain
	for {
		m.contact.lose()
		now := m.contact.clock.Now()
		if !asking && !now.Before(next) && (m.contact.isDoubted() || m.contact.Silence() >= askAfter) {
			asking, began, next = true, now, now.Add(askAfter)
			go func() { asked <- m.askWithin(ctx) }()
		}
		timer := m.contact.clock.NewTimer(m.pause(asking, next.Sub(now)))
		select {
		case <-timer.C():
		case err := <-asked:
			asking = false
			// If other calls are answered, but not this one, it asks less and less often.
			if isHeard := m.contact.Silence() <= m.contact.clock.Since(began); err != nil && isHeard {
				again = min(2*again, askAfter)
			} else {
				again = askAgain
			}
		case <-m.contact.doubted:
			next = began.Add(again)
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// pause is how long there is nothing to do: until the API server must be asked
// again, or the contact is lost.
func (m *Monitor) pause(asking bool, untilNext time.Duration) time.Duration {
	silence, pause := m.contact.Silence(), askTimeout
	switch {
	case asking:
	case m.contact.isDoubted():
		pause = untilNext
	default:
		pause = max(askAfter-silence, untilNext)
	}
	if untilLost := lostAfter - silence; untilLost > 0 {
		pause = min(pause, untilLost)
	}
	return max(pause, time.Millisecond)
}

// askWithin asks. For contact any answer that the transport has heard counts.
func (m *Monitor) askWithin(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	breaks := m.contact.breaks.Load()
	err := m.ask(bounded)
	m.contact.prove(breaks, err)
	return err
}
