// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// row compares what is needed of a resource with what is left of it.
func (d *diagnosis) row(limit *fitting.Limit, name corev1.ResourceName, one, all resource.Quantity) render.WhyRow {
	row := render.WhyRow{Resource: name, One: one, All: all, Hard: limit.Spec.Hard[name]}
	if left, counted := limit.Left[name]; counted {
		short := all.DeepCopy()
		short.Sub(left)
		if short.Sign() < 0 {
			short = resource.Quantity{Format: short.Format}
		}
		row.Available, row.Short = &left, &short
	}
	used, here := d.usedOf(limit)
	if amount, counted := used[name]; counted {
		row.Used = &amount
	}
	if amount, counted := here[name]; counted {
		row.Here = &amount
	}
	return row
}

// usedOf returns what all namespaces use of a limit, and what this one does.
func (d *diagnosis) usedOf(limit *fitting.Limit) (used, here corev1.ResourceList) {
	if limit.Source == fitting.Shared {
		for i := range d.Limits.Views {
			if view := &d.Limits.Views[i]; view.Name == limit.Name {
				return view.Status.Total.Used, view.Status.Used
			}
		}
		return nil, nil
	}
	for i := range d.Limits.Quotas {
		if quota := &d.Limits.Quotas[i]; quota.Name == limit.Name {
			return quota.Status.Used, quota.Status.Used
		}
	}
	return nil, nil
}

// nextOf returns what the next object takes of a resource.
func (d *diagnosis) nextOf(limit *fitting.Limit, name corev1.ResourceName) resource.Quantity {
	for _, row := range d.one.Rows {
		if row.Resource == name && row.Limit.Name == limit.Name && row.Limit.Source == limit.Source {
			return row.InTheEnd
		}
	}
	return resource.Quantity{}
}

// findLargest names the pods and claims of the namespace that use most of what is short, but for the subject's own.
func (d *diagnosis) findLargest(quotas []render.WhyQuota) error {
	for i := range quotas {
		for k := range quotas[i].Rows {
			row := &quotas[i].Rows[k]
			if !row.IsShort() || isCount(row.Resource) {
				continue
			}
			at := slices.IndexFunc(d.limits, func(limit fitting.Limit) bool { return quotaName(&limit) == quotas[i].Quota })
			largest, err := d.largest(&d.limits[at], row.Resource)
			if err != nil {
				return err
			}
			row.Largest = largest
		}
	}
	return nil
}

func (d *diagnosis) largest(limit *fitting.Limit, name corev1.ResourceName) ([]render.WhyUser, error) {
	var users []render.WhyUser
	owners := d.owners()
	add := func(resource schema.GroupResource, kind string, object client.Object) error {
		if controller := metav1.GetControllerOf(object); controller != nil {
			if _, own := owners[controller.UID]; own {
				return nil
			}
		}
		if _, own := owners[object.GetUID()]; own {
			return nil
		}
		uses, err := d.meter.uses(resource, object, limit)
		if amount := uses[name]; !amount.IsZero() {
			users = append(users, render.WhyUser{ObjectName: render.ObjectName{Kind: kind, Name: object.GetName()}, Used: amount})
		}
		return err
	}
	for i := range d.Pods {
		if err := add(corev1.Resource("pods"), "Pod", &d.Pods[i]); err != nil {
			return nil, err
		}
	}
	for i := range d.Claims {
		if err := add(corev1.Resource("persistentvolumeclaims"), "PersistentVolumeClaim", &d.Claims[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(users, func(a, b render.WhyUser) int {
		return cmp.Or(b.Used.Cmp(a.Used), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return users[:min(mostLargest, len(users))], nil
}

// isCount reports whether a resource is a number of objects, of which none uses more than another.
func isCount(name corev1.ResourceName) bool {
	return name == corev1.ResourcePods || strings.HasPrefix(string(name), "count/") ||
		strings.HasSuffix(string(name), string(corev1.ResourcePersistentVolumeClaims)) || strings.HasPrefix(string(name), "services")
}

func compareNames(a, b corev1.ResourceName) int { return cmp.Compare(a, b) }

// masked returns the amounts of the names that another list has.
func masked(amounts, names corev1.ResourceList) corev1.ResourceList {
	found := corev1.ResourceList{}
	for name := range names {
		if amount, ok := amounts[name]; ok {
			found[name] = amount
		}
	}
	return found
}

// amountsOf returns the amounts as texts, sorted.
func amountsOf(amounts corev1.ResourceList) []string {
	texts := make([]string, 0, len(amounts))
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		texts = append(texts, string(name)+": "+amount.String())
	}
	return texts
}
