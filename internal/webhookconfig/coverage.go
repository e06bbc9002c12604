// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// Coverage is how far a configuration asks about a quota's limits.
type Coverage int

const (
	// Missing: some request that the quota limits passes it by.
	Missing Coverage = iota
	// Wide: all are asked about, and others of the same resources too, in
	// namespaces that no quota selects.
	Wide
	// Exact: the only namespaces that are asked about for this quota are the ones
	// that it selects.
	Exact
)

// Coverages returns for each quota how far the configuration, as it is in the
// cluster, asks about its limits outside of the protected namespaces. An entry
// that was generated before the quota had its present spec doesn't count: a
// replica that is asked by it need not know the spec. Nor does an entry that lets
// requests pass without an answer, unless the quota does, too.
func (s Settings) Coverages(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quotas []Quota) []Coverage {
	// Read once: 500 quotas of 50 names each took 39 s with one look at the entries for each quota.
	var entries []asking
	for _, webhook := range configuration.Webhooks {
		if question, ours := s.isOurs(webhook); ours {
			entries = append(entries, asking{question, webhook.Rules, definition.WhereOf(webhook.NamespaceSelector)})
		}
	}
	isWide := configuration.Annotations[WideAnnotation] != ""
	coverages := make([]Coverage, 0, len(quotas))
	for _, quota := range quotas {
		coverages = append(coverages, s.coverage(entries, isWide, quota))
	}
	return coverages
}

// asking is an entry that enforces.
type asking struct {
	question Question
	rules    []rule
	where    definition.Where
}

func (s Settings) coverage(entries []asking, isWide bool, quota Quota) Coverage {
	needed := objectRules(quota.Limited)
	if len(needed) == 0 {
		return Exact
	}
	var where []definition.Where
	for _, entry := range entries {
		strict := quota.Admits || !entry.question.Admits
		if strict && entry.question.Epoch >= quota.Version && hasAll(entry.rules, needed) {
			where = append(where, entry.where)
		}
	}
	switch {
	case !definition.Covered(quota.Selector, s.Protected, where):
		return Missing
	case quota.Selector.HasAnnotations(), isWide:
		return Wide
	default:
		return Exact
	}
}

// isOurs reports whether an entry that enforces is as it was generated, but for
// its namespaces and rules: an edited entry may let requests pass. It returns the
// entry's question.
func (s Settings) isOurs(current admissionregistrationv1.ValidatingWebhook) (Question, bool) {
	if current.NamespaceSelector == nil || !IsOfObjects(current) {
		return Question{}, false
	}
	_, path, _ := strings.Cut(pathOf(current.ClientConfig), s.Paths.Objects+"/")
	question, err := ParseQuestion(path)
	if err != nil {
		return Question{}, false
	}
	s.Token, _ = tokenOf(current.ClientConfig) // any token will do: replicas go by the configuration
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

func hasAll(rules, needed []rule) bool {
	return !slices.ContainsFunc(needed, func(needed rule) bool {
		return !slices.ContainsFunc(rules, func(rule rule) bool { return apiequality.Semantic.DeepEqual(rule, needed) })
	})
}
