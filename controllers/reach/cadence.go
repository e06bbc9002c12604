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

// wait returns how long to wait until the edition is to be probed.
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
