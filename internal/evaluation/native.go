// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
)

// NativeRefusal is the error of a request that a ResourceQuota of its own namespace is
// going to refuse.
//
//nolint:errname // as for Refusal
type NativeRefusal struct {
	// Message is in the words of Kubernetes, as in
	// "exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2".
	Message string
}

// Error implements error.
func (r *NativeRefusal) Error() string { return r.Message }

// IsNativeRefusal reports whether a ResourceQuota of the request's namespace refuses it.
func IsNativeRefusal(err error) bool {
	_, ok := errors.AsType[*NativeRefusal](err)
	return ok
}

// CheckNative judges the request as the API server's own admission plugin is going to, which
// comes after all webhooks. It returns a *NativeRefusal if one of the namespace's
// ResourceQuotas refuses the request. Any other error means that this isn't known. Otherwise it returns the
// quotas as they are with the request.
func (e *Evaluators) CheckNative(a admission.Attributes, quotas []corev1.ResourceQuota) ([]corev1.ResourceQuota, error) {
	if len(quotas) == 0 {
		return quotas, nil
	}
	evaluator, err := e.charging(a)
	if err != nil {
		return nil, err
	}
	// Quantities beyond all bounds can't be counted with, and there the plugin
	// differs.
	if evaluator == nil || hasBeyond(a.GetObject()) || hasBeyond(a.GetOldObject()) {
		return quotas, nil
	}
	if pods, ok := evaluator.(podEvaluator); ok {
		pods.gullible = true
		evaluator = pods
	}
	with, err := resourcequota.CheckRequest(quotas, a, evaluator, nil)
	switch {
	case err == nil:
		return with, nil
	case apierrors.IsForbidden(err):
		return nil, &NativeRefusal{Message: reason(a, err)}
	default:
		return nil, fmt.Errorf("checking the ResourceQuotas of namespace %s: %w", a.GetNamespace(), err)
	}
}
