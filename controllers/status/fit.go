// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// maxSlices bounds the size of a status's slices as JSON, in bytes. With the
	// other fields of a quota, the object stays below the 1.5 MiB that etcd
	// takes.
	maxSlices = 900 << 10
	// usualSelector is the size of a selector that leaves room for these. Each byte more is one less for slices.
	usualSelector = 256 << 10
	// maxSelector is how much of the text of a selector is shown.
	maxSelector = 1 << 10
	// sliceBytes is the size of a slice without its name and its lists, and entryBytes the size of a list's entry
	// without its name and its quantity.
	sliceBytes, entryBytes = 52, 6
)

// roomBeside returns the bytes that a selector leaves for slices.
func roomBeside(selector quotav1.ClusterResourceQuotaSelector) int {
	text, _ := json.Marshal(selector) //nolint:errchkjson // it has been read from JSON
	return maxSlices - max(0, len(text)-usualSelector)
}

// fit returns slices that take no more bytes than are left. If they take too much, they lose the copy of hard; then
// unused resources; then the last ones lose all figures, so that their namespaces are still named; and then the last
// ones are left out.
func fit(all []quotav1.ResourceQuotaStatusByNamespace, left int) []quotav1.ResourceQuotaStatusByNamespace {
	for _, smaller := range []func(corev1.ResourceQuotaStatus) corev1.ResourceQuotaStatus{withoutHard, withoutUnused} {
		if bytesOf(all) <= left {
			return all
		}
		for i := range all {
			all[i].Status = smaller(all[i].Status)
		}
	}
	for i := range all {
		if left -= sliceBytes + len(all[i].Namespace); left < 0 {
			return withoutFigures(all[:i])
		}
	}
	for i := range all {
		if left -= listBytes(all[i].Status.Used); left < 0 {
			all[i].Status = corev1.ResourceQuotaStatus{}
		}
	}
	return all
}

func withoutFigures(all []quotav1.ResourceQuotaStatusByNamespace) []quotav1.ResourceQuotaStatusByNamespace {
	for i := range all {
		all[i].Status = corev1.ResourceQuotaStatus{}
	}
	return all
}

func withoutHard(status corev1.ResourceQuotaStatus) corev1.ResourceQuotaStatus {
	return corev1.ResourceQuotaStatus{Used: status.Used}
}

func withoutUnused(status corev1.ResourceQuotaStatus) corev1.ResourceQuotaStatus {
	used := maps.Clone(status.Used)
	maps.DeleteFunc(used, func(_ corev1.ResourceName, amount resource.Quantity) bool { return amount.IsZero() })
	return corev1.ResourceQuotaStatus{Used: used}
}

func bytesOf(all []quotav1.ResourceQuotaStatusByNamespace) int {
	sum := 0
	for i := range all {
		sum += sliceBytes + len(all[i].Namespace) + listBytes(all[i].Status.Hard) + listBytes(all[i].Status.Used)
	}
	return sum
}

func listBytes(list corev1.ResourceList) int {
	sum := 0
	for name, amount := range list {
		sum += entryBytes + len(name) + len(amount.String())
	}
	return sum
}

// shortened returns the text of a selector for a column of a table. A long one would take as much as the selector itself.
func shortened(selector string) string {
	if len(selector) <= maxSelector {
		return selector
	}
	return strings.ToValidUTF8(selector[:maxSelector], "") + "..."
}
