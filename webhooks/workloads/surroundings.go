// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// +kubebuilder:rbac:groups="",resources=limitranges,verbs=list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=list;watch
// +kubebuilder:rbac:groups=node.k8s.io,resources=runtimeclasses,verbs=list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=list;watch

// logEvery is how often at most the log tells that something isn't known.
const logEvery = time.Minute

// Watched are the objects that admission depends on, from watches. A kind that can't be watched, because a right is
// missing, is left out: workloads are judged without it.
type Watched struct {
	caches cache.Cache
	// informers of the kinds in order; nil before Start.
	informers atomic.Pointer[[]cache.Informer]
	told      rate.Sometimes
}

// NewWatched makes a Watched on the caches. Nothing is known before Start.
func NewWatched(caches cache.Cache) *Watched {
	return &Watched{caches: caches, told: rate.Sometimes{First: 1, Interval: logEvery}}
}

// NeedLeaderElection says that every replica runs it.
func (*Watched) NeedLeaderElection() bool { return false }

// Start begins the watches. The manager starts runnables that wait for its caches before, so a cache that never fills
// holds up no other.
func (w *Watched) Start(ctx context.Context) error {
	kinds := []client.Object{
		&corev1.LimitRange{}, &schedulingv1.PriorityClass{}, &nodev1.RuntimeClass{}, &storagev1.StorageClass{},
	}
	informers := make([]cache.Informer, len(kinds))
	for i, kind := range kinds {
		informer, err := w.caches.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			log.FromContext(ctx).Info("Workloads are judged without a kind", "kind", fmt.Sprintf("%T", kind), "reason", err.Error())
			continue
		}
		informers[i] = informer
	}
	w.informers.Store(&informers)
	<-ctx.Done()
	return nil
}

// Of implements Surroundings.
func (w *Watched) Of(ctx context.Context, namespace string) fitting.Surroundings {
	found := fitting.Surroundings{}
	informers := w.informers.Load()
	if informers == nil {
		return found
	}
	limitRanges, priorities := &corev1.LimitRangeList{}, &schedulingv1.PriorityClassList{}
	runtimes, storage := &nodev1.RuntimeClassList{}, &storagev1.StorageClassList{}
	const shared = client.UnsafeDisableDeepCopy // these objects are never changed
	var unknown []string
	for i, list := range []struct {
		name    string
		list    client.ObjectList
		options []client.ListOption
	}{
		{"LimitRanges", limitRanges, []client.ListOption{client.InNamespace(namespace), shared}},
		{"PriorityClasses", priorities, []client.ListOption{shared}}, {"RuntimeClasses", runtimes, []client.ListOption{shared}},
		{"StorageClasses", storage, []client.ListOption{shared}},
	} {
		informer := (*informers)[i]
		if informer == nil || !informer.HasSynced() || w.caches.List(ctx, list.list, list.options...) != nil {
			unknown = append(unknown, list.name)
		}
	}
	if len(unknown) > 0 {
		w.told.Do(func() {
			log.FromContext(ctx).Info("Judged a workload without what can't be listed", "kinds", strings.Join(unknown, ", "))
		})
	}
	found.LimitRanges, found.PriorityClasses = limitRanges.Items, priorities.Items
	found.RuntimeClasses, found.StorageClasses = runtimes.Items, storage.Items
	return found
}
