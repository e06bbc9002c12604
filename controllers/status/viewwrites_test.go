// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestOneNamespaceKeepsNoOtherFromItsView(t *testing.T) {
	views := viewsNamed("good", 3*writesAtOnce)
	views[0].Name = "bad"
	refused := errors.New("refused")
	var mu sync.Mutex
	done := map[string]int{}
	err := each(views, func(view *quotav1.LocalResourceQuota) error {
		mu.Lock()
		defer mu.Unlock()
		done[view.Name]++
		if view.Name == "bad" {
			return refused
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"bad": 1, "good": 3*writesAtOnce - 1}, done); diff != "" {
		t.Errorf("views that were written (-want,+got):\n%s", diff)
	}
	if !errors.Is(err, refused) {
		t.Errorf("want the failure told, got %v", err)
	}
}

func TestASlowWriteEndsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bubble := clock.RealClock{}
		c, began := NewViewController(Parts{Clock: bubble}), bubble.Now()
		var took sync.Map // name -> time until its write began
		write := c.inTurn(t.Context(), func(view *quotav1.LocalResourceQuota) error {
			took.Store(view.Name, bubble.Since(began))
			if view.Name == "slow" {
				bubble.Sleep(time.Minute)
			}
			return nil
		})
		var all sync.WaitGroup
		for range turns {
			all.Go(func() { _ = each(viewsNamed("slow", 1), write) })
		}
		synctest.Wait()
		for range 2 {
			all.Go(func() { _ = each(viewsNamed("quick", turns), write) })
		}
		all.Wait()
		if got, _ := took.Load("quick"); got != slow {
			t.Errorf("the last of the others began after %v, want %v", got, slow)
		}
		if len(c.turns) != 0 {
			t.Errorf("%d turns are left behind", len(c.turns))
		}
	})
}

func TestAWriteWaitsForNoTurnOnceItsRoundIsOver(t *testing.T) {
	c := NewViewController(Parts{Clock: clock.RealClock{}})
	for range turns {
		c.turns <- struct{}{}
	}
	over, end := context.WithCancel(t.Context())
	end()
	err := c.inTurn(over, func(*quotav1.LocalResourceQuota) error {
		t.Error("it is written")
		return nil
	})(viewsNamed("any", 1)[0])
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
