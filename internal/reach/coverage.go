// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

// Coverage tells how far the configuration, as it is in the cluster, asks about
// what the quota limits outside of the protected namespaces. An entry that was
// generated before the quota had its present spec doesn't count: a replica that is
// asked by it need not know the spec. Nor does one that lets requests pass without an
// answer, unless the quota does, too.
func (s Settings) Coverage(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quota Quota) Coverage {
	needed := objectRules(quota.Limited)
	if len(needed) == 0 {
		return Exact
	}
	var asking []metav1.LabelSelector
	for _, webhook := range s.asking(configuration, quota, needed) {
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

// asking are the entries that ask about what the quota limits, by rules that its limits
// need, in some namespaces.
func (s Settings) asking(
	configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quota Quota, needed []admissionregistrationv1.RuleWithOperations,
) []admissionregistrationv1.ValidatingWebhook {
	var asking []admissionregistrationv1.ValidatingWebhook
	for _, webhook := range configuration.Webhooks {
		question, ours := s.isOurs(webhook)
		strict := quota.Admits || !question.Admits
		if ours && strict && question.Epoch >= quota.Version && hasAll(webhook.Rules, needed) {
			asking = append(asking, webhook)
		}
	}
	return asking
}

// isOurs reports whether an entry that enforces is as it was generated, but for where
// and about what it asks: one that somebody has edited may let requests pass. It
// returns the entry's question.
func (s Settings) isOurs(current admissionregistrationv1.ValidatingWebhook) (Question, bool) {
	if current.NamespaceSelector == nil || !IsOfObjects(current) {
		return Question{}, false
	}
	_, path, _ := strings.Cut(pathOf(current.ClientConfig), s.Paths.Objects+"/")
	question, err := ParseQuestion(path)
	if err != nil {
		return Question{}, false
	}
	s.Token, _ = tokenOf(current.ClientConfig) // whichever it is, replicas go by the configuration
	wanted := s.objectsWebhook(current.Name, question, *current.NamespaceSelector, current.Rules)
	wanted.ClientConfig.CABundle = current.ClientConfig.CABundle // they come and go, and fail closed
	return question, apiequality.Semantic.DeepEqual(current, wanted)
}

// pathOf returns the path at which an entry is called, after the base of a URL.
func pathOf(called admissionregistrationv1.WebhookClientConfig) string {
	if called.Service != nil {
		return ptr.Deref(called.Service.Path, "")
	}
	return ptr.Deref(called.URL, "")
}

func hasAll(rules, needed []admissionregistrationv1.RuleWithOperations) bool {
	for _, rule := range needed {
		has := slices.ContainsFunc(rules, func(current admissionregistrationv1.RuleWithOperations) bool {
			return apiequality.Semantic.DeepEqual(current, rule)
		})
		if !has {
			return false
		}
	}
	return true
}
