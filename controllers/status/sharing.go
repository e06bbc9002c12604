// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"weak"

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
	latest := lru.New(mostShared) // quota name -> a weak pointer to its view that came last, so that one that is gone is freed
	return func(object any) (any, error) {
		view, ok := object.(*quotav1.LocalResourceQuota)
		if !ok {
			return object, nil
		}
		view.ManagedFields = nil
		known, _ := latest.Get(view.Name)
		if pointer, some := known.(weak.Pointer[quotav1.LocalResourceQuota]); some {
			if before := pointer.Value(); before != nil {
				share(view, before)
			}
		}
		latest.Add(view.Name, weak.Make(view))
		return view, nil
	}
}

// ShareSlices transforms quotas for a cache, in which nothing is changed: the slices of a quota share the figures that are the
// same in them. It drops managed fields.
func ShareSlices(object any) (any, error) {
	shown, ok := object.(*quotav1.ClusterResourceQuota)
	if !ok {
		return object, nil
	}
	shown.ManagedFields = nil
	before := &shown.Status.Total
	for i := range shown.Status.Namespaces {
		slice := &shown.Status.Namespaces[i].Status
		slice.Hard, slice.Used = either(slice.Hard, before.Hard), either(slice.Used, before.Used)
		before = slice
	}
	return shown, nil
}

// share has a view use the figures of another one where they are the same.
func share(view, other *quotav1.LocalResourceQuota) {
	from, into := &other.Status, &view.Status
	into.Total.Hard, into.Total.Used = either(into.Total.Hard, from.Total.Hard), either(into.Total.Used, from.Total.Used)
	into.Reserved, into.Available = either(into.Reserved, from.Reserved), either(into.Available, from.Available)
	into.Used = either(into.Used, from.Used)
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

// either returns other if its amounts are those of list, which is freed then.
func either(list, other corev1.ResourceList) corev1.ResourceList {
	if quota.Equals(list, other) {
		return other
	}
	return list
}
