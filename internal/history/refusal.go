// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Refusal is a request that didn't fit, or didn't say how much it asks for, whether it was refused or admitted.
type Refusal struct {
	// Quota is the name of the quota, and UID its UID.
	Quota string
	UID   types.UID
	// Tried: the limits are those of spec.trial. Trial are all of these then.
	Tried bool
	Trial corev1.ResourceList
	// Namespace of the request. Kind and Name are of the workload that controls the object; empty if there is none.
	Namespace, Kind, Name string
	// Needed is what would have been used and reserved with the request, of each resource that it didn't fit
	// for. Resources of which it didn't say how much it asks for are missing here.
	Needed corev1.ResourceList
	// Hard are the limits that it didn't fit into.
	Hard corev1.ResourceList
	// Missing are the resources of which it didn't say how much it asks for.
	Missing []corev1.ResourceName
}
