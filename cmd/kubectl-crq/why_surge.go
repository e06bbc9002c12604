// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// replacing reports whether the missing pods replace others, so that they may take surge of a quota: if all of them do that a
// rollout still makes, or if the quota has said so in a refusal.
func (d *diagnosis) replacing(limit *fitting.Limit) bool {
	if limit.Surge == nil {
		return false
	}
	if d.replaces() && d.demand.Pods.Unavailable == 0 && !d.grows(limit) {
		return true
	}
	for _, refused := range slices.Concat(d.refused...) {
		if len(refused.Surge) > 0 && d.isBy(limit, refused.Words) {
			return true
		}
	}
	return false
}

// grows reports whether the missing pods get no surge of a quota because they are larger than the ones that they replace.
func (d *diagnosis) grows(limit *fitting.Limit) bool {
	return slices.ContainsFunc(d.all.Rows, func(row fitting.Row) bool {
		return row.Surge == fitting.SurgeGrows && row.Limit.Name == limit.Name && row.Limit.Source == limit.Source
	})
}

// judged returns a row of the verdict, which knows how much may take surge.
func (d *diagnosis) judged(limit *fitting.Limit, row fitting.Row) render.WhyRow {
	made := d.row(limit, row.Resource, d.nextOf(limit, row.Resource), row.Requested)
	if limit.Surge != nil && row.Counted {
		made.Short = &row.Shortfall
	}
	return made
}

// surge returns that of a quota, with the workloads of the namespace that hold it, if it has to do with the missing objects: if
// they may take it, or if others hold it; nil if not.
func (d *diagnosis) surge(limit *fitting.Limit) *quotav1.SurgeStatus {
	for i := range d.Limits.Views {
		view := &d.Limits.Views[i]
		if limit.Source == fitting.Shared && view.Name == limit.Name && view.Status.Surge != nil &&
			(d.replacing(limit) || d.grows(limit) || render.IsTaken(view.Status.Surge)) {
			return view.Status.Surge.DeepCopy()
		}
	}
	return nil
}

// surgeShort returns the resources that a quota with surge is short of, of which it has surge.
func surgeShort(quota *render.WhyQuota) (names []corev1.ResourceName) {
	if quota.Surge == nil {
		return nil
	}
	for i := range quota.Rows {
		row := &quota.Rows[i]
		if _, ok := quota.Surge.Hard[row.Resource]; ok && row.IsShort() {
			names = append(names, row.Resource)
		}
	}
	return names
}

// surgeAmounts returns those of some resources, as in "pods: 1".
func surgeAmounts(list corev1.ResourceList, names []corev1.ResourceName) string {
	chosen := corev1.ResourceList{}
	for _, name := range names {
		chosen[name] = list[name]
	}
	return report.Amounts(chosen)
}

// surgeSays tells the part of surge in a shortage; empty for none.
func (d *diagnosis) surgeSays(found *render.Why) string {
	var says strings.Builder
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		names := surgeShort(quota)
		if len(names) == 0 {
			continue
		}
		taken, surge := surgeAmounts(quota.Surge.Used, names), surgeAmounts(quota.Surge.Hard, names)
		switch {
		case d.grows(d.limitOf(quota)):
			says.WriteString(" Its pods ask for more than those that they replace, or have other claims, so that they get no surge.")
		case d.replacing(d.limitOf(quota)) && render.IsTaken(quota.Surge):
			says.WriteString(" Its pods replace others, and of the surge for that, " + surge + ", this is taken: " + taken + ".")
		case d.replacing(d.limitOf(quota)):
			says.WriteString(" Its pods replace others, and the surge for that, " + surge + ", is less than they need.")
		default:
			says.WriteString(" Surge of " + quota.Quota + " is taken (" + taken + "), and nothing else that takes any is admitted until " +
				"it has been given back.")
		}
	}
	return says.String()
}

func (d *diagnosis) limitOf(quota *render.WhyQuota) *fitting.Limit {
	return &d.limits[slices.IndexFunc(d.limits, func(limit fitting.Limit) bool { return quotaName(&limit) == quota.Quota })]
}

// surgeRemedies name the rollouts to end, and the surge to raise.
func (d *diagnosis) surgeRemedies(found *render.Why) []string {
	var remedies []string
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		names := surgeShort(quota)
		if len(names) == 0 {
			continue
		}
		name, _ := quota.Shared()
		if render.IsTaken(quota.Surge) {
			remedies = append(remedies, d.endRollouts(name, quota.Surge.Workloads)...)
		}
		if d.replacing(d.limitOf(quota)) {
			raised := corev1.ResourceList{}
			for k := range quota.Rows {
				if row := &quota.Rows[k]; slices.Contains(names, row.Resource) {
					amount := quota.Surge.Hard[row.Resource].DeepCopy()
					amount.Add(*row.Short)
					raised[row.Resource] = amount
				}
			}
			remedies = append(remedies, "Ask an administrator to raise spec.surge.hard of ClusterResourceQuota "+name+" to "+
				report.Amounts(raised)+".")
		}
	}
	return remedies
}

// endRollouts are remedies for surge that these workloads of the namespace hold, and others in namespaces that aren't known
// here.
func (d *diagnosis) endRollouts(quota string, workloads []quotav1.SurgingWorkload) []string {
	var remedies []string
	for _, workload := range workloads {
		name := render.ObjectName{Kind: workload.Kind, Name: workload.Name}
		text := "Wait until " + name.String() + ", which holds surge, has replaced its pods"
		if workload.Kind == "Deployment" || workload.Kind == "DaemonSet" {
			text += ", or undo that: " + kubectl(workload.Namespace, "rollout", "undo", strings.ToLower(name.String()))
		}
		remedies = append(remedies, text+".")
	}
	if len(remedies) == 0 {
		remedies = append(remedies, "Wait until rollouts in other namespaces have ended, or ask those who may read the quota for their "+
			"names: kubectl crq describe "+quota+".")
	}
	return remedies
}
