// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	quotalists "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// Reader reads. It is made by NewReader.
type Reader struct {
	client client.Reader
	types  *fitting.Types
}

// NewReader makes a reader.
func NewReader(client client.Reader, types *fitting.Types) *Reader {
	return &Reader{client: client, types: types}
}

// MissingNamespaceError is returned for a namespace that doesn't exist: the quotas that will cover it aren't known yet.
type MissingNamespaceError struct{ Namespace string }

// Error implements error.
func (e *MissingNamespaceError) Error() string { return missingNamespace(e.Namespace) }

// Limits are the quotas of some namespaces.
type Limits struct {
	Views  []quotav1.LocalResourceQuota
	Quotas []corev1.ResourceQuota
	// NotInstalled: the cluster doesn't serve local views.
	NotInstalled bool
	// Unviewed are the namespaces without a view for which the user may not read whether a quota covers them: its view may
	// not have been written yet.
	Unviewed []string
}

// Limits reads the quotas of the namespaces. The error is a *MissingNamespaceError where one doesn't exist.
func (r *Reader) Limits(ctx context.Context, namespaces []string) (Limits, error) {
	limits := Limits{}
	for _, namespace := range namespaces {
		views := &quotav1.LocalResourceQuotaList{}
		err := listAll(ctx, r.client, views, client.InNamespace(namespace))
		if limits.NotInstalled = isNotServed(err); err != nil && !limits.NotInstalled {
			return Limits{}, fmt.Errorf("reading the local views in namespace %s: %w", namespace, err)
		}
		quotas := &corev1.ResourceQuotaList{}
		if err := listAll(ctx, r.client, quotas, client.InNamespace(namespace)); err != nil {
			return Limits{}, fmt.Errorf("reading the ResourceQuotas in namespace %s: %w", namespace, err)
		}
		limits.Views = append(limits.Views, views.Items...)
		limits.Quotas = append(limits.Quotas, quotas.Items...)
	}
	if err := r.complete(ctx, &limits, namespaces); err != nil {
		return Limits{}, err
	}
	return limits, nil
}

// complete brings the views of the namespaces up to their quotas, which may be newer. It leaves them as they are
// if the user may not read namespaces or quotas. The error is a *MissingNamespaceError if a namespace doesn't exist.
func (r *Reader) complete(ctx context.Context, limits *Limits, namespaces []string) error {
	found, quotas := make([]*corev1.Namespace, len(namespaces)), &quotav1.ClusterResourceQuotaList{}
	round := r.newRound()
	list(round, "clusterresourcequotas", quotas, kept)
	for i, name := range namespaces {
		round.call(func(ctx context.Context) error {
			namespace := &corev1.Namespace{}
			switch err := r.client.Get(ctx, client.ObjectKey{Name: name}, namespace); {
			case apierrors.IsNotFound(err):
				return &MissingNamespaceError{Namespace: name}
			case err == nil:
				found[i] = namespace
			case !apierrors.IsForbidden(err):
				return fmt.Errorf("reading namespace %s: %w", name, err)
			}
			return nil
		})
	}
	if err := round.wait(ctx); err != nil {
		return err
	}
	for i, name := range namespaces {
		if found[i] != nil && len(round.refused) == 0 {
			limits.update(found[i], quotas.Items)
		} else if limits.viewAt(name, "") < 0 && !limits.NotInstalled {
			limits.Unviewed = append(limits.Unviewed, name)
		}
	}
	return nil
}

