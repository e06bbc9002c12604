// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// totals are the figures that all views of a quota share.
type totals struct{ used, reserved corev1.ResourceList }

func (t totals) equal(other totals) bool {
	return quota.Equals(t.used, other.used) && quota.Equals(t.reserved, other.reserved)
}

// figures are the figures that the views of one quota are made of.
type figures struct {
	// selection is zero as long as it isn't known which namespaces are selected.
	selection uint64
	// counted reports whether there is anything to show: a count that has only
	// begun, as a new leader's, would take back the views' figures.
	counted bool
	totals  totals
	surge   surge
	// complete are the resources that have been counted.
	complete []corev1.ResourceName
	// namespace name -> used
	slices map[string]corev1.ResourceList
	// namespace name -> the workloads that wait there, the longest-waiting first
	waiting map[string][]waiting.Record
	// woken: these are woken when there is room.
	woken bool
	// protected are the namespaces that no quota limits.
	protected []string
}

// figures returns those of the quota as it is now: the same that its status shows.
func (c *ViewController) figures(object *quotav1.ClusterResourceQuota) figures {
	state, degraded := c.Group.Current(object.Name), len(c.Problems(object.Name)) > 0
	read := counting.BalanceOf(c.Count, object.Name, object.UID, state)
	ready := len(read.Complete) == len(read.Target.Sources) || degraded
	// A count may still be for an older spec.
	limited := quota.ResourceNames(object.Spec.Quota.Hard)
	complete := slices.DeleteFunc(slices.Clone(read.Complete), func(name corev1.ResourceName) bool {
		return !slices.Contains(limited, name)
	})
	shared := totals{used: quota.Mask(read.Used, complete), reserved: quota.Mask(read.Reserved, limited)}
	return figures{
		selection: read.Selection, complete: complete, slices: read.Slices,
		counted: ready && state.Quota == object.UID,
		totals:  shared, surge: surgeOf(object.Spec, state, shared.used, shared.reserved),
		waiting: byNamespace(c.Waiting.Waiting(object.Name)), woken: c.WakeOwners, protected: c.Settings().Protected,
	}
}

// modeOf returns the mode that a view shows; empty if the quota refuses.
func modeOf(spec quotav1.ClusterResourceQuotaSpec) quotav1.EnforcementMode {
	if enforcement := definition.EnforcementOf(spec); !enforcement.Refuses() {
		return enforcement.Mode
	}
	return ""
}

// views returns the status of the view in each selected namespace.
func (f figures) views(object *quotav1.ClusterResourceQuota) map[string]quotav1.LocalResourceQuotaStatus {
	spec := object.Spec.Quota
	common := quotav1.LocalResourceQuotaStatus{
		Total:           corev1.ResourceQuotaStatus{Hard: spec.Hard, Used: f.totals.used},
		Reserved:        f.totals.reserved,
		Available:       report.Available(spec.Hard, f.totals.used, f.totals.reserved),
		Mode:            modeOf(object.Spec),
		Scopes:          spec.Scopes,
		ScopeSelector:   spec.ScopeSelector,
		Summary:         report.Summary(f.totals.used, spec.Hard),
		ReservedSummary: report.Amounts(f.totals.reserved),
		ScopeSummary:    report.Scopes(spec.Scopes, spec.ScopeSelector),
	}
	views := make(map[string]quotav1.LocalResourceQuotaStatus, len(f.slices))
	for namespace, used := range f.slices {
		view := common
		view.Used, view.Protected = quota.Mask(used, f.complete), slices.Contains(f.protected, namespace)
		view.UsedSummary = report.Amounts(view.Used)
		view.Surge = f.surge.in(namespace)
		view.Waiting, view.Conditions = waitingIn(f.waiting[namespace], f.woken)
		views[namespace] = view
	}
	return views
}
