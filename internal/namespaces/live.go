// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func (i *Index) readNamespace(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	object := emptyNamespace()
	if err := i.live.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return object, nil
}

// readQuota refreshes the memory of one quota.
func (i *Index) readQuota(ctx context.Context, name string) (struct{}, error) {
	known := i.quotas.version(name)
	item := &metav1.PartialObjectMetadata{}
	item.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
	err := i.live.Get(ctx, client.ObjectKey{Name: name}, item)
	if apierrors.IsNotFound(err) {
		i.Miss(name, known)
		return struct{}{}, nil
	}
	if err != nil {
		return struct{}{}, fmt.Errorf("reading quota %s: %w", name, err)
	}
	return struct{}{}, i.refresh(ctx, item)
}

// refresh takes a quota's metadata from a read. The whole is read only if its spec isn't the known one: to read the use
// of every namespace would be most of a refusal's cost.
func (i *Index) refresh(ctx context.Context, item *metav1.PartialObjectMetadata) error {
	if i.quotas.touch(item) {
		return nil
	}
	quota := &quotav1.ClusterResourceQuota{}
	err := i.live.Get(ctx, client.ObjectKey{Name: item.Name}, quota)
	switch {
	case apierrors.IsNotFound(err):
		i.Miss(item.Name, ledger.ParseVersion(item.ResourceVersion))
	case err != nil:
		return fmt.Errorf("reading quota %s: %w", item.Name, err)
	default:
		i.Read(quota)
	}
	return nil
}

// listQuotas refreshes the memory of all quotas.
func (i *Index) listQuotas(ctx context.Context, _ string) (struct{}, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
	if err := i.live.List(ctx, list); err != nil {
		return struct{}{}, fmt.Errorf("listing quotas: %w", err)
	}
	names := make(map[string]bool, len(list.Items))
	for n := range list.Items {
		if err := i.refresh(ctx, &list.Items[n]); err != nil {
			return struct{}{}, err
		}
		names[list.Items[n].Name] = true
	}
	i.Listed(names, ledger.ParseVersion(list.ResourceVersion))
	return struct{}{}, nil
}

// Selected returns the names of the namespaces that every selector selects, sorted. If none is known, the API server is asked: a
// quota is often created together with its namespaces, a moment before the watch has shown them.
func (i *Index) Selected(ctx context.Context, selectors ...definition.Selector) ([]string, error) {
	selected := func(labels, annotations map[string]string) bool {
		return !slices.ContainsFunc(selectors, func(selector definition.Selector) bool { return !selector.Matches(labels, annotations) })
	}
	names := i.namespaces.selected(selected)
	if len(names) > 0 {
		return names, nil
	}
	byLabels := labels.NewSelector() // the API server doesn't know of annotations
	for _, selector := range selectors {
		requirements, _ := selector.Labels().Requirements()
		byLabels = byLabels.Add(requirements...)
	}
	list := emptyNamespaces()
	if err := i.live.List(ctx, list, client.MatchingLabelsSelector{Selector: byLabels}); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	for n := range list.Items {
		if item := &list.Items[n]; selected(item.Labels, item.Annotations) {
			names = append(names, item.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
