// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// meter measures the use of limits by existing objects, as the operator counts them.
type meter struct {
	evaluators *evaluation.Evaluators
	now        time.Time
}

func newMeter(clock clock.Clock, surroundings fitting.Surroundings) meter {
	return meter{evaluators: evaluation.New(clock, evaluation.ClaimsBy(surroundings.DeviceClasses)), now: clock.Now()}
}

// uses returns the object's use of the limit, without zeros.
func (m meter) uses(resource schema.GroupResource, object client.Object, limit *fitting.Limit) (corev1.ResourceList, error) {
	footprint, err := m.evaluators.Footprint(resource, object)
	if err != nil {
		return nil, fmt.Errorf("measuring %s %s/%s: %w", resource, object.GetNamespace(), object.GetName(), err)
	}
	used, err := m.evaluators.Usage(resource, footprint, evaluation.Quota{Name: limit.Name, Spec: limit.Spec}, m.now)
	if err != nil {
		return nil, fmt.Errorf("charging quota %s: %w", limit.Name, err)
	}
	return quota.RemoveZeros(used), nil
}
