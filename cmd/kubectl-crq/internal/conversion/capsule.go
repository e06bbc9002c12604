// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	// tenantLabel has the name of a Tenant, on each of its namespaces.
	tenantLabel = "capsule.clastix.io/tenant"
	// tenantCounts begins the annotations of a Tenant that limit how many objects of a resource it may have, as in
	// quota.resources.capsule.clastix.io/mysqls.databases.acme.corp_v1: "3".
	tenantCounts = "quota.resources.capsule.clastix.io/"
)

// tenantSpec is the part of a Tenant's spec about quotas (github.com/projectcapsule/capsule, pkg/api/resource_quota.go,
// in v1beta1 and v1beta2 alike; rules: v0.14.0, pkg/api/rules/rule_body_types.go and resource_quota_types.go).
type tenantSpec struct {
	ResourceQuotas struct {
		Scope string                     `json:"scope"`
		Items []corev1.ResourceQuotaSpec `json:"items"`
	} `json:"resourceQuotas"`
	Rules []struct {
		NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector"`
		Quota             []struct {
			corev1.ResourceQuotaSpec `json:",inline"`
			Name                     string `json:"name"`
		} `json:"quota"`
	} `json:"rules"`
	NamespaceOptions struct {
		Quota json.RawMessage `json:"quota"`
	} `json:"namespaceOptions"`
}

// convertTenant converts each item of a Tenant's quotas into a quota of its own,
// with the index in its name as Capsule has it in that of its ResourceQuotas; those of its rules, with the name and the
// selector of the GlobalResourceQuota that Capsule makes of it; and the limits in its annotations into one more.
func convertTenant(object *Object, outcome *Outcome) error {
	var spec tenantSpec
	if err := object.decode("spec", &spec); err != nil {
		return err
	}
	switch items := spec.ResourceQuotas.Items; spec.ResourceQuotas.Scope {
	case "", "Tenant":
		for i, item := range items {
			outcome.add(tenantQuota(object, strconv.Itoa(i), item))
		}
	case "Namespace":
		outcome.note(Lost, outcomes.NamespaceAlone.Text(len(items), tenantLabel, object.metadata.Name))
	default:
		return outcomes.UnknownScope.Err(spec.ResourceQuotas.Scope)
	}
	addTenantRules(object, &spec, outcome)
	if spec.NamespaceOptions.Quota != nil {
		object.unknown = append(object.unknown, "spec.namespaceOptions.quota")
	}
	addTenantCounts(object, outcome)
	if len(outcome.Manifests) > 0 {
		outcome.note(Remark, outcomes.CapsuleLabels.Text(tenantLabel, object.metadata.Name))
	}
	return nil
}

// addTenantRules adds the quotas of a Tenant's rules.
func addTenantRules(object *Object, spec *tenantSpec, outcome *Outcome) {
	for _, rule := range spec.Rules {
		for _, item := range rule.Quota {
			quota := tenantQuota(object, item.Name, item.ResourceQuotaSpec)
			if rule.NamespaceSelector != nil {
				within := rule.NamespaceSelector.DeepCopy()
				metav1.AddLabelToSelector(within, tenantLabel, object.metadata.Name)
				quota.Spec.Selector.LabelSelector = within
			}
			outcome.add(quota)
		}
		if len(rule.Quota) == 0 && rule.NamespaceSelector != nil {
			object.unknown = append(object.unknown, "spec.rules") // the selector is for the other parts of the rule
		}
	}
}

// addTenantCounts adds one quota for the limits in annotations, if there are any. Of two versions of a resource the smaller
// limit is kept, for they are the same objects.
func addTenantCounts(object *Object, outcome *Outcome) {
	hard := corev1.ResourceList{}
	var notes []Note
	for _, key := range slices.Sorted(maps.Keys(object.metadata.Annotations)) {
		value := object.metadata.Annotations[key]
		counted, limits := strings.CutPrefix(key, tenantCounts)
		if !limits {
			object.unknown = append(object.unknown, "metadata.annotations")
			continue
		}
		name, limit, valid := countOf(counted, value)
		if !valid {
			outcome.note(Lost, outcomes.UnreadCount.Text(key, value))
			continue
		}
		other, twice := hard[name]
		notes = append(notes, countFrom(key, value, name, twice))
		if !twice || limit.Cmp(other) < 0 {
			hard[name] = limit
		}
	}
	if len(object.metadata.Labels) > 0 {
		object.unknown = append(object.unknown, "metadata.labels")
	}
	if len(hard) > 0 {
		outcome.add(tenantQuota(object, "counts", corev1.ResourceQuotaSpec{Hard: hard}), notes...)
	}
}

