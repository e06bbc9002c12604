// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// patience is what any change may take.
	patience = 5 * time.Minute
	// pollEvery is how often it is tried whether something is so.
	pollEvery = 200 * time.Millisecond
)

// poll returns once done says so.
func poll(ctx context.Context, goal string, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, last := done(ctx)
		if ok && last == nil {
			return nil
		}
		if err := pause(ctx, pollEvery); err != nil {
			return fmt.Errorf("waiting for %s: %w; last: %w", goal, err, last)
		}
	}
}

// follower keeps what the objects of one kind say, by a watch. One goroutine may use it.
type follower[S comparable] struct {
	api client.WithWatch
	// list makes an empty list of the kind, and read returns the key and the state of one object.
	list func() client.ObjectList
	read func(runtime.Object) (string, S)

	events watch.Interface
	states map[string]S
}

// follow begins to follow, from what the objects say now. The caller must stop it.
func follow[S comparable](
	ctx context.Context, api client.WithWatch, list func() client.ObjectList, read func(runtime.Object) (string, S),
) (*follower[S], error) {
	f := &follower[S]{api: api, list: list, read: read}
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *follower[S]) begin(ctx context.Context) error {
	list := f.list()
	if err := f.api.List(ctx, list); err != nil {
		return fmt.Errorf("listing: %w", err)
	}
	f.states = map[string]S{}
	if err := meta.EachListItem(list, func(object runtime.Object) error { f.take(object); return nil }); err != nil {
		return err
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	events, err := f.api.Watch(ctx, f.list(), from)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	f.events = events
	return nil
}

func (f *follower[S]) stop() { f.events.Stop() }

func (f *follower[S]) take(object runtime.Object) string {
	key, state := f.read(object)
	f.states[key] = state
	return key
}

// await returns once each key has the state that is wanted of it.
func (f *follower[S]) await(ctx context.Context, want map[string]S) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing := f.missing(want)
	for len(missing) > 0 {
		key, err := f.next(ctx)
		if err != nil {
			return fmt.Errorf("waiting for %d of %d, such as %s: %w", len(missing), len(want), f.example(missing, want), err)
		}
		switch wanted, ok := want[key]; {
		case key == "":
			missing = f.missing(want)
		case ok && f.states[key] == wanted:
			delete(missing, key)
		case ok:
			missing[key] = true
		}
	}
	return nil
}

// missing returns the keys that don't have the state that is wanted of them.
func (f *follower[S]) missing(want map[string]S) map[string]bool {
	missing := map[string]bool{}
	for key, wanted := range want {
		if state, ok := f.states[key]; !ok || state != wanted {
			missing[key] = true
		}
	}
	return missing
}

// next waits for a change, and returns the key of the object; it is empty if all objects were read again.
func (f *follower[S]) next(ctx context.Context) (string, error) {
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case event, open := <-f.events.ResultChan():
		object, ok := event.Object.(client.Object)
		if !open || !ok { // an API server ends watches that can't keep up
			f.stop()
			return "", f.begin(ctx)
		}
		return f.take(object), nil
	}
}

// example tells what one of the missing keys says.
func (f *follower[S]) example(missing map[string]bool, want map[string]S) string {
	for key := range missing {
		return fmt.Sprintf("%s, which says %+v and not %+v", key, f.states[key], want[key])
	}
	return ""
}

// usage is what is compared of a ledger.
type usage struct {
	pods, milliCPU int64
	// custom is how many custom resources are counted.
	custom int
}

// plus adds the pod of an index, or takes it away.
func (f usage) plus(index int, pods int64) usage {
	f.pods, f.milliCPU = f.pods+pods, f.milliCPU+pods*milliCPU(index)
	return f
}

// expected is what the ledger of each quota should come to, by its name.
func (w *scaleWorld) expected() map[string]usage {
	expected := map[string]usage{}
	for namespace := range w.namespaces {
		quota := w.quotaOf(namespace)
		used := expected[quota]
		if w.loaded > 0 {
			for i := range w.share(namespace) {
				used = used.plus(i, 1)
			}
		}
		expected[quota] = used
	}
	for i := range w.size.quotas {
		expected[quotaName(i)] = expected[quotaName(i)].plus(0, int64(w.extra))
	}
	w.customExpected(expected)
	return expected
}

// ledgers follows what ledgers say is used.
type ledgers = follower[usage]

// followBoth follows ledgers and statuses. The caller must call stop, unless there is an error.
func (w *scaleWorld) followBoth(ctx context.Context) (l *ledgers, s *follower[shown], stop func(), err error) {
	if l, err = w.followLedgers(ctx); err != nil {
		return nil, nil, nil, err
	}
	if s, err = w.followStatuses(ctx); err != nil {
		l.stop()
		return nil, nil, nil, err
	}
	return l, s, func() { l.stop(); s.stop() }, nil
}

func (w *scaleWorld) followLedgers(ctx context.Context) (*ledgers, error) {
	list := func() client.ObjectList { return &quotav1.QuotaLedgerList{} }
	return follow(ctx, w.quotas, list, func(object runtime.Object) (string, usage) {
		ledger, _ := object.(*quotav1.QuotaLedger)
		pods, cpu := ledger.Entries.Used[corev1.ResourcePods], ledger.Entries.Used[corev1.ResourceRequestsCPU]
		current := usage{pods: pods.Value(), milliCPU: cpu.MilliValue()}
		for name := range ledger.Entries.Used {
			if strings.HasPrefix(string(name), "count/") {
				current.custom++
			}
		}
		return ledger.Name, current
	})
}

// shown is what is compared of a quota's status.
type shown struct {
	pods            int64
	ready, enforced bool
}

// shownAs is what statuses show of what ledgers have. A quota that limits the broken custom resource isn't Ready.
func (s size) shownAs(expected map[string]usage) map[string]shown {
	statuses := map[string]shown{}
	for quota, used := range expected {
		isBroken := s.custom > 0 && quota == s.quotaOf(0)
		statuses[quota] = shown{pods: used.pods, ready: !isBroken, enforced: true}
	}
	return statuses
}

// followStatuses follows what the statuses of quotas show.
func (w *scaleWorld) followStatuses(ctx context.Context) (*follower[shown], error) {
	list := func() client.ObjectList { return &quotav1.ClusterResourceQuotaList{} }
	return follow(ctx, w.quotas, list, func(object runtime.Object) (string, shown) {
		quota, _ := object.(*quotav1.ClusterResourceQuota)
		status := &quota.Status
		pods := status.Total.Used[corev1.ResourcePods]
		return quota.Name, shown{
			pods:     pods.Value(),
			ready:    meta.IsStatusConditionTrue(status.Conditions, quotav1.ConditionReady),
			enforced: meta.IsStatusConditionTrue(status.Conditions, quotav1.ConditionEnforced),
		}
	})
}
