// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"os"
	"time"

	"k8s.io/utils/clock"
)

// systemClock is the machine's clock, or one with the error that the environment variable of that name gives.
func systemClock(offsetBy string) (clock.WithTickerAndDelayedExecution, error) {
	given := os.Getenv(offsetBy)
	if given == "" {
		return clock.RealClock{}, nil
	}
	offset, err := time.ParseDuration(given)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", offsetBy, err)
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
