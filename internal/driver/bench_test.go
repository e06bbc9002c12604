// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// instant is a Store that takes no time, and forgets reservations as a settle
// would.
type instant struct {
	mu      sync.Mutex
	version uint64
	state   ledger.State
}

func (s *instant) Load(context.Context, string, machine.Load) (machine.Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return machine.Snapshot{Version: machine.Version{ResourceVersion: s.version}, State: s.state}, nil
}

func (s *instant) Swap(_ context.Context, _ string, _ machine.Version, next ledger.State) (machine.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.state = next
	if len(next.Reservations) > 200 {
		s.state = ledger.State{Basis: next.Basis, Used: next.Used}
		return machine.Version{}, machine.ErrConflict // so that the committer reads it again
	}
	return machine.Version{ResourceVersion: s.version}, nil
}

// BenchmarkCommit is one charge among 100 clients', with everything but the
// store's own time.
func BenchmarkCommit(b *testing.B) {
	ctx, stop := context.WithCancel(b.Context())
	store := &instant{version: 1, state: ledger.State{Basis: limitsOf("team", 0).Basis, Used: podsList(0)}}
	group := New(ctx, clock.RealClock{}, store, &watcher{}, Options{Options: machine.Options{MaxWaiting: 1000}, CallTimeout: time.Second, EditTimeout: time.Second})
	var charges atomic.Int64
	b.SetParallelism(50)
	b.ReportAllocs()
	b.RunParallel(func(loop *testing.PB) {
		for loop.Next() {
			name := fmt.Sprint(charges.Add(1))
			if decision, err := group.Reserve(ctx, []ledger.Charge{onePod("team", 1_000_000_000, name)}); !ledger.IsGranted(decision) {
				b.Error(decision, err)
			}
		}
	})
	stop()
	group.Wait()
}
