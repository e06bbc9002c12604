// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// fault is the failure of one call of a store.
type fault int

const (
	none fault = iota
	// conflict: another writer is first.
	conflict
	// unreachable: the call fails, and nothing has happened.
	unreachable
	// replyLost: the call fails, and it has happened.
	replyLost
	// unreadable: the loaded ledger was written by a newer operator.
	unreadable
)

// faultyStore fails by plan: call after call, and no more once the plan ends.
type faultyStore struct {
	*memoryStore
	loads, swaps    []fault
	loaded, swapped atomic.Int64
}

func (s *faultyStore) Load(ctx context.Context, quota string, load machine.Load) (machine.Snapshot, error) {
	fault := planned(s.loads, s.loaded.Add(1))
	snapshot, err := s.memoryStore.Load(ctx, quota, load)
	switch fault {
	case unreachable, replyLost:
		return machine.Snapshot{}, errInjected
	case unreadable:
		return machine.Snapshot{}, fmt.Errorf("upgrade: %w", machine.ErrUnreadable)
	case none, conflict:
	}
	return snapshot, err
}

func (s *faultyStore) Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	fault := planned(s.swaps, s.swapped.Add(1))
	switch fault {
	case unreachable:
		return machine.Version{}, errInjected
	case conflict:
		s.put(quota, s.state(quota))
	case none, replyLost, unreadable:
	}
	version, err := s.memoryStore.Swap(ctx, quota, previous, next)
	if fault == replyLost && err == nil {
		return machine.Version{}, errInjected
	}
	return version, err
}

func planned(faults []fault, call int64) fault {
	if call > int64(len(faults)) {
		return none
	}
	return faults[call-1]
}