// tenantQuota is for the namespaces of a Tenant, independently of their other labels.
func tenantQuota(object *Object, suffix string, spec corev1.ResourceQuotaSpec) *quotav1.ClusterResourceQuota {
	tenant := object.metadata.Name
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: tenant + "-" + suffix}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{tenantLabel: tenant}}
	quota.Spec.Quota = quotav1.ResourceQuotaSpec(spec)
	return quota
}

// countOf returns ResourceQuota's name for Capsule's RESOURCE.GROUP_VERSION, with
// any version, and how many are allowed. The core group has no name: pods._v1.
func countOf(resourceVersion, value string) (corev1.ResourceName, resource.Quantity, bool) {
	at := strings.LastIndex(resourceVersion, "_")
	limit, err := strconv.ParseInt(value, 10, 64)
	if at <= 0 || at == len(resourceVersion)-1 || err != nil {
		return "", resource.Quantity{}, false
	}
	name := corev1.ResourceName("count/" + strings.TrimSuffix(resourceVersion[:at], "."))
	return name, *resource.NewQuantity(limit, resource.DecimalSI), true
}

// convertResourcePool converts Capsule's ResourcePool
// (github.com/projectcapsule/capsule, api/v1beta2/resourcepool_types.go).
func convertResourcePool(object *Object, outcome *Outcome) error {
	var spec struct {
		Selectors []metav1.LabelSelector    `json:"selectors"`
		Quota     quotav1.ResourceQuotaSpec `json:"quota"`
	}
	if err := object.decode("spec", &spec); err != nil {
		return err
	}
	outcome.note(Remark, outcomes.PoolClaims.Text())
	return addForAny(object, outcome, spec.Selectors, spec.Quota)
}

// convertGlobalResourceQuota converts Capsule's GlobalResourceQuota
// (github.com/projectcapsule/capsule, api/v1beta2/globalresourcequota_types.go).
func convertGlobalResourceQuota(object *Object, outcome *Outcome) error {
	var spec struct {
		Selectors []metav1.LabelSelector    `json:"namespaceSelectors"`
		Quota     quotav1.ResourceQuotaSpec `json:"quota"`
	}
	if err := object.decode("spec", &spec); err != nil {
		return err
	}
	return addForAny(object, outcome, spec.Selectors, spec.Quota)
}

// addForAny adds a quota for the namespaces that match any of several selectors.
func addForAny(object *Object, outcome *Outcome, selectors []metav1.LabelSelector, spec quotav1.ResourceQuotaSpec) error {
	selector, err := anyOf(selectors)
	if err != nil {
		return err
	}
	if len(selectors) > 1 {
		outcome.note(Remark, outcomes.SelectorsMerged.Text())
	}
	quota := object.described(object.metadata.Name)
	quota.Spec.Selector.LabelSelector, quota.Spec.Quota = &selector, spec
	outcome.add(quota)
	return nil
}

// anyOf returns a selector of the namespaces that match any of these. The requirements of one selector are ANDed, so that is
// possible only if they differ in the values of a single label.
func anyOf(selectors []metav1.LabelSelector) (metav1.LabelSelector, error) {
	isEmpty := func(s metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	switch {
	case len(selectors) == 0:
		return metav1.LabelSelector{}, outcomes.EmptyTenant.Err()
	case slices.ContainsFunc(selectors, isEmpty):
		return metav1.LabelSelector{}, outcomes.EmptySelector.Err()
	case len(selectors) == 1:
		return selectors[0], nil
	}
	merged, varying := valuesOf(selectors[0]), sets.New[string]()
	for _, selector := range selectors[1:] {
		values := valuesOf(selector)
		if values == nil || !sets.KeySet(values).Equal(sets.KeySet(merged)) {
			return metav1.LabelSelector{}, outcomes.SeveralSelectors.Err()
		}
		for key := range values {
			if !values[key].Equal(merged[key]) {
				varying.Insert(key)
				merged[key] = merged[key].Union(values[key])
			}
		}
	}
	if len(varying) > 1 {
		return metav1.LabelSelector{}, outcomes.SeveralSelectors.Err()
	}
	one := metav1.LabelSelector{}
	for _, key := range sets.List(sets.KeySet(merged)) {
		one.MatchExpressions = append(one.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: sets.List(merged[key])})
	}
	return one, nil
}

// valuesOf returns the values that a selector allows for each label; nil if it says anything else.
func valuesOf(selector metav1.LabelSelector) map[string]sets.Set[string] {
	values := map[string]sets.Set[string]{}
	for key, value := range selector.MatchLabels {
		values[key] = sets.New(value)
	}
	for _, requirement := range selector.MatchExpressions {
		if values[requirement.Key] != nil || requirement.Operator != metav1.LabelSelectorOpIn || len(requirement.Values) == 0 {
			return nil
		}
		values[requirement.Key] = sets.New(requirement.Values...)
	}
	return values
}
