// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// tenantLabel has the name of a Tenant, on each of its namespaces.
	tenantLabel = "capsule.clastix.io/tenant"
	// tenantCounts begins the annotations of a Tenant that limit how many objects
	// of a resource it may have, as in
	// quota.resources.capsule.clastix.io/mysqls.databases.acme.corp_v1: "3".
	tenantCounts = "quota.resources.capsule.clastix.io/"
)

// tenantQuotas is what a Tenant says of quotas (github.com/projectcapsule/capsule,
// pkg/api/resource_quota.go, in v1beta1 and v1beta2 alike).
type tenantQuotas struct {
	Scope string                     `json:"scope,omitempty"`
	Items []corev1.ResourceQuotaSpec `json:"items,omitempty"`
}

// tenantRule is what a rule of a Tenant says of quotas (github.com/projectcapsule/capsule v0.14.0,
// pkg/api/rules/rule_body_types.go and resource_quota_types.go).
type tenantRule struct {
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	Quota             []tenantRuleQuota     `json:"quota,omitempty"`
}

type tenantRuleQuota struct {
	corev1.ResourceQuotaSpec `json:",inline"`
	Name                     string `json:"name"`
}

// convertTenant converts each item of a Tenant's quotas into a quota of its own,
// with the index in its name as Capsule has it in that of its ResourceQuotas, those of its rules, and
// the limits in its annotations into one more.
func convertTenant(object *Object, _ string, outcome *Outcome) error {
	var quotas tenantQuotas
	if err := object.read(&quotas, "spec", "resourceQuotas"); err != nil {
		return err
	}
	switch quotas.Scope {
	case "", "Tenant":
		if err := object.take(&quotas, "spec", "resourceQuotas"); err != nil {
			return err
		}
		for i, item := range quotas.Items {
			outcome.add(tenantQuota(object, strconv.Itoa(i), item))
		}
	case "Namespace":
		object.ignore(string(root.to("spec", "resourceQuotas")))
		outcome.note(Lost, eachNamespaceAlone(object.metadata("name"), len(quotas.Items)))
	default:
		return errors.New(unknownScope(quotas.Scope))
	}
	if err := addTenantRules(object, outcome); err != nil {
		return err
	}
	if err := addTenantCounts(object, outcome); err != nil {
		return err
	}
	if len(outcome.Manifests) > 0 {
		outcome.remark(capsuleLabelsStop(object.metadata("name")))
	}
	return nil
}

// addTenantRules adds a quota for each one of a rule, with the name and the selector of the GlobalResourceQuota that Capsule
// makes of it.
func addTenantRules(object *Object, outcome *Outcome) error {
	var rules []tenantRule
	if err := object.read(&rules, "spec", "rules"); err != nil {
		return err
	}
	for i, rule := range rules {
		if len(rule.Quota) == 0 {
			continue // its selector is for what else the rule says
		}
		at := root.to("spec", "rules").index(i)
		if err := object.crossOff(at, rule); err != nil {
			return err
		}
		for _, path := range object.leftBelow(at.to("quota")) {
			outcome.note(Lost, unknownField(path, object.left[path]))
			object.ignore(path)
		}
		for _, item := range rule.Quota {
			quota := tenantQuota(object, item.Name, item.ResourceQuotaSpec)
			if rule.NamespaceSelector != nil {
				within := rule.NamespaceSelector.DeepCopy()
				metav1.AddLabelToSelector(within, tenantLabel, object.metadata("name"))
				quota.Spec.Selector.LabelSelector = within
			}
			outcome.add(quota)
		}
	}
	return nil
}

// addTenantCounts adds one quota for the limits in annotations, if there are any.
// Of two versions of a resource the smaller limit is kept, for they are the same
// objects.
func addTenantCounts(object *Object, outcome *Outcome) error {
	var annotations map[string]string
	if err := object.read(&annotations, "metadata", "annotations"); err != nil {
		return err
	}
	hard := corev1.ResourceList{}
	var notes []Note
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		counted, limits := strings.CutPrefix(key, tenantCounts)
		if !limits {
			continue
		}
		object.ignore(string(root.to("metadata", "annotations", key)))
		name, limit, valid := countOf(counted, annotations[key])
		if !valid {
			outcome.note(Lost, unreadableCount(key, annotations[key]))
			continue
		}
		other, twice := hard[name]
		notes = append(notes, countFrom(key, annotations[key], name, twice))
		if !twice || limit.Cmp(other) < 0 {
			hard[name] = limit
		}
	}
	if len(hard) > 0 {
		outcome.add(tenantQuota(object, "counts", corev1.ResourceQuotaSpec{Hard: hard}), notes...)
	}
	return nil
}

// tenantQuota is for the namespaces of a Tenant, whatever else its labels say.
func tenantQuota(object *Object, suffix string, spec corev1.ResourceQuotaSpec) *quotav1.ClusterResourceQuota {
	tenant := object.metadata("name")
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: tenant + "-" + suffix}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{tenantLabel: tenant}}
	quota.Spec.Quota = quotav1.ResourceQuotaSpec(spec)
	return quota
}

// countOf returns how ResourceQuota names what Capsule writes RESOURCE.GROUP_VERSION,
// whatever the version, and how many are allowed.
func countOf(resourceVersion, value string) (corev1.ResourceName, resource.Quantity, bool) {
	name, version, separated := cutLast(resourceVersion, "_")
	limit, err := strconv.ParseInt(value, 10, 64)
	if !separated || name == "" || version == "" || err != nil {
		return "", resource.Quantity{}, false
	}
	// The core group has no name: pods._v1.
	name = strings.TrimSuffix(name, ".")
	return corev1.ResourceName("count/" + name), *resource.NewQuantity(limit, resource.DecimalSI), true
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}