// update gives each quota that covers the namespace a view, without usage if it has none there yet, and each of these views
// the limits and the mode of the quota's spec: these are in force before views follow.
func (l *Limits) update(namespace *corev1.Namespace, quotas []quotav1.ClusterResourceQuota) {
	for i := range quotas {
		spec := &quotas[i].Spec
		selector, err := definition.CompileSelector(spec.Selector)
		if err != nil || !selector.Matches(namespace.Labels, namespace.Annotations) {
			continue
		}
		at := l.viewAt(namespace.Name, quotas[i].Name)
		if at < 0 {
			at = len(l.Views)
			l.Views = append(l.Views, quotav1.LocalResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: quotas[i].Name},
			})
		}
		status := &l.Views[at].Status
		status.Total.Hard, status.Scopes, status.ScopeSelector = spec.Quota.Hard, spec.Quota.Scopes, spec.Quota.ScopeSelector
		status.Surge = surgeOf(spec.Surge, status.Surge)
		if status.Mode = spec.Enforcement.Mode; status.Mode == quotav1.EnforcementDeny {
			status.Mode = ""
		}
	}
}

// surgeOf returns the surge of a spec, and its holders as far as they are known; nil for none.
func surgeOf(surge quotav1.Surge, known *quotav1.SurgeStatus) *quotav1.SurgeStatus {
	if len(surge.Hard) == 0 {
		return nil
	}
	made := quotav1.SurgeStatus{}
	if known != nil {
		made = *known
	}
	made.Hard = surge.Hard
	return &made
}

// viewAt returns the place of the namespace's view of the quota, or of any if that is empty; below 0 if there is none.
func (l *Limits) viewAt(namespace, quota string) int {
	return slices.IndexFunc(l.Views, func(view quotav1.LocalResourceQuota) bool {
		return view.Namespace == namespace && (quota == "" || view.Name == quota)
	})
}

// Unread names the objects that the reader was not allowed to read.
type Unread struct {
	LimitRanges, PriorityClasses, RuntimeClasses, StorageClasses, DeviceClasses bool
}

// round is calls that are made at the same time.
type round struct {
	client client.Reader
	calls  []func(context.Context) error

	// mu guards refused.
	mu      sync.Mutex
	refused []string
}

// Surroundings reads the objects that admission depends on in the namespaces, as far as they can be read.
func (r *Reader) Surroundings(ctx context.Context, namespaces []string) (found fitting.Surroundings, unread Unread, err error) {
	round := r.newRound()
	ranges := make([]corev1.LimitRangeList, len(namespaces))
	for i, namespace := range namespaces {
		list(round, "limitranges", &ranges[i], kept, client.InNamespace(namespace))
	}
	round.classes(&found)
	if err := round.wait(ctx); err != nil {
		return found, unread, err
	}
	for i := range ranges {
		found.LimitRanges = append(found.LimitRanges, ranges[i].Items...)
	}
	return found, round.unread(), nil
}

// classes lists the classes that admission goes by.
func (r *round) classes(into *fitting.Surroundings) {
	list(r, "priorityclasses", &schedulingv1.PriorityClassList{}, itemsTo(&into.PriorityClasses))
	list(r, "runtimeclasses", &nodev1.RuntimeClassList{}, itemsTo(&into.RuntimeClasses))
	list(r, "storageclasses", &storagev1.StorageClassList{}, itemsTo(&into.StorageClasses))
	list(r, "deviceclasses", &resourceapi.DeviceClassList{}, itemsTo(&into.DeviceClasses))
}

// unread returns the objects that the user may not read, after wait.
func (r *round) unread() Unread {
	refused := func(resource string) bool { return slices.Contains(r.refused, resource) }
	return Unread{
		LimitRanges: refused("limitranges"), PriorityClasses: refused("priorityclasses"),
		RuntimeClasses: refused("runtimeclasses"), StorageClasses: refused("storageclasses"),
		DeviceClasses: refused("deviceclasses"),
	}
}

// limits lists the quotas, which are returned after wait.
func (r *round) limits(options ...client.ListOption) (read func() Limits) {
	var found Limits
	list(r, "resourcequotas", &corev1.ResourceQuotaList{}, itemsTo(&found.Quotas), options...)
	notServed := list(r, "localresourcequotas", &quotav1.LocalResourceQuotaList{}, itemsTo(&found.Views), options...)
	return func() Limits {
		found.NotInstalled = *notServed
		return found
	}
}

