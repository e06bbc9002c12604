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

package groupcommit

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// instant is a Store that takes no time, and forgets what is reserved as a
// settle would.
type instant struct {
	mu      sync.Mutex
	version int
	state   ledger.State
}

func (s *instant) Load(context.Context, string) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{Version: strconv.Itoa(s.version), State: s.state}, nil
}

func (s *instant) Swap(_ context.Context, _, _ string, next ledger.State) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.state = next
	if len(next.Reservations) > 200 {
		s.state = ledger.State{Basis: next.Basis, Used: next.Used}
		return "", ErrConflict // so that the committer reads it again
	}
	return strconv.Itoa(s.version), nil
}

func (*instant) Newer(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// BenchmarkCommit is one charge among 100 clients', with everything but the
// store's own time.
func BenchmarkCommit(b *testing.B) {
	ctx, stop := context.WithCancel(b.Context())
	store := &instant{version: 1, state: ledger.State{Basis: limitsOf("team", 0).Basis, Used: podsList(0)}}
	group := New(ctx, clock.RealClock{}, store, &watcher{}, Options{
		CallTimeout: time.Second, ChangeTimeout: time.Second, MaxWaiting: 1000,
	})
	var charges atomic.Int64
	b.SetParallelism(50)
	b.ReportAllocs()
	b.RunParallel(func(loop *testing.PB) {
		for loop.Next() {
			name := fmt.Sprint(charges.Add(1))
			if decision, err := group.Reserve(ctx, []Charge{onePod("team", 1_000_000_000, name)}); !isGranted(decision) {
				b.Error(decision, err)
			}
		}
	})
	stop()
	group.Wait()
}
