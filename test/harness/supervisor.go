// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"sync"
	"time"
)

// restartAfter is how long after its end a replica is started again. A kubelet waits longer if one ends often.
const restartAfter = time.Second

// Supervised is a place for a replica. If one ends by itself, another is started, as a kubelet does. Its methods may
// be called from several goroutines.
type Supervised struct {
	production *Production
	options    ReplicaOptions
	stop       context.CancelFunc
	stopped    chan struct{}

	mu      sync.Mutex // guards what follows
	current *Operator
	exits   []int
}

// Supervise starts a replica, and others in its place until Stop.
func (p *Production) Supervise(ctx context.Context, options ReplicaOptions) (*Supervised, error) {
	first, err := p.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Supervised{production: p, options: options, stop: stop, stopped: make(chan struct{}), current: first}
	go s.run(running)
	return s, nil
}

func (s *Supervised) run(ctx context.Context) {
	defer close(s.stopped)
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.Current().Done():
		}
		ended := s.Current()
		_ = ended.Stop() // from now on its end is no failure
		s.mu.Lock()
		s.exits = append(s.exits, ended.cmd.ProcessState.ExitCode())
		s.mu.Unlock()
		for started := false; !started; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(restartAfter):
			}
			// One that can't start, as without an API server, is tried again.
			if next, err := s.production.Start(ctx, s.options); err == nil {
				s.mu.Lock()
				s.current, started = next, true
				s.mu.Unlock()
			}
		}
	}
}

// Current returns the replica that runs, or the last one that did.
func (s *Supervised) Current() *Operator {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// Exits returns the exit statuses of those that ended by themselves.
func (s *Supervised) Exits() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.exits...)
}

// Stop ends the replica. It is no error if it has ended.
func (s *Supervised) Stop() error {
	s.stop()
	<-s.stopped
	if err := s.production.Stop(s.Current()); !errors.Is(err, ErrExited) {
		return err
	}
	return nil
}
