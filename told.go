// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/history"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// told is what a process tells the others.
type told struct {
	// process is a name that no other process has.
	process string
	waiting *waiting.List
	history *history.Recorder
}

// newTold makes what a process tells the others. It remembers what the quotas of the group hold.
func newTold(clock clock.PassiveClock, group *driver.Group) told {
	process := string(uuid.NewUUID())
	seen := history.New(process)
	group.OnHolds(func(quota string, holds machine.Holds) { seen.Holds(clock.Now(), quota, holds.Quota, holds.Amounts) })
	return told{process: process, waiting: waiting.NewList(), history: seen}
}
