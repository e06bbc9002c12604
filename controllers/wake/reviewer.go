// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"cmp"
	"context"
	"maps"
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
	// reviewAfter is how long there must be no news of a workload before it is
	// looked at.
	reviewAfter = 10 * time.Second
)

// Reviewer forgets workloads without news that lack nothing any more: workloads that were deleted, scaled down or
// suspended while they waited, or whose objects were granted by a replica that has gone since.
type Reviewer struct {
	clock     clock.WithTicker
	list      *waiting.List
	workloads *Workloads
	// looked is when a workload was looked at last, and lookedIn when one of a namespace was.
	looked   map[waiting.Key]time.Time
	lookedIn map[string]time.Time
}

var _ manager.LeaderElectionRunnable = &Reviewer{}

// NewReviewer makes a Reviewer.
func NewReviewer(clock clock.WithTicker, list *waiting.List, workloads *Workloads) *Reviewer {
	return &Reviewer{clock: clock, list: list, workloads: workloads, looked: map[waiting.Key]time.Time{}, lookedIn: map[string]time.Time{}}
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

// review looks at some workloads, and lists the objects of a namespace's workloads once for all of them.
func (r *Reviewer) review(ctx context.Context, now time.Time) {
	look := r.workloads.look()
	for _, record := range r.due(now) {
		began := r.clock.Now()
		lacking, err := look.lacks(ctx, record)
		if err != nil {
			log.FromContext(ctx).V(1).Info("Can't see whether a workload still waits", "error", err.Error())
			continue
		}
		if lacking == 0 {
			r.list.Over(began, record.Key())
		}
	}
}

// due returns the workloads to look at now. The namespaces have their turns, so that one with many workloads doesn't
// keep the others' waiting, and in a namespace it is the workload whose last look is the oldest.
func (r *Reviewer) due(now time.Time) []waiting.Record {
	all := r.list.All()
	r.forgetOthers(all)
	quiet := map[string][]waiting.Record{}
	for _, record := range all {
		if now.Sub(record.Last) >= reviewAfter && now.Sub(r.looked[record.Key()]) >= reviewAfter {
			quiet[record.Namespace] = append(quiet[record.Namespace], record)
		}
	}
	namespaces := slices.SortedFunc(maps.Keys(quiet), func(a, b string) int {
		return cmp.Or(r.lookedIn[a].Compare(r.lookedIn[b]), cmp.Compare(a, b))
	})
	var due []waiting.Record
	for _, namespace := range namespaces[:min(len(namespaces), reviewed)] {
		slices.SortFunc(quiet[namespace], func(a, b waiting.Record) int {
			return cmp.Or(r.looked[a.Key()].Compare(r.looked[b.Key()]), a.Since.Compare(b.Since))
		})
		r.lookedIn[namespace] = now
		due = append(due, quiet[namespace][:min(len(quiet[namespace]), reviewed/len(namespaces)+1)]...)
	}
	due = due[:min(len(due), reviewed)]
	for i := range due {
		r.looked[due[i].Key()] = now
	}
	return due
}

// forgetOthers drops the memory of workloads that wait no longer.
func (r *Reviewer) forgetOthers(waits []waiting.Record) {
	looked, lookedIn := make(map[waiting.Key]time.Time, len(waits)), map[string]time.Time{}
	for i := range waits {
		looked[waits[i].Key()] = r.looked[waits[i].Key()]
		lookedIn[waits[i].Namespace] = r.lookedIn[waits[i].Namespace]
	}
	r.looked, r.lookedIn = looked, lookedIn
}
