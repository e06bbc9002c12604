// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// surroundings are the cluster that warnings are about.
type surroundings struct {
	// namespace name -> its team
	teams map[string]string
	// resource -> where it lives, if not in namespaces; 0 for what can't be told
	places map[schema.GroupResource]Place
	// quota name -> what OpenShift's quota of that name selects
	openShift map[string]quotav1.ClusterResourceQuotaSelector

	// What each question fails with.
	namespacesErr, placesErr, openShiftErr error
	// hang keeps every question waiting until its context ends.
	hang bool
	// asked is how many questions there were.
	asked int
}

func (s *surroundings) answer(ctx context.Context, err error) error {
	s.asked++
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (s *surroundings) Selected(ctx context.Context, selectors ...selection.Selector) ([]string, error) {
	if err := s.answer(ctx, s.namespacesErr); err != nil {
		return nil, err
	}
	var selected []string
	for _, name := range slices.Sorted(maps.Keys(s.teams)) {
		labels := map[string]string{"team": s.teams[name]}
		if !slices.ContainsFunc(selectors, func(selector selection.Selector) bool { return !selector.Matches(labels, nil) }) {
			selected = append(selected, name)
		}
	}
	return selected, nil
}

func (s *surroundings) Places(ctx context.Context, resources []schema.GroupResource) (map[schema.GroupResource]Place, error) {
	if err := s.answer(ctx, s.placesErr); err != nil {
		return nil, err
	}
	places := map[schema.GroupResource]Place{}
	for _, resource := range resources {
		places[resource] = InNamespaces
		if place, ok := s.places[resource]; ok {
			places[resource] = place
		}
	}
	return places, nil
}

func (s *surroundings) OpenShiftSelector(ctx context.Context, name string) (quotav1.ClusterResourceQuotaSelector, bool, error) {
	if err := s.answer(ctx, s.openShiftErr); err != nil {
		return quotav1.ClusterResourceQuotaSelector{}, false, err
	}
	selector, found := s.openShift[name]
	return selector, found, nil
}
