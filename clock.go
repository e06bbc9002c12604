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

package main

import (
	"fmt"
	"time"

	"k8s.io/utils/clock"
)

// clockOffset is by how much this program's clock is wrong, as a duration. It
// is empty but in binaries that fault tests link with -X main.clockOffset=20s,
// for clocks of replicas differ and reservations must bear it.
var clockOffset string //nolint:gochecknoglobals // the linker sets nothing else

// systemClock is the machine's clock, or one that is wrong by clockOffset.
func systemClock() (clock.WithTickerAndDelayedExecution, error) {
	if clockOffset == "" {
		return clock.RealClock{}, nil
	}
	offset, err := time.ParseDuration(clockOffset)
	if err != nil {
		return nil, fmt.Errorf("linked with a wrong clock offset: %w", err)
	}
	return wrongClock{by: offset}, nil
}

type wrongClock struct {
	clock.RealClock
	by time.Duration
}

// Now implements clock.PassiveClock.
func (c wrongClock) Now() time.Time { return c.RealClock.Now().Add(c.by) }

// Since implements clock.PassiveClock.
func (c wrongClock) Since(start time.Time) time.Duration { return c.Now().Sub(start) }
