// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	strictjson "sigs.k8s.io/json"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/conversion"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// planned is a quota of the file.
type planned struct {
	origin string
	// content is the object as it was written, without status.
	content map[string]any
	quota   *quotav1.ClusterResourceQuota
}

// plannedQuotas returns the quotas of the manifests, and notes about what else is there. The error has each mistake
// that can be found without the cluster.
func plannedQuotas(objects []conversion.Object) (quotas []planned, notes []string, err error) {
	var mistakes []error
	named := map[string]string{} // name of a quota -> where it was read
	for i := range objects {
		object := &objects[i]
		if object.Kind() != quotav1.GroupVersion.WithKind(quotaKind) {
			notes = append(notes, fmt.Sprintf("%s is no ClusterResourceQuota of %s, and is left out.", object, quotav1.GroupVersion))
			continue
		}
		quota, err := plannedQuota(object)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", object, err))
			continue
		}
		name := quota.quota.Name
		if earlier, twice := named[name]; twice {
			mistakes = append(mistakes, fmt.Errorf("%s is there before, in %s: keep one of them", object, earlier))
			continue
		}
		named[name] = quota.origin
		quotas = append(quotas, quota)
	}
	if len(mistakes) == 0 && len(quotas) == 0 {
		return nil, nil, errors.New("there is no ClusterResourceQuota in the manifests")
	}
	return quotas, notes, errors.Join(mistakes...)
}

// plannedQuota decodes one quota strictly, so that a misspelt field is an error and not a limit that is missing.
func plannedQuota(object *conversion.Object) (planned, error) {
	content := object.Content()
	delete(content, "status")
	if err := checkExponents(content); err != nil {
		return planned{}, err
	}
	text, err := json.Marshal(content)
	if err != nil {
		return planned{}, fmt.Errorf("reading the quota: %w", err)
	}
	quota := &quotav1.ClusterResourceQuota{}
	strict, err := strictjson.UnmarshalStrict(text, quota)
	if err := errors.Join(append(slices.Clone(strict), err)...); err != nil {
		return planned{}, fmt.Errorf("reading the quota: %w", err)
	}
	if quota.Name == "" {
		return planned{}, errors.New("metadata.name: Required value: the quota must have a name")
	}
	for _, mistake := range apivalidation.NameIsDNSSubdomain(quota.Name, false) {
		return planned{}, fmt.Errorf("metadata.name: Invalid value: %q: %s", quota.Name, mistake)
	}
	return planned{origin: object.Origin(), content: content, quota: quota}, nil
}

// longExponent has more digits than any quantity needs. To parse such a number may take longer than anybody waits.
var longExponent = regexp.MustCompile(`[eE][+-]?\d{4}`)

func checkExponents(content map[string]any) error {
	for _, part := range []string{"quota", "trial"} {
		limits, _, err := unstructured.NestedMap(content, "spec", part, "hard")
		if err != nil {
			return nil //nolint:nilerr // it isn't a map, which decoding says
		}
		for name, limit := range limits {
			if text, ok := limit.(string); ok && longExponent.MatchString(text) {
				path := field.NewPath("spec", part, "hard").Key(name)
				return field.Invalid(path, text, "must be less than 1e30") //nolint:wrapcheck // it names the field
			}
		}
	}
	return nil
}

// validate returns what is wrong with the quota as it would be stored, in the place of the live one if there is one.
func validate(quota, live *quotav1.ClusterResourceQuota) error {
	errs := definition.Validate(quota)
	switch quota.Spec.Preflight {
	case "", quotav1.PreflightWarn, quotav1.PreflightDeny, quotav1.PreflightOff:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("spec", "preflight"), quota.Spec.Preflight,
			[]quotav1.PreflightMode{quotav1.PreflightWarn, quotav1.PreflightDeny, quotav1.PreflightOff}))
	}
	if live != nil && !sameScopes(quota, live) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "quota", "scopes"),
			"is immutable: delete the quota and create it again, or give the new one another name"))
	}
	return errs.ToAggregate() //nolint:wrapcheck // each names its field
}

// sameScopes goes by what the schema compares.
func sameScopes(quota, live *quotav1.ClusterResourceQuota) bool {
	sorted := func(of *quotav1.ClusterResourceQuota) []corev1.ResourceQuotaScope {
		return slices.Compact(slices.Sorted(slices.Values(of.Spec.Quota.Scopes)))
	}
	return slices.Equal(sorted(quota), sorted(live))
}
