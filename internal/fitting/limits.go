// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Source is the kind of object that a limit is read from.
type Source string

const (
	// Shared: a LocalResourceQuota, the view of a ClusterResourceQuota.
	Shared Source = "crq"
	// Native: a ResourceQuota of the namespace alone.
	Native Source = "quota"
)

// Limit is a quota and its rest.
type Limit struct {
	Source Source
	Name   string
	// Namespaces whose objects are charged to it, sorted.
	Namespaces []string
	Spec       corev1.ResourceQuotaSpec
	// Left is hard less used and reserved, for counted resources. It is below
	// zero if more is used than is allowed.
	Left corev1.ResourceList
	// Surge is the room above Spec.Hard for pods that replace others; nil for none. It is taken as far as Left is below
	// zero.
	Surge corev1.ResourceList
	// Used is the use of all namespaces, and Here the use of the first of
	// Namespaces.
	Used, Here corev1.ResourceList
	// Admits says why nothing is refused though it doesn't fit; empty if it is.
	Admits string
}

// LimitsOf returns the limits in the views and ResourceQuotas of some namespaces,
// shared ones first, sorted by name. A quota with views in several of the
// namespaces is one limit. Its views are written at different times: the least
// rest among them counts.
func LimitsOf(views []quotav1.LocalResourceQuota, quotas []corev1.ResourceQuota) []Limit {
	var limits []Limit
	shared := map[string]Limit{}
	for i := range views {
		limit := ofView(&views[i])
		if other, known := shared[limit.Name]; known {
			limit = together(other, limit)
		}
		shared[limit.Name] = limit
	}
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		limits = append(limits, shared[name])
	}
	native := make([]Limit, 0, len(quotas))
	for i := range quotas {
		native = append(native, ofQuota(&quotas[i]))
	}
	slices.SortFunc(native, func(a, b Limit) int {
		return cmp.Or(cmp.Compare(a.Namespaces[0], b.Namespaces[0]), cmp.Compare(a.Name, b.Name))
	})
	return append(limits, native...)
}

func ofView(view *quotav1.LocalResourceQuota) Limit {
	status := view.Status
	var surge corev1.ResourceList
	if status.Surge != nil {
		surge = status.Surge.Hard
	}
	return Limit{
		Source: Shared, Name: view.Name, Namespaces: []string{view.Namespace}, Admits: Admits(view),
		Spec: corev1.ResourceQuotaSpec{Hard: status.Total.Hard, Scopes: status.Scopes, ScopeSelector: status.ScopeSelector},
		Left: left(status.Total.Hard, status.Total.Used, status.Reserved), Surge: surge, Used: status.Total.Used, Here: status.Used,
	}
}

// Admits says why a quota refuses nothing in the namespace of its view; empty if it does.
func Admits(view *quotav1.LocalResourceQuota) string {
	switch {
	case view.Status.Protected:
		return "it counts what namespace " + view.Namespace + " uses, and never limits it, because the namespace is protected"
	case view.Status.Mode != "":
		return "its mode is " + string(view.Status.Mode) + ", so that it refuses nothing"
	}
	return ""
}

// ofQuota takes the limits from the spec. Limits that its status lacks are not
// counted yet.
func ofQuota(native *corev1.ResourceQuota) Limit {
	used := quota.Mask(native.Status.Used, quota.ResourceNames(native.Status.Hard))
	return Limit{
		Source: Native, Name: native.Name, Namespaces: []string{native.Namespace}, Spec: native.Spec,
		Left: left(native.Spec.Hard, used, nil), Used: native.Status.Used, Here: native.Status.Used,
	}
}

func left(hard, used, reserved corev1.ResourceList) corev1.ResourceList {
	counted := quota.Mask(hard, quota.ResourceNames(used))
	taken := quota.Mask(quota.Add(used, reserved), quota.ResourceNames(counted))
	return quota.Subtract(counted, taken)
}

// together merges two views of one quota.
func together(a, b Limit) Limit {
	a.Namespaces = slices.Sorted(slices.Values(append(slices.Clone(a.Namespaces), b.Namespaces...)))
	a.Left = least(a.Left, b.Left)
	if a.Surge != nil {
		a.Surge = least(a.Surge, b.Surge)
	}
	if b.Admits == "" { // One of the namespaces is limited.
		a.Admits = ""
	}
	return a
}

// least returns the lesser amounts of the resources that are in both lists.
func least(a, b corev1.ResourceList) corev1.ResourceList {
	least := corev1.ResourceList{}
	for name, quantity := range b {
		if other, known := a[name]; known {
			least[name] = lesser(quantity, other)
		}
	}
	return least
}
