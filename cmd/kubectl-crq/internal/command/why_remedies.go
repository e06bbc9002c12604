// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// remedies say what would make it fit.
func (d *diagnosis) remedies(found *render.Why) []string {
	switch found.Cause {
	case render.QuotaShort, render.OtherRefused:
		return shortRemedies(found)
	case render.QuotaRefused:
		latest, _ := d.latest()
		return []string{refusedRemedy(d, latest)}
	case render.NotCounted:
		return d.unseenRemedies()
	default:
		return nil
	}
}

// unseenRemedies are for a quota that another operator's webhook may enforce.
func (d *diagnosis) unseenRemedies() []string {
	name, unseen := d.unseen()
	if !unseen || d.lacksQuotas() {
		return nil
	}
	return []string{"Ask an administrator who enforces quota " + name + ": it is no ResourceQuota of this namespace, " +
		"and no ClusterResourceQuota of this operator that covers it."}
}

func shortRemedies(found *render.Why) []string {
	var remedies []string
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		if !quota.IsShort() {
			continue
		}
		name, shared := quota.Shared()
		free := "Delete or shrink something in this namespace that uses " + strings.Join(shortAmounts(quota), ", ") + "."
		own := strings.TrimPrefix(quota.Quota, string(fitting.Native)+"/")
		raise := "Raise spec.hard of ResourceQuota " + own + ": " + raised(quota) + "."
		if shared {
			free = "Delete or shrink something in any namespace of the quota that uses " + strings.Join(shortAmounts(quota), ", ") + "."
			raise = "Ask an administrator to raise spec.quota.hard of ClusterResourceQuota " + name + ": " + raised(quota) + "."
		}
		remedies = append(remedies, free, raise)
	}
	if len(remedies) > 0 {
		remedies = append(remedies, kubectl(found.Namespace, "crq", "reclaim")+" lists what holds quota and does nothing.")
	}
	return remedies
}

// raised are the limits with which all would fit.
func raised(quota *render.WhyQuota) string {
	var parts []string
	for i := range quota.Rows {
		if row := &quota.Rows[i]; row.IsShort() {
			hard := row.Hard.DeepCopy()
			hard.Add(*row.Short)
			parts = append(parts, fmt.Sprintf("%s to %s", row.Resource, hard.String()))
		}
	}
	return strings.Join(parts, ", ")
}

func refusedRemedy(d *diagnosis, latest reading.Refused) string {
	reason := latest.Reason
	if len(d.all.Refusals) > 0 {
		reason = reading.ParseRefusal(d.all.Refusals[0].Message).Reason
	}
	switch reason {
	case quotav1.ReasonRequestIncomplete:
		return "State it in the pod template, or let a LimitRange in the namespace give it."
	case quotav1.ReasonTooMuchInDoubt:
		return "Find out what refuses objects after the quota admitted them, such as another webhook or a policy. " +
			"Then wait until their reservations have expired."
	case quotav1.ReasonUsageUnknown:
		return "Wait a moment. If it stays so, the conditions of the ClusterResourceQuota say why."
	default:
		return "Ask an administrator for a quota that covers it in this namespace."
	}
}
