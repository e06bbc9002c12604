// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Views cost the API server time that counting and statuses need.
func TestTheViewsOfANewLeaderWaitForItsStatuses(t *testing.T) {
	for name, test := range map[string]struct {
		counted, shown bool
		// after is when the views begin.
		after time.Duration
	}{
		"all is shown":               {counted: true, shown: true},
		"a status isn't written yet": {counted: true, after: viewsWithin},
		"a quota isn't counted yet":  {shown: true, after: viewsWithin},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bubble := clock.RealClock{}
				b := newViewBench(t, "5", interceptor.Funcs{})
				b.Clock = bubble
				if test.counted {
					b.counts(t, "m")
					b.holds("1")
				}
				if test.shown {
					b.StatusLag.Shown("team", moment)
				}
				began := bubble.Now()
				if begins := (viewStart{ViewController: b.ViewController}).await(t.Context()); !begins || bubble.Since(began) != test.after {
					t.Errorf("got %t after %s, want true after %s", begins, bubble.Since(began), test.after)
				}
			})
		})
	}
}

func TestALeaderThatEndsBeginsNoViews(t *testing.T) {
	b := newViewBench(t, "5", interceptor.Funcs{})
	ctx, end := context.WithCancel(t.Context())
	end()
	if (viewStart{ViewController: b.ViewController}).await(ctx) {
		t.Error("want them not to begin")
	}
}
