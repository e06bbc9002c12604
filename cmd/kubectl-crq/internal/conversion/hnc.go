// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// treeLabelSuffix ends the label that HNC gives to a namespace and all below it:
// NAMESPACE.tree.hnc.x-k8s.io/depth.
const treeLabelSuffix = ".tree.hnc.x-k8s.io/depth"

// convertHNC converts HNC's HierarchicalResourceQuota, which has limits and
// nothing else (sigs.k8s.io/hierarchical-namespaces v1.1.0,
// api/v1alpha2/hierarchicalresourcequota_types.go). Its name is unique in its
// namespace only, so the quota's begins with that.
func convertHNC(object *Object, defaultNamespace string, outcome *Outcome) error {
	namespace := object.metadata("namespace")
	if namespace == "" {
		namespace = defaultNamespace
	}
	if namespace == "" {
		return errors.New(withoutNamespace)
	}
	quota, err := object.described(namespace + "-" + object.metadata("name"))
	if err != nil {
		return err
	}
	if err := object.take(&quota.Spec.Quota.Hard, "spec", "hard"); err != nil {
		return err
	}
	object.ignore("metadata.namespace")
	quota.Spec.Selector = quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: namespace + treeLabelSuffix, Operator: metav1.LabelSelectorOpExists},
		},
	}}
	outcome.remark(hncLabelsStop(namespace))
	outcome.add(quota)
	return nil
}