// isNotServed reports whether the cluster doesn't serve a kind.
func isNotServed(err error) bool {
	return err != nil && (meta.IsNoMatchError(err) || apierrors.IsNotFound(err))
}

func (r *Reader) newRound() *round { return &round{client: r.client} }

func (r *round) call(call func(context.Context) error) { r.calls = append(r.calls, call) }

// list has a resource listed and taken. If the user may not read it, wait goes on, and forbidden has it. The result is
// set if the cluster doesn't serve it.
func list(
	r *round, resource string, into client.ObjectList, take func(client.ObjectList), options ...client.ListOption,
) (notServed *bool) {
	notServed = new(bool)
	r.call(func(ctx context.Context) error {
		err := listAll(ctx, r.client, into, options...)
		switch {
		case err == nil:
			take(into)
			return nil
		case isNotServed(err):
			*notServed = true
			return nil
		case apierrors.IsForbidden(err):
			r.mu.Lock()
			defer r.mu.Unlock()
			r.refused = append(r.refused, resource)
			return nil
		}
		return fmt.Errorf("reading %s: %w", resource, err)
	})
	return notServed
}

// listAll reads a list in pages: a namespace may have more objects than the API server sends within one call's time.
func listAll(ctx context.Context, reader client.Reader, into client.ObjectList, options ...client.ListOption) error {
	read := func(ctx context.Context, page metav1.ListOptions) (runtime.Object, error) {
		made, isList := into.DeepCopyObject().(client.ObjectList)
		if !isList {
			return nil, fmt.Errorf("%T is no list", into)
		}
		return made, reader.List(ctx, made, append(slices.Clone(options), client.Limit(page.Limit), client.Continue(page.Continue))...)
	}
	var items []runtime.Object
	if err := pager.New(read).EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		items = append(items, item)
		return nil
	}); err != nil {
		return err //nolint:wrapcheck // the caller wraps it
	}
	return meta.SetList(into, items) //nolint:wrapcheck // a mistake in the code
}

// kept is for a list that the caller keeps.
func kept(client.ObjectList) {}

// itemsTo appends the items of a list.
func itemsTo[T any](to *[]T) func(client.ObjectList) {
	return func(from client.ObjectList) {
		_ = meta.EachListItem(from, func(item runtime.Object) error { // no item fails
			if item, ok := any(item).(*T); ok {
				*to = append(*to, *item)
			}
			return nil
		})
	}
}

// wait makes the calls, and returns the first error.
func (r *round) wait(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, call := range r.calls {
		group.Go(func() error { return call(ctx) })
	}
	return group.Wait() //nolint:wrapcheck // each call wraps its own
}

// forbidden returns the resources that the user may not read, sorted.
func (r *round) forbidden() []string { return slices.Sorted(slices.Values(r.refused)) }

// ByPriority reports whether a limit goes by the priority classes of pods.
func ByPriority(limit fitting.Limit) bool {
	if slices.Contains(limit.Spec.Scopes, corev1.ResourceQuotaScopePriorityClass) {
		return true
	}
	return limit.Spec.ScopeSelector != nil && slices.ContainsFunc(limit.Spec.ScopeSelector.MatchExpressions,
		func(requirement corev1.ScopedResourceSelectorRequirement) bool {
			return requirement.ScopeName == corev1.ResourceQuotaScopePriorityClass
		})
}

// ByExtendedResource reports whether a limit is of an extended resource, which a device class may offer.
func ByExtendedResource(limit fitting.Limit) bool {
	return slices.ContainsFunc(quotalists.ResourceNames(limit.Spec.Hard), func(name corev1.ResourceName) bool {
		offered, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
		return isRequest && strings.Contains(offered, "/")
	})
}

// ByStorageClass reports whether a limit is of one storage class alone.
func ByStorageClass(limit fitting.Limit) bool {
	return slices.ContainsFunc(quotalists.ResourceNames(limit.Spec.Hard), func(name corev1.ResourceName) bool {
		return strings.Contains(string(name), ".storageclass.storage.k8s.io/")
	})
}
