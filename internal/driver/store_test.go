// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

var errInjected = errors.New("injected failure")

// memoryStore is a Store in memory that takes its time and fails on demand.
type memoryStore struct {
	// latency of each call.
	latency time.Duration

	mu      sync.Mutex
	stored  map[string]machine.Snapshot
	version uint64
	swaps   int
	// loads holds when each Load began.
	loads []time.Time
	// beforeSwap, when set, runs before each write, without the lock.
	beforeSwap func(attempt int) error
	// afterSwap, when set, may lose the reply of a write that has happened.
	afterSwap func(attempt int) error
	loadErr   error
}

func newMemoryStore(quotas ...string) *memoryStore {
	store := &memoryStore{latency: 5 * time.Millisecond, stored: map[string]machine.Snapshot{}}
	for _, quota := range quotas {
		store.put(quota, ledger.State{Basis: limitsOf(quota, 0).Basis, Used: podsList(0)})
	}
	return store
}

func (s *memoryStore) Load(ctx context.Context, quota string, _ machine.Load) (machine.Snapshot, error) {
	s.mu.Lock()
	s.loads = append(s.loads, time.Now())
	s.mu.Unlock()
	if err := s.pause(ctx); err != nil {
		return machine.Snapshot{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[quota], s.loadErr
}

func (s *memoryStore) Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	if err := s.pause(ctx); err != nil {
		return machine.Version{}, err
	}
	s.mu.Lock()
	s.swaps++
	attempt, before, after := s.swaps, s.beforeSwap, s.afterSwap
	s.mu.Unlock()
	if before != nil {
		if err := before(attempt); err != nil {
			return machine.Version{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored[quota].Version != previous {
		return machine.Version{}, fmt.Errorf("at version %v: %w", s.stored[quota].Version, machine.ErrConflict)
	}
	version := s.lockedPut(quota, next)
	if after != nil {
		return version, after(attempt)
	}
	return version, nil
}

func (s *memoryStore) pause(ctx context.Context) error {
	select {
	case <-time.After(s.latency):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// put writes as another replica would.
func (s *memoryStore) put(quota string, state ledger.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lockedPut(quota, state)
}

func (s *memoryStore) lockedPut(quota string, state ledger.State) machine.Version {
	s.version++
	version := machine.Version{ResourceVersion: s.version}
	s.stored[quota] = machine.Snapshot{Version: version, State: state}
	return version
}

func (s *memoryStore) remove(quota string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stored, quota)
}

func (s *memoryStore) state(quota string) ledger.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[quota].State
}

func (s *memoryStore) snapshot(quota string) machine.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored[quota]
}

func (s *memoryStore) swapCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.swaps
}

// reserved is how many pods are reserved.
func (s *memoryStore) reserved(quota string) int64 {
	reserved := s.state(quota).Reserved()
	return reserved.Pods().Value()
}

func limitsOf(quota string, pods int64) ledger.Limits {
	return ledger.Limits{
		Name:  quota,
		Basis: ledger.Basis{Quota: types.UID(quota), Generation: 1, Digest: "d"},
		Hard:  podsList(pods),
	}
}

func podsList(pods int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
}

// onePod charges one pod of a name to a quota with room for limit.
func onePod(quota string, limit int64, name string) ledger.Charge {
	return ledger.Charge{
		Limits: limitsOf(quota, limit),
		Reservation: ledger.Reservation{
			Object:  ledger.Object{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: "team-a", Name: name, UID: types.UID(name)},
			Amounts: podsList(1),
			Expiry:  time.Now().Add(time.Hour),
		},
		Knowledge: ledger.Knowledge{Seen: math.MaxUint64},
	}
}
