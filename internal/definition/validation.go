// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Validate returns the errors of a quota's spec, each by the path of its field.
// The quota itself is validated as Kubernetes validates a ResourceQuota; that its
// scopes don't change is a rule of the schema, which compares with the old spec.
// It is sorted: it ends up in a condition, which must not change by itself.
func Validate(object *quotav1.ClusterResourceQuota) field.ErrorList {
	path := field.NewPath("spec")
	errs := append(
		ValidateSelector(object.Spec.Selector, path.Child("selector")),
		validateQuota(corev1.ResourceQuotaSpec(object.Spec.Quota), path.Child("quota"))...)
	errs = append(errs, validateSurge(object.Spec, path.Child("surge", "hard"))...)
	errs = append(errs, validateEnforcement(object.Spec.Enforcement, path.Child("enforcement"))...)
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errs
}

func validateQuota(spec corev1.ResourceQuotaSpec, path *field.Path) field.ErrorList {
	if errs := validateMagnitudes(spec.Hard, path.Child("hard")); len(errs) > 0 {
		return errs // Kubernetes' validation may compute with them.
	}
	internal := core.ResourceQuotaSpec{}
	if err := corev1conversion.Convert_v1_ResourceQuotaSpec_To_core_ResourceQuotaSpec(&spec, &internal, nil); err != nil {
		return field.ErrorList{field.Invalid(path, spec, err.Error())}
	}
	return append(validation.ValidateResourceQuotaSpec(&internal, path), validateScopeValues(spec.ScopeSelector, path)...)
}

// validateSurge refuses surge of a resource that isn't limited, because that would have no effect.
func validateSurge(spec quotav1.ClusterResourceQuotaSpec, path *field.Path) field.ErrorList {
	errs := validateMagnitudes(spec.Surge.Hard, path)
	if len(errs) > 0 {
		return errs // Kubernetes' validation may compute with them.
	}
	for name, amount := range spec.Surge.Hard {
		at := path.Key(string(name))
		if _, limited := spec.Quota.Hard[name]; !limited {
			errs = append(errs, field.Invalid(at, amount.String(), outcomes.SurgeOfUnlimited.Text(name)))
		}
		errs = append(errs, validation.ValidateResourceQuantityValue(core.ResourceName(name), amount, at)...)
	}
	return errs
}

func validateEnforcement(enforcement quotav1.Enforcement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch enforcement.Mode {
	case "", quotav1.EnforcementDeny, quotav1.EnforcementWarn, quotav1.EnforcementAudit:
	default:
		errs = append(errs, field.NotSupported(path.Child("mode"), enforcement.Mode,
			[]quotav1.EnforcementMode{quotav1.EnforcementDeny, quotav1.EnforcementWarn, quotav1.EnforcementAudit}))
	}
	switch enforcement.WhenUnavailable {
	case "", quotav1.UnavailableRefuse, quotav1.UnavailableAdmit:
	default:
		errs = append(errs, field.NotSupported(path.Child("whenUnavailable"), enforcement.WhenUnavailable,
			[]quotav1.UnavailablePolicy{quotav1.UnavailableRefuse, quotav1.UnavailableAdmit}))
	}
	return errs
}

func validateMagnitudes(hard corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for name, limit := range hard {
		if evaluation.IsBeyond(limit) {
			errs = append(errs, field.Invalid(path.Key(string(name)), limit.String(), outcomes.TooLarge.Text()))
		}
	}
	return errs
}

// validateScopeValues refuses values that Kubernetes' validation takes and its
// evaluators can't compare: every pod or claim would fail because of them. Only
// possible values of a label can be compared, though a PriorityClass may have a
// longer name.
func validateScopeValues(selector *corev1.ScopeSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var errs field.ErrorList
	for i, requirement := range selector.MatchExpressions {
		values := path.Child("scopeSelector", "matchExpressions").Index(i).Child("values")
		for j, value := range requirement.Values {
			for _, mistake := range utilvalidation.IsValidLabelValue(value) {
				errs = append(errs, field.Invalid(values.Index(j), value, outcomes.Incomparable.Text(mistake)))
			}
		}
	}
	return errs
}
