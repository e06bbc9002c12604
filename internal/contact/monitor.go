// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package contact

import (
	"context"
	"time"
)

// Monitor asks the API server something whenever it has been silent for a second,
// and ends what waits when the contact is lost. Every replica runs it.
type Monitor struct {
	contact *Contact
	ask     func(ctx context.Context) error
}

// NewMonitor makes a Monitor. The question must be cheap, must need an answer that
// etcd confirms, and must go through a transport that the Contact wraps.
func NewMonitor(contact *Contact, ask func(ctx context.Context) error) *Monitor {
	return &Monitor{contact: contact, ask: ask}
}

// NeedLeaderElection says that every replica runs it.
func (*Monitor) NeedLeaderElection() bool { return false }

// Start runs until ctx ends.
func (m *Monitor) Start(ctx context.Context) error {
	asked := make(chan struct{}, 1)
	asking, next := false, m.contact.clock.Now()
	for {
		m.contact.lose()
		now := m.contact.clock.Now()
		if !asking && m.contact.Silence() >= askAfter && !now.Before(next) {
			asking, next = true, now.Add(askAfter)
			go func() {
				m.askWithin(ctx)
				asked <- struct{}{}
			}()
		}
		timer := m.contact.clock.NewTimer(m.pause(asking, next.Sub(now)))
		select {
		case <-timer.C():
		case <-asked:
			asking = false
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// pause is how long there is nothing to do: until the API server must be asked
// again, or the contact is lost.
func (m *Monitor) pause(asking bool, untilNext time.Duration) time.Duration {
	silence, pause := m.contact.Silence(), askTimeout
	if !asking {
		pause = max(askAfter-silence, untilNext)
	}
	if untilLost := lostAfter - silence; untilLost > 0 {
		pause = min(pause, untilLost)
	}
	return max(pause, time.Millisecond)
}

// askWithin asks and ignores the answer: what the transport has heard counts.
func (m *Monitor) askWithin(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_ = m.ask(bounded)
}
