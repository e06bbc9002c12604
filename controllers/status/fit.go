// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// maxSlices bounds what the slices of a status take as JSON, in bytes. With what else a
	// quota has, the object stays below the 1.5 MiB that etcd takes.
	maxSlices = 900 << 10
	// sliceBytes is what a slice takes besides its name and its lists, and entryBytes what an
	// entry of a list takes besides its name and its quantity.
	sliceBytes, entryBytes = 52, 6
)

// fit returns slices that can be stored. If they take too much, they lose the copy of hard; then
// what isn't used; and then the last ones lose all figures, so that their namespaces are still
// named.
func fit(all []quotav1.ResourceQuotaStatusByNamespace) []quotav1.ResourceQuotaStatusByNamespace {
	for _, smaller := range []func(corev1.ResourceQuotaStatus) corev1.ResourceQuotaStatus{withoutHard, withoutUnused} {
		if bytesOf(all) <= maxSlices {
			return all
		}
		for i := range all {
			all[i].Status = smaller(all[i].Status)
		}
	}
	left := maxSlices
	for i := range all {
		left -= sliceBytes + len(all[i].Namespace)
	}
	for i := range all {
		if left -= listBytes(all[i].Status.Used); left < 0 {
			all[i].Status = corev1.ResourceQuotaStatus{}
		}
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
