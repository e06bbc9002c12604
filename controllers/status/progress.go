// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// isRetried reports whether the operator tries again and again until something outside of it is mended.
func isRetried(unmet metav1.Condition) bool {
	switch unmet.Reason {
	case quotav1.ReasonLedgerUnavailable, quotav1.ReasonNotSettled, quotav1.ReasonWebhookEdited, quotav1.ReasonProbeFailed,
		quotav1.ReasonNotWatchable:
		return true
	default:
		return false
	}
}

// progress returns Stalled if an administrator must correct the spec, Reconciling if the spec isn't fully in force for
// another cause, and nil if it is. kstatus, and so Flux, goes by these two: it can't know the other conditions. It
// takes the first that it finds, so a quota has one of them at most. A quota whose limit is exceeded is in force.
func (f facts) progress(unmet []metav1.Condition) *metav1.Condition {
	because := func(kind, reason string, at int) *metav1.Condition {
		one := unmet[at]
		message := fmt.Sprintf("%s is %s, %s: %s", one.Type, one.Status, one.Reason, one.Message)
		made := typed(kind, decided(metav1.ConditionTrue, reason, message))
		return &made
	}
	switch trouble := slices.IndexFunc(unmet, isRetried); {
	case f.invalid != nil:
		return because(quotav1.ConditionStalled, quotav1.ReasonInvalidSpec, 0)
	case f.namesUnlimitable():
		return because(quotav1.ConditionStalled, quotav1.ReasonNotLimitable, slices.IndexFunc(unmet, isAboutResources))
	case trouble >= 0:
		return because(quotav1.ConditionReconciling, quotav1.ReasonProgressingWithRetry, trouble)
	case len(unmet) > 0:
		return because(quotav1.ConditionReconciling, quotav1.ReasonProgressing, 0)
	default:
		return nil
	}
}

func isAboutResources(unmet metav1.Condition) bool {
	return unmet.Type == quotav1.ConditionResourceUnavailable
}

// namesUnlimitable reports whether the quota limits a name that must be corrected, or whose objects don't live in
// namespaces.
func (f facts) namesUnlimitable() bool {
	return len(f.misnamed) > 0 ||
		slices.ContainsFunc(f.problems, func(problem Problem) bool { return problem.Reason == quotav1.ReasonNotLimitable })
}

// limitNothing notes the names that limit nothing: those that Kubernetes keeps no quota on, and those whose resources
// are not served in namespaces. If a name of the latter has a correction, that is said instead of the problem. Nothing
// waits for their count.
func (f *facts) limitNothing(
	tracked map[schema.GroupResource][]corev1.ResourceName, unlimitable []corev1.ResourceName, correction func(corev1.ResourceName) string,
) {
	f.idle = unlimitable
	for _, name := range unlimitable {
		f.misnamed = append(f.misnamed, evaluation.Misnomer{Name: name, Correction: correction(name)})
	}
	worst := f.worst(tracked)
	for _, name := range slices.Sorted(maps.Keys(worst)) {
		if worst[name] == "" {
			continue
		}
		f.idle = append(f.idle, name)
		if correct := correction(name); correct != "" && worst[name] == quotav1.ReasonNotServed {
			f.misnamed = append(f.misnamed, evaluation.Misnomer{Name: name, Correction: correct})
			f.problems = slices.DeleteFunc(f.problems, func(p Problem) bool { return slices.Contains(tracked[p.Resource], name) })
		}
	}
	f.uncounted = slices.DeleteFunc(f.uncounted, f.isIdle)
}

// worst returns, of each name, why none of its resources is served in namespaces; empty if one is.
func (f *facts) worst(tracked map[schema.GroupResource][]corev1.ResourceName) map[corev1.ResourceName]string {
	worst := map[corev1.ResourceName]string{}
	for resource, names := range tracked {
		at := slices.IndexFunc(f.problems, func(p Problem) bool { return p.Resource == resource })
		for _, name := range names {
			if before, more := worst[name]; at < 0 || f.problems[at].Reason == quotav1.ReasonNotWatchable || more && before == "" {
				worst[name] = ""
			} else if before != quotav1.ReasonNotLimitable {
				worst[name] = f.problems[at].Reason
			}
		}
	}
	return worst
}

func (f facts) isIdle(name corev1.ResourceName) bool { return slices.Contains(f.idle, name) }
