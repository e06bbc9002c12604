// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package waiting

import (
	"sync"
	"time"
)

const (
	// grantsLife is for how long at least a grant is remembered. News of a refusal that came before it takes
	// one or two seconds from another replica.
	grantsLife = 5 * time.Second
	// mostGrants bounds the grants of such a span. With more, it is shorter.
	mostGrants = 4096
)

// grants remembers whose objects were granted of late. A controller tries again within milliseconds, and
// often another replica grants what one has just refused, before it hears of the refusal.
type grants struct {
	// mu guards what follows. It is never held while something else is waited for, because each request waits for it.
	mu sync.Mutex
	// current and previous are of two spans of time, the first of which began at began.
	current, previous map[Key]time.Time
	began             time.Time
}

func (g *grants) note(now time.Time, key Key) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil || now.Sub(g.began) >= grantsLife || len(g.current) >= mostGrants {
		g.current, g.previous, g.began = map[Key]time.Time{}, g.current, now
	}
	g.current[key] = now
}

// last returns when an object of an owner was granted last; zero if that isn't known.
func (g *grants) last(key Key) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at, ok := g.current[key]; ok {
		return at
	}
	return g.previous[key]
}
