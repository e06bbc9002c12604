// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// isRetried reports whether the operator tries again and again until something outside of it is mended.
func isRetried(unmet metav1.Condition) bool {
	switch unmet.Reason {
	case quotav1.ReasonLedgerUnavailable, quotav1.ReasonWebhookEdited, quotav1.ReasonProbeFailed, quotav1.ReasonNotWatchable:
		return true
	default:
		return false
	}
}

// progress returns Stalled if somebody must correct the spec, Reconciling if the spec isn't fully in force for another
// cause, and nil if it is. These two are what kstatus, and so Flux, goes by: it can't know the other conditions. It takes
// the first that it finds, so a quota has one of them at most. The three are how the spec comes into force; a quota whose
// limit is exceeded is in force.
func (f facts) progress(ready, enforced, unavailable metav1.Condition) *metav1.Condition {
	var unmet []metav1.Condition
	for _, one := range []metav1.Condition{ready, enforced} {
		if one.Status != metav1.ConditionTrue {
			unmet = append(unmet, one)
		}
	}
	if unavailable.Status != metav1.ConditionFalse {
		unmet = append(unmet, unavailable)
	}
	because := func(kind, reason string, one metav1.Condition) *metav1.Condition {
		message := fmt.Sprintf("%s is %s, %s: %s", one.Type, one.Status, one.Reason, one.Message)
		made := condition(kind, metav1.ConditionTrue, reason, message)
		return &made
	}
	switch trouble := slices.IndexFunc(unmet, isRetried); {
	case f.invalid != nil:
		return because(quotav1.ConditionStalled, quotav1.ReasonInvalidSpec, ready)
	case f.namesUnlimitable():
		return because(quotav1.ConditionStalled, quotav1.ReasonNotLimitable, unavailable)
	case trouble >= 0:
		return because(quotav1.ConditionReconciling, quotav1.ReasonProgressingWithRetry, unmet[trouble])
	case len(unmet) > 0:
		return because(quotav1.ConditionReconciling, quotav1.ReasonProgressing, unmet[0])
	default:
		return nil
	}
}

// namesUnlimitable reports whether the quota limits a name that Kubernetes keeps no quota on, or whose objects don't live
// in namespaces.
func (f facts) namesUnlimitable() bool {
	return len(f.unlimitable) > 0 ||
		slices.ContainsFunc(f.problems, func(problem Problem) bool { return problem.Reason == quotav1.ReasonNotLimitable })
}
