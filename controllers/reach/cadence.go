// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

const (
	// probeEvery is how long a proof is left alone.
	probeEvery = 10 * time.Second
	// A configuration is loaded within milliseconds: a new edition is asked for in quick
	// succession at first, and then less and less often.
	quickProbes             = 10
	probeSoon, probeAtLeast = 20 * time.Millisecond, time.Second
)

// cadence says when to probe. The zero cadence says now.
type cadence struct {
	edition reach.Edition
	// tries is how many probes in a row have not proved the edition.
	tries int
	due   time.Time
}

// wait returns how long to wait until the edition must be probed.
func (c *cadence) wait(edition reach.Edition, now time.Time) time.Duration {
	if edition != c.edition {
		c.edition, c.tries, c.due = edition, 0, now
	}
	return max(0, c.due.Sub(now))
}

// ended takes how a probe ended.
func (c *cadence) ended(proved bool, now time.Time) {
	if proved {
		c.tries, c.due = 0, now.Add(probeEvery)
		return
	}
	c.tries++
	pause := probeSoon
	for range c.tries - quickProbes {
		pause = min(2*pause, probeAtLeast)
	}
	c.due = now.Add(pause)
}
