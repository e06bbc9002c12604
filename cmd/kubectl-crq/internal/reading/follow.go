// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Snapshot is what is known at one instant.
type Snapshot struct {
	// Quotas by name.
	Quotas []quotav1.ClusterResourceQuota
	// Lost is why the quotas may have changed without having been seen; nil while
	// the watch stands.
	Lost error
}

// FollowOptions say what is followed.
type FollowOptions struct {
	// Name is that of the only quota to follow; empty for all.
	Name string
	// Interval is how long at least a state stands before the next is shown.
	Interval time.Duration
	// Timeout bounds each listing; 0 for not at all.
	Timeout time.Duration
}

// Follow calls show with the first state, and then with the newest one whenever
// something has changed, until ctx ends or show fails. The reader's calls must be
// bounded by their contexts alone.
func Follow(ctx context.Context, clk clock.Clock, reader client.WithWatch, options FollowOptions, show func(Snapshot) error) error {
	followed := &follower{reader: reader, options: options, changed: make(chan struct{}, 1)}
	informer := followed.informer()
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	group.Go(func() error {
		informer.RunWithContext(ctx)
		return nil
	})
	group.Go(func() error {
		defer cancel()
		return followed.showAll(ctx, clk, informer, show)
	})
	return group.Wait() //nolint:wrapcheck // show's own error, for whoever gave show
}

// follower knows whether the watch stands, which an informer keeps to itself.
type follower struct {
	reader  client.WithWatch
	options FollowOptions
	// changed holds a token while something has changed that wasn't shown.
	changed chan struct{}

	// mu guards lost.
	mu   sync.Mutex
	lost error
}

func (f *follower) showAll(ctx context.Context, clk clock.Clock, informer cache.SharedIndexInformer, show func(Snapshot) error) error {
	// The first state is all of what there was at one instant, also if that is nothing.
	select {
	case <-ctx.Done():
		return nil
	case <-informer.HasSyncedChecker().Done():
		f.signal()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.changed:
		}
		if err := show(f.state(informer)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-clk.After(f.options.Interval):
		}
	}
}

func (f *follower) state(informer cache.SharedIndexInformer) Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	state := Snapshot{Lost: f.lost}
	for _, object := range informer.GetStore().List() {
		if quota, ok := object.(*quotav1.ClusterResourceQuota); ok {
			state.Quotas = append(state.Quotas, *quota)
		}
	}
	slices.SortFunc(state.Quotas, func(a, b quotav1.ClusterResourceQuota) int { return cmp.Compare(a.Name, b.Name) })
	return state
}

func (f *follower) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// attempted notes how a call of the informer ended, for it tries again in silence.
func (f *follower) attempted(err error) {
	f.mu.Lock()
	previous := f.lost
	f.lost = err
	f.mu.Unlock()
	if (previous == nil) != (err == nil) {
		f.signal()
	}
}

func (f *follower) informer() cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc:  f.list,
		WatchFuncWithContext: f.watch,
	}, &quotav1.ClusterResourceQuota{}, 0, nil)
	// Neither can fail before the informer runs.
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, _ error) {})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { f.signal() },
		UpdateFunc: func(_, _ any) { f.signal() },
		DeleteFunc: func(any) { f.signal() },
	})
	return informer
}

func (f *follower) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if f.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.options.Timeout)
		defer cancel()
	}
	list := &quotav1.ClusterResourceQuotaList{}
	err := f.reader.List(ctx, list, f.listOptions(options))
	f.attempted(err)
	if err != nil {
		return nil, fmt.Errorf("listing the quotas: %w", err)
	}
	return list, nil
}

func (f *follower) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	watching, err := f.reader.Watch(ctx, &quotav1.ClusterResourceQuotaList{}, f.listOptions(options))
	f.attempted(err)
	// Wrapped, the informer wouldn't know what to try again.
	return watching, err //nolint:wrapcheck // as said
}

func (f *follower) listOptions(options metav1.ListOptions) *client.ListOptions {
	wanted := &client.ListOptions{Raw: &options}
	if f.options.Name != "" {
		wanted.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, f.options.Name)
	}
	return wanted
}
