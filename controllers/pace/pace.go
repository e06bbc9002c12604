/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// Package pace spaces the writes of what people read: figures that change
// hundreds of times a second are written about once.
package pace

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Pace tells for each name when it may be written again. Its methods may be
// called concurrently.
type Pace struct {
	clock clock.PassiveClock

	// mu guards next.
	mu sync.Mutex
	// name -> when it may be written again
	next map[string]time.Time
}

// New makes a Pace at which everything may be written at once.
func New(clock clock.PassiveClock) *Pace {
	return &Pace{clock: clock, next: map[string]time.Time{}}
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

// Forget drops what is known of a name that is gone.
func (p *Pace) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, name)
}
