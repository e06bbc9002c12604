// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

const (
	// reviewEvery is how often some workloads are looked at, and reviewed how many at a time.
	reviewEvery, reviewed = time.Second, 5
	// reviewAfter is for how long nobody has heard of a workload before it is looked at.
	reviewAfter = 10 * time.Second
)

// Reviewer forgets workloads that lack nothing any more, which nobody hears of: those that were deleted, scaled
// down or suspended while they waited, or whose objects were granted by a replica that has gone since.
type Reviewer struct {
	clock     clock.WithTicker
	list      *waiting.List
	workloads *Workloads
	// looked is when a workload was looked at last.
	looked map[waiting.Key]time.Time
}

var _ manager.LeaderElectionRunnable = &Reviewer{}

// NewReviewer makes a Reviewer.
func NewReviewer(clock clock.WithTicker, list *waiting.List, workloads *Workloads) *Reviewer {
	return &Reviewer{clock: clock, list: list, workloads: workloads, looked: map[waiting.Key]time.Time{}}
}

// NeedLeaderElection says that only the leader runs it.
func (*Reviewer) NeedLeaderElection() bool { return true }

// Start reviews until the context ends.
func (r *Reviewer) Start(ctx context.Context) error {
	ticker := r.clock.NewTicker(reviewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
			r.review(ctx, r.clock.Now())
		}
	}
}

// review looks at the workloads that nobody has looked at for longest.
func (r *Reviewer) review(ctx context.Context, now time.Time) {
	for _, record := range r.due(now) {
		lacking, err := r.workloads.Lacks(ctx, record)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Can't see whether a workload still waits", "error", err.Error())
			continue
		}
		if lacking == 0 {
			r.list.Over(r.clock.Now(), record.Key())
		}
	}
}

func (r *Reviewer) due(now time.Time) []waiting.Record {
	all := r.list.All()
	looked := make(map[waiting.Key]time.Time, len(all))
	for i := range all {
		key := all[i].Key()
		looked[key] = r.looked[key]
	}
	r.looked = looked
	quiet := slices.DeleteFunc(all, func(record waiting.Record) bool {
		return now.Sub(record.Last) < reviewAfter || now.Sub(looked[record.Key()]) < reviewAfter
	})
	slices.SortFunc(quiet, func(a, b waiting.Record) int {
		return cmp.Or(looked[a.Key()].Compare(looked[b.Key()]), a.Since.Compare(b.Since))
	})
	quiet = quiet[:min(len(quiet), reviewed)]
	for i := range quiet {
		looked[quiet[i].Key()] = now
	}
	return quiet
}
