// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// checkLimitedScopes returns an error where the scopes that are limited by
// default can't be matched with the object. Upstream passes over that error, and
// with it over all quotas.
func (e *Evaluators) checkLimitedScopes(a admission.Attributes, evaluator quota.Evaluator) error {
	for _, limited := range e.limited {
		if _, err := evaluator.MatchingScopes(a.GetObject(), limited.MatchScopes); err != nil {
			return fmt.Errorf("matching what is limited by default with %s: %w", a.GetResource().GroupResource(), err)
		}
	}
	return nil
}

// isUncovered reports whether a request that failed does so only for want of a
// quota: without limits by default it wouldn't. Upstream's errors don't tell. One
// of the two isn't even a refusal by its type.
func (e *Evaluators) isUncovered(quotas []corev1.ResourceQuota, a admission.Attributes, evaluator quota.Evaluator) bool {
	if len(e.limited) == 0 {
		return false
	}
	_, err := resourcequota.CheckRequest(quotas, a, evaluator, nil)
	return err == nil
}
