// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// reads counts, and takes 10 ms for each.
type reads struct {
	mu     sync.Mutex
	begins []time.Time
	err    error
}

func (r *reads) read(_ context.Context, key string) (string, error) {
	r.mu.Lock()
	r.begins = append(r.begins, clock.RealClock{}.Now())
	r.mu.Unlock()
	clock.RealClock{}.Sleep(10 * time.Millisecond)
	return key, r.err
}

func TestCallersShareAReadThatBeganAfterTheirCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reads{}
		s := NewReads("object", r.read)
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				clock.RealClock{}.Sleep(time.Duration(i) * time.Millisecond)
				called := clock.RealClock{}.Now()
				value, err := s.Get(t.Context(), "team")
				if value != "team" || err != nil {
					t.Errorf("got %q, error %v", value, err)
				}
				took := clock.RealClock{}.Since(called)
				if took < 10*time.Millisecond || took > 20*time.Millisecond {
					t.Errorf("call %d took %s: want one whole read, and at most the rest of another", i, took)
				}
			})
		}
		callers.Wait()
		if len(r.begins) > 11 {
			t.Errorf("100 calls in 100ms made %d reads of 10ms, want at most 11", len(r.begins))
		}
	})
}

func TestKeysDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewReads("object", (&reads{}).read)
		start := clock.RealClock{}.Now()
		var callers sync.WaitGroup
		for _, key := range []string{"a", "b"} {
			callers.Go(func() { _, _ = s.Get(t.Context(), key) })
		}
		callers.Wait()
		if took := (clock.RealClock{}).Since(start); took != 10*time.Millisecond {
			t.Errorf("took %s, want 10ms", took)
		}
	})
}

func TestACallerMayGiveUpAndAReadMayFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no")
		s := NewReads("object", (&reads{err: failure}).read)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var callers sync.WaitGroup
		callers.Go(func() {
			if _, err := s.Get(ctx, "team"); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "waiting for object team: ") {
				t.Errorf("who gives up: got %v, want the deadline's error, and what was waited for", err)
			}
		})
		callers.Go(func() {
			if _, err := s.Get(t.Context(), "team"); !errors.Is(err, failure) {
				t.Errorf("who stays: got %v, want the read's error", err)
			}
		})
		callers.Wait()
		clock.RealClock{}.Sleep(time.Second) // a read that no caller waits for any more ends too
	})
}

func TestReadsOfAKeyAreKeptApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reads{err: errors.New("refused")}
		s := NewReads("object", r.read).Apart(clock.RealClock{}, time.Second)
		began := clock.RealClock{}.Now()
		for range 3 {
			_, _ = s.Get(t.Context(), "team")
		}
		_, _ = s.Get(t.Context(), "other")
		synctest.Wait()
		var got []time.Duration
		for _, begin := range r.begins {
			got = append(got, begin.Sub(began))
		}
		want := []time.Duration{0, time.Second, 2 * time.Second, 2*time.Second + 10*time.Millisecond}
		if !slices.Equal(got, want) {
			t.Errorf("reads began after %v, want %v", got, want)
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}
