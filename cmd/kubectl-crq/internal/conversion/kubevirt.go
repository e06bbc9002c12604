// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// machinesSuffix ends the names by which KubeVirt limits virtual machines apart from pods
	// (github.com/kubevirt/application-aware-quota, pkg/apis/core/v1alpha1/types.go).
	machinesSuffix = "/vmi"
	// countedMachines counts virtual machines that run by their own resource.
	countedMachines = corev1.ResourceName("count/virtualmachineinstances.kubevirt.io")
)

// convertKubeVirt converts KubeVirt's ApplicationAwareClusterResourceQuota, whose spec is that
// of OpenShift's ClusterResourceQuota, with limits on virtual machines besides.
func convertKubeVirt(object *Object, _ string, outcome *Outcome) error {
	quota, err := object.described(object.metadata("name"))
	if err != nil {
		return err
	}
	if err := object.take(&quota.Spec, "spec"); err != nil {
		return err
	}
	if len(quota.Spec.Selector.AnnotationSelector) > 0 {
		outcome.remark(annotationsAsked)
	}
	convertMachines(quota.Spec.Quota.Hard, outcome)
	outcome.remark(notGated)
	outcome.add(quota)
	return nil
}

// convertMachines replaces the limits on virtual machines. How many there may be is counted by
// their own resource; what they were asked to have isn't counted.
func convertMachines(hard corev1.ResourceList, outcome *Outcome) {
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		machines, limited := strings.CutSuffix(string(name), machinesSuffix)
		if !limited {
			continue
		}
		limit := hard[name]
		delete(hard, name)
		if strings.TrimPrefix(machines, "requests.") != "instances" {
			outcome.note(Lost, machinesNotCounted(name, limit.String()))
			continue
		}
		if counted, both := hard[countedMachines]; !both || limit.Cmp(counted) < 0 {
			hard[countedMachines] = limit
		}
		outcome.remark(machinesRenamed(name, limit.String()))
	}
}
