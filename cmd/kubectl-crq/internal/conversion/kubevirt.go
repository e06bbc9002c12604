// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// machineInstances, machineCPU and machineMemory are the names by which KubeVirt limits virtual machines apart from
	// pods (github.com/kubevirt/application-aware-quota, pkg/apis/core/v1alpha1/types.go). It writes requests. before
	// them; some of its users leave that out.
	machineInstances = "instances/vmi"
	machineCPU       = "cpu/vmi"
	machineMemory    = "memory/vmi"
	// countedMachines counts virtual machines that run by their own resource.
	countedMachines = corev1.ResourceName("count/virtualmachineinstances.kubevirt.io")
)

// convertKubeVirt converts KubeVirt's ApplicationAwareClusterResourceQuota, whose spec is that
// of OpenShift's ClusterResourceQuota, with limits on virtual machines besides.
func convertKubeVirt(object *Object, _ string, outcome *Outcome) error {
	quota, err := object.withSpec(outcome)
	if err != nil {
		return err
	}
	convertMachines(&quota.Spec.Quota, outcome)
	outcome.remark(notGated)
	outcome.add(quota)
	return nil
}

// convertMachines replaces the limits on virtual machines. How many there may be is counted by
// their own resource; what they were asked to have isn't counted.
func convertMachines(spec *quotav1.ResourceQuotaSpec, outcome *Outcome) {
	for _, name := range slices.Sorted(maps.Keys(spec.Hard)) {
		limit := spec.Hard[name]
		switch strings.TrimPrefix(string(name), "requests.") {
		case machineInstances:
			countInstead(spec, name, countedMachines, outcome, "KubeVirt")
		case machineCPU, machineMemory:
			delete(spec.Hard, name)
			outcome.note(Lost, machinesNotCounted(name, limit.String()))
		}
	}
}

// countInstead replaces a limit by a count of the resource. A quota with scopes counts only what can be in a scope.
func countInstead(spec *quotav1.ResourceQuotaSpec, name, counted corev1.ResourceName, outcome *Outcome, peer string) {
	limit := spec.Hard[name]
	delete(spec.Hard, name)
	if len(spec.Scopes) > 0 || spec.ScopeSelector != nil {
		outcome.note(Lost, neverInScope(name, limit.String(), counted))
		return
	}
	if other, both := spec.Hard[counted]; !both || limit.Cmp(other) < 0 {
		spec.Hard[counted] = limit
	}
	outcome.remark(renamed(name, limit.String(), peer, counted))
}
