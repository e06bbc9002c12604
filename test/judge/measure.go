// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// record is what is kept of an object.
type record struct {
	evaluator quota.Evaluator
	// object is nil where it is only counted.
	object runtime.Object
	// usage is all that the object uses, whatever a quota limits.
	usage corev1.ResourceList
	// due is when usage has to be measured again; zero for never.
	due time.Time
}

// measures knows what objects use.
type measures struct {
	layout     layout
	evaluators map[schema.GroupResource]quota.Evaluator
}

func newMeasures(clock clock.Clock, layout layout) *measures {
	m := &measures{layout: layout, evaluators: map[schema.GroupResource]quota.Evaluator{}}
	isMeasured := func(resource schema.GroupVersionResource) bool { return resource.Resource != "resourceclaims" }
	all, err := core.NewEvaluators(nil, nil, isMeasured)
	if err != nil {
		panic(err) // only resource claims need anything that may fail
	}
	for _, evaluator := range append(all, core.NewPodEvaluator(nil, clock)) {
		m.evaluators[evaluator.GroupResource()] = evaluator
	}
	return m
}

func (m *measures) evaluator(resource schema.GroupResource) quota.Evaluator {
	if _, found := m.evaluators[resource]; !found {
		m.evaluators[resource] = generic.NewObjectCountEvaluator(resource, nil, "")
	}
	return m.evaluators[resource]
}

// record measures an object.
func (m *measures) record(resource schema.GroupResource, object runtime.Object) (*record, error) {
	r := &record{evaluator: m.evaluator(resource), object: object}
	if pod, isPod := object.(*corev1.Pod); isPod {
		r.due = endOfGrace(pod)
	}
	if err := r.measure(); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *record) measure() error {
	object := r.object
	if pod, isPod := object.(*corev1.Pod); isPod && pod.Spec.Resources != nil && pod.Spec.Overhead != nil {
		// Kubernetes 1.37 may add the overhead to the pod itself, again each time.
		object = pod.DeepCopy()
	}
	usage, err := r.evaluator.Usage(object)
	if err != nil {
		return fmt.Errorf("measuring: %w", err)
	}
	r.usage = usage
	return nil
}

// endOfGrace returns the last moment at which a pod that is being deleted may
// count; zero where it isn't. Whether it does count is upstream's to say.
func endOfGrace(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}
	}
	return pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
}

// counts tells whether everything that uses this resource is followed.
func (m *measures) counts(name corev1.ResourceName) bool {
	if strings.HasPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass) {
		return false // ResourceClaims use it, too.
	}
	for _, evaluator := range m.evaluators {
		if m.layout.follows(evaluator.GroupResource()) && len(evaluator.MatchingResources([]corev1.ResourceName{name})) > 0 {
			return true
		}
	}
	resource, isCount := strings.CutPrefix(string(name), "count/")
	return isCount && m.layout.follows(schema.ParseGroupResource(resource))
}
