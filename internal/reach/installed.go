// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ReadSettings returns what a configuration shows of the Settings that it was made by: the failure policy, and the protected
// namespaces. Each entry for objects excludes these by their names, so without such an entry they aren't known. A
// namespace that all quotas exclude by its name is taken for a protected one.
func ReadSettings(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) (settings Settings, protectedKnown bool) {
	settings.FailurePolicy = admissionregistrationv1.Fail
	var asked []string
	for _, webhook := range configuration.Webhooks {
		switch {
		case webhook.Name == QuotasWebhook:
			settings.FailurePolicy = ptr.Deref(webhook.FailurePolicy, admissionregistrationv1.Fail)
		case IsOfObjects(webhook) && webhook.NamespaceSelector != nil:
			asked = append(asked, named(webhook.NamespaceSelector, metav1.LabelSelectorOpIn)...)
			excluded := named(webhook.NamespaceSelector, metav1.LabelSelectorOpNotIn)
			if len(excluded) == 0 {
				continue
			}
			if protectedKnown {
				excluded = slices.DeleteFunc(excluded, func(name string) bool { return !slices.Contains(settings.Protected, name) })
			}
			settings.Protected, protectedKnown = excluded, true
		}
	}
	settings.Protected = slices.DeleteFunc(settings.Protected, func(name string) bool { return slices.Contains(asked, name) })
	return settings, protectedKnown
}

// named returns the names of namespaces that a selector names with this operator.
func named(selector *metav1.LabelSelector, operator metav1.LabelSelectorOperator) []string {
	var names []string
	for _, requirement := range selector.MatchExpressions {
		if requirement.Key == corev1.LabelMetadataName && requirement.Operator == operator {
			names = append(names, requirement.Values...)
		}
	}
	return names
}
