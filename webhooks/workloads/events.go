// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/report"
)

const (
	// tellEvery is how long a replica keeps to itself that a workload is short.
	tellEvery = 15 * time.Minute
	// tellMost bounds the workloads of which it tells within that time.
	tellMost = 4096
)

// Events report workloads that were applied and don't fit now, for users whose clients show no warnings. Each replica
// reports the requests that it received.
type Events struct {
	clock    clock.PassiveClock
	recorder report.Recorder

	// mu guards the fields below.
	mu     sync.Mutex
	recent *report.Recent[types.UID]
}

// NewEvents makes Events. The recorder must not block.
func NewEvents(clock clock.PassiveClock, recorder report.Recorder) *Events {
	return &Events{clock: clock, recorder: recorder, recent: report.NewRecent[types.UID](tellEvery, tellMost)}
}

// tell reports a workload that is short of something, unless this replica did so within the last 15 minutes
// (tellEvery).
func (e *Events) tell(asked *subject, quotas, warnings []string) {
	if len(quotas) == 0 || asked.reference.UID == "" {
		return
	}
	now := e.clock.Now()
	e.mu.Lock()
	due := e.recent.Due(asked.reference.UID, now)
	if due {
		e.recent.Told(asked.reference.UID, now)
	}
	e.mu.Unlock()
	if due {
		report.Short(asked.reference, strings.Join(warnings, "\n")).Record(e.recorder)
	}
}
