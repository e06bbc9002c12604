// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// surge is how much of a quota's surge is taken, and the workloads that took it.
type surge struct {
	// status is nil for a quota without surge.
	status *quotav1.SurgeStatus
	// active: more is used than hard, and surge explains it.
	active bool
}

// surgeOf returns that of a quota. Pods may be counted a moment before, or after, the ledger names their workloads.
func surgeOf(spec quotav1.ClusterResourceQuotaSpec, state ledger.State, used, reserved corev1.ResourceList) surge {
	if len(spec.Surge.Hard) == 0 {
		return surge{}
	}
	names := quota.Intersection(quota.ResourceNames(spec.Surge.Hard), quota.ResourceNames(used))
	taken := quota.Mask(quota.Add(used, reserved), names)
	status := &quotav1.SurgeStatus{
		Hard: spec.Surge.Hard,
		Used: quota.SubtractWithNonNegativeResult(taken, quota.Mask(spec.Quota.Hard, names)),
	}
	for _, surger := range state.Surgers {
		status.Workloads = append(status.Workloads, quotav1.SurgingWorkload{
			Kind: surger.Kind, Namespace: surger.Namespace, Name: surger.Name, Since: metav1.NewTime(surger.Since),
		})
	}
	slices.SortFunc(status.Workloads, func(a, b quotav1.SurgingWorkload) int {
		return cmp.Or(a.Since.Compare(b.Since.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	within, _ := quota.LessThanOrEqual(quota.Mask(used, quota.ResourceNames(spec.Quota.Hard)), definition.EnforcedLimits(spec).Most())
	return surge{status: status, active: within && len(status.Workloads) > 0 && definition.EnforcementOf(spec).Refuses()}
}

// in returns the status as a namespace may see it.
func (s surge) in(namespace string) *quotav1.SurgeStatus {
	if s.status == nil {
		return nil
	}
	seen := *s.status
	seen.Workloads = slices.DeleteFunc(slices.Clone(seen.Workloads), func(workload quotav1.SurgingWorkload) bool {
		return workload.Namespace != namespace
	})
	if len(seen.Workloads) == 0 {
		seen.Workloads = nil
	}
	return &seen
}

// ordinary returns the used amounts without surge, which is told apart.
func (s surge) ordinary(used, hard corev1.ResourceList) corev1.ResourceList {
	if !s.active {
		return used
	}
	least := maps.Clone(used)
	for name, limit := range hard {
		if amount, counted := used[name]; counted && amount.Cmp(limit) > 0 {
			least[name] = limit
		}
	}
	return least
}

// taken returns the amounts of surge that are taken; nil if none is.
func (s surge) taken() corev1.ResourceList {
	if !s.active {
		return nil
	}
	return quota.RemoveZeros(s.status.Used)
}

// namedSurgers is how many workloads a condition names.
const namedSurgers = 3

// workloads names the workloads that have taken surge, each with the time.
func (s surge) workloads() string {
	var named []string
	for _, workload := range s.status.Workloads[:min(namedSurgers, len(s.status.Workloads))] {
		named = append(named, outcomes.SurgesSince.Text(
			workload.Kind, workload.Namespace, workload.Name, workload.Since.UTC().Format(time.RFC3339)))
	}
	if more := len(s.status.Workloads) - len(named); more > 0 {
		named = append(named, outcomes.MoreSurge.Text(more))
	}
	return strings.Join(named, ", ")
}
