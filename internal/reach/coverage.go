/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package reach

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// Coverage is how far a configuration asks about what a quota limits.
type Coverage int

const (
	// Missing: some request that the quota limits passes it by.
	Missing Coverage = iota
	// Wide: all are asked about, and others of the same resources too, in
	// namespaces that no quota selects.
	Wide
	// Exact: no namespace is asked about for this quota but those that it selects.
	Exact
)

// Coverage tells how far the configuration, as it stands in the cluster, asks about
// what the quota limits outside of the protected namespaces.
func (s Settings) Coverage(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quota Quota) Coverage {
	needed := objectRules(quota.Limited)
	if len(needed) == 0 {
		return Exact
	}
	var asking []metav1.LabelSelector
	for _, webhook := range configuration.Webhooks {
		if !isOfObjects(webhook) || !s.isOurs(webhook) || !hasAll(webhook.Rules, needed) {
			continue
		}
		asking = append(asking, *webhook.NamespaceSelector)
	}
	switch {
	case !selection.Covered(quota.Selector, s.Protected, asking):
		return Missing
	case quota.Selector.HasAnnotations(), configuration.Annotations[WideAnnotation] != "":
		return Wide
	default:
		return Exact
	}
}

// isOurs tells whether an entry is as it was generated, but for where and about
// what it asks: one that somebody has edited may let requests pass.
func (s Settings) isOurs(is admissionregistrationv1.ValidatingWebhook) bool {
	if is.NamespaceSelector == nil {
		return false
	}
	wanted := s.webhook(is.Name, s.Paths.Objects, *is.NamespaceSelector, is.Rules)
	wanted.MatchConditions = matchConditions(is.Rules)
	wanted.ClientConfig.CABundle = is.ClientConfig.CABundle // they come and go, and fail closed
	return apiequality.Semantic.DeepEqual(is, wanted)
}

func hasAll(rules, needed []admissionregistrationv1.RuleWithOperations) bool {
	for _, rule := range needed {
		has := slices.ContainsFunc(rules, func(is admissionregistrationv1.RuleWithOperations) bool {
			return apiequality.Semantic.DeepEqual(is, rule)
		})
		if !has {
			return false
		}
	}
	return true
}
