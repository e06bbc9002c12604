// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	corev1 "k8s.io/api/core/v1"
)

// What OpenShift counts under a name of its own, and Kubernetes by its resource.
const (
	openShiftImageStreams = corev1.ResourceName("openshift.io/imagestreams")
	countedImageStreams   = corev1.ResourceName("count/imagestreams.image.openshift.io")
)

// convertOpenShift converts OpenShift's ClusterResourceQuota, whose spec has the
// same fields (github.com/openshift/api, quota/v1/types.go, from v3.9.0 to 2026).
func convertOpenShift(object *Object, _ string, outcome *Outcome) error {
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
	hard := quota.Spec.Quota.Hard
	if limit, limited := hard[openShiftImageStreams]; limited {
		delete(hard, openShiftImageStreams)
		if counted, both := hard[countedImageStreams]; !both || limit.Cmp(counted) < 0 {
			hard[countedImageStreams] = limit
		}
		outcome.remark(imageStreamsRenamed(limit.String()))
	}
	outcome.add(quota)
	return nil
}
