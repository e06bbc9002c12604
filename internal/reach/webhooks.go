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
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

const (
	// ConfigurationName is the name of the ValidatingWebhookConfiguration.
	ConfigurationName = "shared-quota"
	// ObjectsWebhook is the entry that enforces quotas.
	ObjectsWebhook = "objects.quota.sharedquota.dev"
	// QuotasWebhook is the entry that validates ClusterResourceQuotas.
	QuotasWebhook = "quotas.quota.sharedquota.dev"

	// timeoutSeconds is how long the API server waits for an answer.
	timeoutSeconds = 10
)

// Endpoint is where the API server reaches the webhook.
type Endpoint struct {
	// URL is the base of both endpoints, without a path. Empty for a Service.
	URL string
	// Service is the namespace and name of the Service, where there is no URL.
	Namespace, Name string
	// CABundle is what the server's certificate is verified with, in PEM.
	CABundle []byte
}

func (e Endpoint) clientConfig(path string) admissionv1.WebhookClientConfig {
	if e.URL != "" {
		return admissionv1.WebhookClientConfig{URL: ptr.To(e.URL + path), CABundle: e.CABundle}
	}
	return admissionv1.WebhookClientConfig{
		Service: &admissionv1.ServiceReference{
			Namespace: e.Namespace, Name: e.Name, Path: ptr.To(path), Port: ptr.To[int32](443),
		},
		CABundle: e.CABundle,
	}
}

// Paths are the paths of the two endpoints.
type Paths struct{ Objects, Quotas string }

// Webhooks returns the entries that cover the limited resources everywhere but
// in the protected namespaces. With nothing limited, no object is asked about.
func Webhooks(endpoint Endpoint, paths Paths, limited []schema.GroupResource, protected []string) []admissionv1.ValidatingWebhook {
	webhooks := []admissionv1.ValidatingWebhook{
		webhook(QuotasWebhook, endpoint.clientConfig(paths.Quotas), nil, quotaRules()),
	}
	if rules := objectRules(limited); len(rules) > 0 {
		webhooks = append(webhooks,
			webhook(ObjectsWebhook, endpoint.clientConfig(paths.Objects), notIn(protected), rules))
	}
	return webhooks
}

func webhook(
	name string, client admissionv1.WebhookClientConfig, namespaces *metav1.LabelSelector,
	rules []admissionv1.RuleWithOperations,
) admissionv1.ValidatingWebhook {
	if namespaces == nil {
		namespaces = &metav1.LabelSelector{}
	}
	return admissionv1.ValidatingWebhook{
		Name:         name,
		ClientConfig: client,
		Rules:        rules,
		// A quota that fails open is not a quota.
		FailurePolicy: ptr.To(admissionv1.Fail),
		// Objects written in another version than a rule names are converted.
		MatchPolicy:             ptr.To(admissionv1.Equivalent),
		NamespaceSelector:       namespaces,
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func notIn(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: namespaces,
	}}}
}

func quotaRules() []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule: admissionv1.Rule{
			APIGroups: []string{quotav1.GroupVersion.Group}, APIVersions: []string{quotav1.GroupVersion.Version},
			Resources: []string{"clusterresourcequotas"}, Scope: ptr.To(admissionv1.ClusterScope),
		},
	}}
}

func objectRules(limited []schema.GroupResource) []admissionv1.RuleWithOperations {
	sorted := slices.SortedFunc(slices.Values(limited), func(a, b schema.GroupResource) int {
		return cmp.Compare(a.String(), b.String())
	})
	var rules []admissionv1.RuleWithOperations
	for _, resource := range slices.Compact(sorted) {
		for _, rule := range evaluation.Rules(resource) {
			rules = append(rules, objectRule(resource, rule))
		}
	}
	return rules
}

func objectRule(resource schema.GroupResource, rule evaluation.Rule) admissionv1.RuleWithOperations {
	name := resource.Resource
	if rule.Subresource != "" {
		name += "/" + rule.Subresource
	}
	var operations []admissionv1.OperationType
	for _, operation := range rule.Operations {
		operations = append(operations, admissionv1.OperationType(operation))
	}
	return admissionv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{version(resource)},
			Resources: []string{name}, Scope: ptr.To(admissionv1.NamespacedScope),
		},
	}
}

// version is the one that the evaluators read, which the API server converts
// to. A count takes any, even of a resource that the cluster doesn't serve yet.
func version(resource schema.GroupResource) string {
	if evaluation.NeedsObject(resource) {
		return "v1"
	}
	return "*"
}

// Covers tells whether the entries ask about everything that charges one of
// the limited resources.
func Covers(webhooks []admissionv1.ValidatingWebhook, limited []schema.GroupResource) bool {
	var present []admissionv1.RuleWithOperations
	for _, webhook := range webhooks {
		if webhook.Name == ObjectsWebhook {
			present = webhook.Rules
		}
	}
	for _, needed := range objectRules(limited) {
		if !slices.ContainsFunc(present, func(rule admissionv1.RuleWithOperations) bool { return covers(rule, needed) }) {
			return false
		}
	}
	return true
}

func covers(rule, needed admissionv1.RuleWithOperations) bool {
	return slices.Equal(rule.APIGroups, needed.APIGroups) && slices.Equal(rule.APIVersions, needed.APIVersions) &&
		slices.Equal(rule.Resources, needed.Resources) && slices.Equal(rule.Operations, needed.Operations)
}
