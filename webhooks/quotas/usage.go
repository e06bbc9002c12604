// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// maxNamespaces is how many namespaces are listed one by one. For more, all namespaces are.
	maxNamespaces = 20
	// maxLists is how many lists of one request are under way at once.
	maxLists = 4
)

// known returns the use of the limits that a request changes, by the quota's status, and the limits that the status
// lacks: the quota is new, counts other objects than before, or has a status of an older spec.
func known(previous, current *quotav1.ClusterResourceQuota) (used, uncounted corev1.ResourceList) {
	used, uncounted = corev1.ResourceList{}, corev1.ResourceList{}
	anew := previous == nil || countsAnew(previous, current)
	for name, limit := range current.Spec.Quota.Hard {
		if anew {
			uncounted[name] = limit
			continue
		}
		before, was := previous.Spec.Quota.Hard[name]
		if was && limit.Cmp(before) == 0 {
			continue
		}
		amount, counted := previous.Status.Total.Used[name]
		if counted && previous.Status.ObservedGeneration == previous.Generation {
			used[name] = amount
		} else {
			uncounted[name] = limit
		}
	}
	return used, uncounted
}

// excesses returns the use above limits, the largest share first.
func excesses(used, hard corev1.ResourceList) []string {
	share := map[corev1.ResourceName]float64{}
	for name, amount := range used {
		if limit := hard[name]; amount.Cmp(limit) > 0 {
			share[name] = math.Inf(1)
			if !limit.IsZero() {
				share[name] = amount.AsApproximateFloat64() / limit.AsApproximateFloat64()
			}
		}
	}
	excesses := make([]string, 0, len(share))
	for _, name := range slices.SortedFunc(maps.Keys(share), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(share[b], share[a]), cmp.Compare(a, b))
	}) {
		amount, limit := used[name], hard[name]
		above := amount.DeepCopy()
		above.Sub(limit)
		excesses = append(excesses, fmt.Sprintf("%s by %s (%s/%s)", name, above.String(), amount.String(), limit.String()))
	}
	return excesses
}

// count is the use of some namespaces.
type count struct {
	quota evaluation.Quota
	// mu guards the fields below.
	mu   sync.Mutex
	used corev1.ResourceList
	// missing are the namespaces whose usage isn't in used yet, for each name.
	missing map[corev1.ResourceName]sets.Set[string]
	// unread are the names for which something couldn't be read.
	unread sets.Set[corev1.ResourceName]
	// causes say why.
	causes []error
}

// usage returns the use of limits in these namespaces, without limits whose use can't be found out. Another quota's
// status has most of it if that counts the same objects. The rest is listed.
func (i *inquiry) usage(ctx context.Context, limits corev1.ResourceList, selected []string) corev1.ResourceList {
	if len(limits) == 0 || len(selected) == 0 {
		return nil
	}
	made := &count{
		quota: evaluation.Quota{Name: i.current.Name, Spec: corev1.ResourceQuotaSpec(i.current.Spec.Quota)},
		used:  corev1.ResourceList{}, missing: map[corev1.ResourceName]sets.Set[string]{}, unread: sets.New[corev1.ResourceName](),
	}
	made.quota.Spec.Hard = limits
	for name, limit := range limits {
		made.used[name] = resource.Quantity{Format: limit.Format}
		made.missing[name] = sets.New(selected...)
	}
	if others, err := i.Cluster.Quotas(ctx); err == nil {
		made.takeSlices(i.current, others)
	}
	i.list(ctx, made)
	if len(made.unread) > 0 {
		names := make([]string, 0, len(made.unread))
		for _, name := range sets.List(made.unread) {
			delete(made.used, name)
			names = append(names, string(name))
		}
		i.unknown(ctx, outcomes.UseOfNames.Text(strings.Join(names, ", ")), errors.Join(made.causes...))
	}
	return made.used
}

// takeSlices takes the slices that other quotas, and the quota itself before the request, have counted in each
// namespace.
func (c *count) takeSlices(of *quotav1.ClusterResourceQuota, quotas []quotav1.ClusterResourceQuota) {
	for q := range quotas {
		other := &quotas[q]
		if other.Status.ObservedGeneration != other.Generation || !sameObjects(of, other) ||
			!meta.IsStatusConditionTrue(other.Status.Conditions, quotav1.ConditionReady) {
			continue
		}
		for s := range other.Status.Namespaces {
			slice := &other.Status.Namespaces[s]
			for name, missing := range c.missing {
				if amount, counted := slice.Status.Used[name]; counted && missing.Has(slice.Namespace) {
					c.add(name, amount)
					missing.Delete(slice.Namespace)
				}
			}
		}
	}
}

func (c *count) add(name corev1.ResourceName, amount resource.Quantity) {
	sum := c.used[name]
	sum.Add(amount)
	c.used[name] = sum
}

// list lists all objects that are missing.
func (i *inquiry) list(ctx context.Context, made *count) {
	group := errgroup.Group{}
	group.SetLimit(maxLists)
	tracked, _ := i.Evaluators.Resources(made.quota.Spec.Hard)
	for tracks, names := range tracked {
		namespaces := sets.New[string]()
		for _, name := range names {
			namespaces = namespaces.Union(made.missing[name])
		}
		how, isKnown := i.served[tracks]
		switch {
		case len(namespaces) == 0 || isKnown && !how.Namespaced:
			continue
		case !isKnown:
			made.fail(names, fmt.Errorf("it isn't known how the cluster serves %s", tracks))
			continue
		case len(namespaces) > maxNamespaces:
			namespaces = sets.New(metav1.NamespaceAll)
		}
		for namespace := range namespaces {
			group.Go(func() error {
				err := i.Cluster.Visit(ctx, tracks.WithVersion(how.Version), namespace, func(object client.Object) error {
					return i.measure(made, tracks, object)
				})
				if err != nil {
					made.fail(names, fmt.Errorf("listing %s in %q: %w", tracks, namespace, err))
				}
				return nil
			})
		}
	}
	_ = group.Wait() // no call fails
}

func (c *count) fail(names []corev1.ResourceName, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unread.Insert(names...)
	c.causes = append(c.causes, cause)
}

// measure adds an object's use.
func (i *inquiry) measure(made *count, of schema.GroupResource, object client.Object) error {
	footprint, err := i.Evaluators.Footprint(of, object)
	if err != nil {
		return fmt.Errorf("measuring %s %s/%s: %w", of, object.GetNamespace(), object.GetName(), err)
	}
	uses, err := i.Evaluators.Usage(of, footprint, made.quota, i.Clock.Now())
	if err != nil {
		return fmt.Errorf("charging %s %s/%s: %w", of, object.GetNamespace(), object.GetName(), err)
	}
	made.mu.Lock()
	defer made.mu.Unlock()
	for name, amount := range uses {
		if made.missing[name].Has(object.GetNamespace()) {
			made.add(name, amount)
		}
	}
	return nil
}
