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
