// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// SurgeOf returns the surge of a quota: its spec, which is enforced before any status says so, and its holders. It is nil for
// a quota without surge.
func SurgeOf(quota *quotav1.ClusterResourceQuota) *quotav1.SurgeStatus {
	if len(quota.Spec.Surge.Hard) == 0 {
		return nil
	}
	found := &quotav1.SurgeStatus{Hard: quota.Spec.Surge.Hard}
	if known := quota.Status.Surge; known != nil {
		found.Used, found.Workloads = known.Used, known.Workloads
	}
	return found
}

// IsTaken reports whether any of the surge is taken.
func IsTaken(of *quotav1.SurgeStatus) bool { return of != nil && len(taken(of)) > 0 }

// taken returns the amounts of surge that are taken, without those of which none is.
func taken(of *quotav1.SurgeStatus) corev1.ResourceList {
	amounts := maps.Clone(of.Used)
	maps.DeleteFunc(amounts, func(_ corev1.ResourceName, amount resource.Quantity) bool { return amount.IsZero() })
	return amounts
}

// surgeLeft is the surge that can still be taken, never below zero.
func surgeLeft(of *quotav1.SurgeStatus, name corev1.ResourceName) resource.Quantity {
	return Figure{Used: of.Used[name], Hard: of.Hard[name]}.available()
}

func surgeTable(of *quotav1.SurgeStatus, style Style, headings ...string) *table {
	made := style.table(headings...)
	if of == nil {
		return made
	}
	for _, name := range slices.Sorted(maps.Keys(of.Hard)) {
		hard, left := of.Hard[name], surgeLeft(of, name)
		used, counted := of.Used[name]
		if !counted {
			made.add(plains(string(name), unknown, hard.String(), unknown)...)
			continue
		}
		text := style.cell(none, used.String())
		if !used.IsZero() {
			text = style.cell(yellow, used.String())
		}
		made.add(plain(string(name)), text, plain(hard.String()), plain(left.String()))
	}
	return made
}

// surgingTable has the workloads that hold surge, and for how long.
func surgingTable(workloads []quotav1.SurgingWorkload, style Style, now time.Time, headings ...string) *table {
	made := style.table(headings...)
	for _, workload := range workloads {
		made.add(plains(workload.Kind+"/"+workload.Name, workload.Namespace, age(workload.Since, now))...)
	}
	return made
}

// surgeText says in a line how much surge there is, how much of it is taken, and names its holders.
func surgeText(of *quotav1.SurgeStatus, othersKnown bool) string {
	text := report.Amounts(of.Hard) + " more for pods that replace others"
	amounts := taken(of)
	if len(amounts) == 0 {
		return text + "."
	}
	text += ", of which " + report.Amounts(amounts) + " is taken"
	names := make([]string, 0, len(of.Workloads))
	for _, workload := range of.Workloads {
		since := workload.Since.UTC().Format(time.RFC3339)
		names = append(names, fmt.Sprintf("%s %s/%s since %s", workload.Kind, workload.Namespace, workload.Name, since))
	}
	switch {
	case len(names) > 0:
		text += ", by " + strings.Join(names, ", ")
	case !othersKnown:
		text += ", by no workload of this namespace"
	}
	return text + "."
}

// hardText is a limit with its surge, as in "10 (+3, 2 taken)".
func hardText(f Figure, surge *quotav1.SurgeStatus) string {
	if surge == nil {
		return f.Hard.String()
	}
	most, ok := surge.Hard[f.Resource]
	if !ok {
		return f.Hard.String()
	}
	text := f.Hard.String() + " (+" + most.String()
	if used := surge.Used[f.Resource]; !used.IsZero() {
		text += ", " + used.String() + " taken"
	}
	return text + ")"
}
