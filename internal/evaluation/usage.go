// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Usage returns what an object with this footprint uses of the quota at a
// moment: only names that the quota limits, nothing if the quota's scopes leave
// the object out.
//
// An error means that nobody can tell whether they do. What is returned with it
// is what the object uses if they don't: counted so, it makes no room.
func (e *Evaluators) Usage(resource schema.GroupResource, f Footprint, q Quota, now time.Time) (corev1.ResourceList, error) {
	evaluator := e.evaluator(resource)
	if evaluator == nil || f.usage == nil {
		return corev1.ResourceList{}, nil
	}
	if claims := f.facts.Value().claims; claims != nil {
		evaluator = claims
	}
	matches, err := evaluator.Matches(countedQuota(q), f.standIn(resource, q.Spec))
	if err != nil {
		err = fmt.Errorf("matching %s with quota %s: %w", resource, q.Name, err)
	}
	if err == nil && !matches {
		return corev1.ResourceList{}, nil
	}
	return f.At(now).usage.masked(q.Spec.Hard), err
}

// countedQuota returns the quota in the form that evaluators match. They read
// the names that it limits from its status.
func countedQuota(q Quota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{Spec: q.Spec, Status: corev1.ResourceQuotaStatus{Hard: q.Spec.Hard}}
}

// standIn returns an object that has the same scopes as the one the footprint
// was taken of, or nil where the quota has no scopes to match.
func (f Footprint) standIn(resource schema.GroupResource, spec corev1.ResourceQuotaSpec) runtime.Object {
	if len(spec.Scopes) == 0 && spec.ScopeSelector == nil {
		return nil
	}
	return f.facts.Value().standIn(neededObject(resource))
}
