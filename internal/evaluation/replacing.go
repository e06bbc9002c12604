// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
)

// TakesNoMore reports whether a pod takes no more of anything than another one does now, and has the same claims. Only such a
// pod may take surge while it replaces the other one: otherwise more would be used in the end.
func TakesNoMore(clock clock.Clock, pod, than *corev1.Pod) (bool, error) {
	evaluator := newPodEvaluator(clock)
	takes, err := evaluator.Usage(pod)
	most, thanErr := evaluator.Usage(than)
	if err := errors.Join(err, thanErr); err != nil {
		return false, fmt.Errorf("comparing pod %s with %s: %w", pod.Name, than.Name, err)
	}
	for name, amount := range takes {
		if amount.Cmp(most[name]) > 0 {
			return false, nil
		}
	}
	return apiequality.Semantic.DeepEqual(claimed(pod), claimed(than)), nil
}

// claimed has the volumes and devices that claims are made for.
func claimed(pod *corev1.Pod) corev1.PodSpec {
	isOther := func(volume corev1.Volume) bool { return volume.Ephemeral == nil }
	return corev1.PodSpec{ResourceClaims: pod.Spec.ResourceClaims, Volumes: slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), isOther)}
}
