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

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

	// timeoutSeconds is how long the API server waits for an answer: the most that
	// it allows. A store that takes seconds for a write is waited for; a request
	// that is given up comes to its client as an error of the server.
	timeoutSeconds = 30
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

func (e Endpoint) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	if e.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(e.URL + path), CABundle: e.CABundle}
	}
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: e.Namespace, Name: e.Name, Path: ptr.To(path), Port: ptr.To[int32](443),
		},
		CABundle: e.CABundle,
	}
}

// Paths are the paths of the two endpoints.
type Paths struct{ Objects, Quotas string }

// Webhooks returns the entries that cover the limited resources everywhere but
// in the protected namespaces. With nothing limited, no object is asked about.
func Webhooks(
	endpoint Endpoint, paths Paths, limited []schema.GroupResource, protected []string,
) []admissionregistrationv1.ValidatingWebhook {
	webhooks := []admissionregistrationv1.ValidatingWebhook{
		webhook(QuotasWebhook, endpoint.clientConfig(paths.Quotas), nil, quotaRules()),
	}
	if rules := objectRules(limited); len(rules) > 0 {
		webhooks = append(webhooks,
			webhook(ObjectsWebhook, endpoint.clientConfig(paths.Objects), notIn(protected), rules))
	}
	return webhooks
}

func webhook(
	name string, client admissionregistrationv1.WebhookClientConfig, namespaces *metav1.LabelSelector,
	rules []admissionregistrationv1.RuleWithOperations,
) admissionregistrationv1.ValidatingWebhook {
	if namespaces == nil {
		namespaces = &metav1.LabelSelector{}
	}
	return admissionregistrationv1.ValidatingWebhook{
		Name:         name,
		ClientConfig: client,
		Rules:        rules,
		// A quota that fails open is not a quota.
		FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		// Objects written in another version than a rule names are converted.
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       namespaces,
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          ptr.To[int32](timeoutSeconds),
		AdmissionReviewVersions: []string{"v1"},
	}
}

func notIn(namespaces []string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: namespaces,
	}}}
}

func quotaRules() []admissionregistrationv1.RuleWithOperations {
	return []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{quotav1.GroupVersion.Group}, APIVersions: []string{quotav1.GroupVersion.Version},
			Resources: []string{"clusterresourcequotas"}, Scope: ptr.To(admissionregistrationv1.ClusterScope),
		},
	}}
}

func objectRules(limited []schema.GroupResource) []admissionregistrationv1.RuleWithOperations {
	sorted := slices.SortedFunc(slices.Values(limited), func(a, b schema.GroupResource) int {
		return cmp.Compare(a.String(), b.String())
	})
	var rules []admissionregistrationv1.RuleWithOperations
	for _, resource := range slices.Compact(sorted) {
		for _, rule := range evaluation.Rules(resource) {
			rules = append(rules, objectRule(resource, rule))
		}
	}
	return rules
}

func objectRule(resource schema.GroupResource, rule evaluation.Rule) admissionregistrationv1.RuleWithOperations {
	name := resource.Resource
	if rule.Subresource != "" {
		name += "/" + rule.Subresource
	}
	operations := make([]admissionregistrationv1.OperationType, 0, len(rule.Operations))
	for _, operation := range rule.Operations {
		operations = append(operations, admissionregistrationv1.OperationType(operation))
	}
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations,
		Rule: admissionregistrationv1.Rule{
			APIGroups: []string{resource.Group}, APIVersions: []string{version(resource)},
			Resources: []string{name}, Scope: ptr.To(admissionregistrationv1.NamespacedScope),
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
func Covers(webhooks []admissionregistrationv1.ValidatingWebhook, limited []schema.GroupResource) bool {
	var present []admissionregistrationv1.RuleWithOperations
	for _, webhook := range webhooks {
		if webhook.Name == ObjectsWebhook {
			present = webhook.Rules
		}
	}
	for _, needed := range objectRules(limited) {
		if !slices.ContainsFunc(present, func(rule admissionregistrationv1.RuleWithOperations) bool { return covers(rule, needed) }) {
			return false
		}
	}
	return true
}

func covers(rule, needed admissionregistrationv1.RuleWithOperations) bool {
	return slices.Equal(rule.APIGroups, needed.APIGroups) && slices.Equal(rule.APIVersions, needed.APIVersions) &&
		slices.Equal(rule.Resources, needed.Resources) && slices.Equal(rule.Operations, needed.Operations)
}
