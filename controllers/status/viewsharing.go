// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// mostShared bounds the quotas whose views share figures.
const mostShared = 10000

// ShareFigures transforms views for a cache, in which nothing is changed: views of one quota share the figures that are
// the same in them, which are most of a view. It drops managed fields.
func ShareFigures() cache.TransformFunc {
	latest := lru.New(mostShared) // quota name -> its view that came last
	return func(object any) (any, error) {
		view, ok := object.(*quotav1.LocalResourceQuota)
		if !ok {
			return object, nil
		}
		view.ManagedFields = nil
		known, _ := latest.Get(view.Name)
		if before, some := known.(*quotav1.LocalResourceQuota); some {
			share(view, before)
		}
		latest.Add(view.Name, view)
		return view, nil
	}
}

// share has a view use the figures of another one where they are the same.
func share(view, other *quotav1.LocalResourceQuota) {
	from, into := &other.Status, &view.Status
	for _, figures := range []struct {
		into *corev1.ResourceList
		from corev1.ResourceList
	}{
		{&into.Total.Hard, from.Total.Hard}, {&into.Total.Used, from.Total.Used},
		{&into.Reserved, from.Reserved}, {&into.Available, from.Available}, {&into.Used, from.Used},
	} {
		if quota.Equals(*figures.into, figures.from) {
			*figures.into = figures.from
		}
	}
	if maps.Equal(into.Levels, from.Levels) {
		into.Levels = from.Levels
	}
	if apiequality.Semantic.DeepEqual(view.OwnerReferences, other.OwnerReferences) {
		view.OwnerReferences = other.OwnerReferences
	}
	if apiequality.Semantic.DeepEqual(into.Conditions, from.Conditions) {
		into.Conditions = from.Conditions
	}
}
