// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"sync"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// sightings has the time since when this process, while it leads, has known each Life. A new leader begins again, so
// after it began everything lasts for another life at most.
type sightings struct {
	// mu guards the map, and not the Ages in it: one reconcile of each quota runs at a time.
	mu sync.Mutex
	// quota name -> ages
	ages map[string]ledger.Ages
}

// see notes the lives that there are now of a quota.
func (s *sightings) see(quota string, now time.Time, lives ...ledger.Life) ledger.Ages {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ages == nil {
		s.ages = map[string]ledger.Ages{}
	}
	if s.ages[quota] == nil {
		s.ages[quota] = ledger.Ages{}
	}
	s.ages[quota].See(now, lives...)
	return s.ages[quota]
}

func (s *sightings) forget(quota string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ages, quota)
}

// sighted is a ledger as this process knows it now, and since when it has known each Life in it.
type sighted struct {
	machine.Snapshot
	ages ledger.Ages
	now  time.Time
}

// sight looks at the newest ledger that this process knows.
func (c *Controller) sight(quota string) sighted {
	known, now := c.Group.Known(quota), c.Clock.Now()
	return sighted{Snapshot: known, now: now, ages: c.seen.see(quota, now, known.State.Lives(known.Version.UID)...)}
}

// expired returns all that are at least as old as their life, and how long it takes until the next one is; zero for none.
func expired[K comparable, T interface{ Life() ledger.Life }](
	in sighted, all map[K]T, life time.Duration,
) (old []T, next time.Duration) {
	return ledger.Old(in.ages, in.now, all, func(T) (time.Duration, bool) { return life, true })
}
