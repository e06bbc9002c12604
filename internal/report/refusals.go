// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// tellEvery is how long a replica keeps to itself that a quota goes on refusing
	// the same resource in a namespace. A recorder forgets an event after twelve
	// minutes at most: the next one has figures of its own.
	tellEvery = 15 * time.Minute
	// tellMost bounds the refusals that are told within that time, of all quotas and namespaces.
	tellMost = 4096
	// queued is how many refusals of one quota may wait to be told, and quotasQueued of
	// how many quotas.
	queued, quotasQueued = 32, 1000
	// findWait is how long a quota or a view may take to appear before it is named without
	// its UID, findPoll how often it is looked for in the cache, and livePoll how often with
	// the API server.
	findWait           = 2 * time.Second
	findPoll, livePoll = 100 * time.Millisecond, 500 * time.Millisecond
	// liveAtOnce bounds the looks with the API server that are made at the same time.
	liveAtOnce = 8
)

// Refusals reports refused requests by events, on the quota and on the view of it in the request's
// namespace. Every replica reports its own refusals. Each quota has a queue of its own, and a
// refusal that has to wait, such as for a view, keeps nothing else waiting.
type Refusals struct {
	clock clock.Clock
	// cache has quotas, and live asks the API server.
	cache, live client.Reader
	looks       *semaphore.Weighted
	recorder    Recorder
	// begun has the quotas whose queue has begun.
	begun chan string

	// mu guards the fields below.
	mu     sync.Mutex
	recent *Recent[topic]
	// Invariant: each quota in it is in begun, or being told of.
	// quota name -> the refusals that wait to be told
	queues map[string][]outcomes.Refusal
}

// NewRefusals makes Refusals. The cache has quotas. Views are read live, because only the
// leader watches them, of which there may be many that change all the time.
func NewRefusals(clock clock.Clock, cache, live client.Reader, recorder Recorder) *Refusals {
	return &Refusals{
		clock: clock, cache: cache, live: live, looks: semaphore.NewWeighted(liveAtOnce), recorder: recorder,
		begun: make(chan string, quotasQueued), recent: NewRecent[topic](tellEvery, tellMost),
		queues: map[string][]outcomes.Refusal{},
	}
}

// NeedLeaderElection says that every replica runs it.
func (*Refusals) NeedLeaderElection() bool { return false }

// Start reports the refusals that wait, until ctx ends.
func (r *Refusals) Start(ctx context.Context) error {
	var tellers sync.WaitGroup
	defer tellers.Wait()
	for {
		select {
		case quota := <-r.begun:
			tellers.Go(func() { r.work(ctx, quota) })
		case <-ctx.Done():
			return nil
		}
	}
}

// work reports the refusals in a quota's queue, until it is empty or the quota is gone.
func (r *Refusals) work(ctx context.Context, quota string) {
	var views sync.WaitGroup
	defer views.Wait()
	for ctx.Err() == nil {
		refusal, more := r.next(quota)
		if !more {
			return
		}
		uid := r.find(ctx, findPoll, func(ctx context.Context) types.UID { return r.quota(ctx, quota) })
		if uid == "" {
			r.drop(quota)
			return
		}
		refused(uid, refusal).Record(r.recorder)
		views.Go(func() { r.recordInView(ctx, refusal) })
	}
}

func (r *Refusals) next(quota string) (next outcomes.Refusal, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	queue := r.queues[quota]
	if len(queue) == 0 {
		delete(r.queues, quota)
		return outcomes.Refusal{}, false
	}
	r.queues[quota] = queue[1:]
	return queue[0], true
}

func (r *Refusals) drop(quota string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.queues, quota)
}

// Refused lets a refusal be told, unless this replica told the same within the last 15 minutes
// (tellEvery), and waits for nothing. A refusal that finds no room in the queue is told with the next of its kind.
func (r *Refusals) Refused(refusal outcomes.Refusal) {
	now, topic := r.clock.Now(), topicOf(&refusal)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.recent.Due(topic, now) {
		return
	}
	queue, under := r.queues[refusal.Quota]
	if len(queue) >= queued {
		return
	}
	if !under {
		select {
		case r.begun <- refusal.Quota:
		default:
			return
		}
	}
	r.queues[refusal.Quota] = append(queue, refusal)
	r.recent.Told(topic, now)
}

func (r *Refusals) recordInView(ctx context.Context, refusal outcomes.Refusal) {
	view := r.find(ctx, livePoll, func(ctx context.Context) types.UID { return r.view(ctx, refusal.Namespace, refusal.Quota) })
	refusedInView(view, refusal).Record(r.recorder)
}

// find returns the UID of an object, without which kubectl describe doesn't show its events. An
// object that doesn't appear in time has none: kubectl get events shows them all the same.
func (r *Refusals) find(ctx context.Context, poll time.Duration, look func(context.Context) types.UID) types.UID {
	ctx, cancel := context.WithTimeout(ctx, findWait)
	defer cancel()
	for {
		if uid := look(ctx); uid != "" {
			return uid
		}
		select {
		case <-r.clock.After(poll):
		case <-ctx.Done():
			return ""
		}
	}
}

// quota returns the UID of a quota; empty if it isn't in the cache.
func (r *Refusals) quota(ctx context.Context, name string) types.UID {
	quota := &quotav1.ClusterResourceQuota{}
	if err := r.cache.Get(ctx, client.ObjectKey{Name: name}, quota); err != nil {
		return ""
	}
	return quota.UID
}

// view returns the UID of a quota's view in a namespace; empty if there is none, or it can't be read.
func (r *Refusals) view(ctx context.Context, namespace, quota string) types.UID {
	if err := r.looks.Acquire(ctx, 1); err != nil {
		return ""
	}
	defer r.looks.Release(1)
	views := &metav1.PartialObjectMetadataList{}
	views.SetGroupVersionKind(quotav1.GroupVersion.WithKind("LocalResourceQuotaList"))
	if err := r.live.List(ctx, views, client.InNamespace(namespace)); err != nil {
		return ""
	}
	for i := range views.Items {
		if views.Items[i].Name == quota {
			return views.Items[i].UID
		}
	}
	return ""
}
