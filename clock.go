// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
