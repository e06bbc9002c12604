// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

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
