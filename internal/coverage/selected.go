// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// Selected returns the names of the namespaces that every selector selects,
// sorted. Where the cache knows none, the API server is asked: a quota is often
// created together with its namespaces, a moment before the cache has them.
func (i *Index) Selected(ctx context.Context, selectors ...selection.Selector) ([]string, error) {
	selected, err := selectedOf(ctx, i.cached, selectors, client.UnsafeDisableDeepCopy)
	if err != nil || len(selected) > 0 {
		return selected, err
	}
	return selectedOf(ctx, i.live, selectors, byLabels(selectors))
}

func selectedOf(
	ctx context.Context, reader client.Reader, selectors []selection.Selector, option client.ListOption,
) ([]string, error) {
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := reader.List(ctx, namespaces, option); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	var selected []string
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		passesBy := func(selector selection.Selector) bool {
			return !selector.Matches(namespace.Labels, namespace.Annotations)
		}
		if !slices.ContainsFunc(selectors, passesBy) {
			selected = append(selected, namespace.Name)
		}
	}
	slices.Sort(selected)
	return selected, nil
}

// byLabels has the API server leave out most of what isn't selected. It doesn't
// know of annotations.
func byLabels(selectors []selection.Selector) client.ListOption {
	all := labels.NewSelector()
	for _, selector := range selectors {
		requirements, _ := selector.Labels().Requirements()
		all = all.Add(requirements...)
	}
	return client.MatchingLabelsSelector{Selector: all}
}
