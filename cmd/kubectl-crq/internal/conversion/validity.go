// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// The schema of ClusterResourceQuota allows as many.
const (
	maxHard   = 256
	maxScopes = 16
)

// settled is a quota that is converted.
type settled struct {
	source string
	spec   quotav1.ClusterResourceQuotaSpec
}

// settle keeps the quotas that are valid and whose name is free. Capsule makes GlobalResourceQuotas of the rules of a
// Tenant: in the input may be both, which give the same quota.
func (o *Outcome) settle(quotas map[string]settled) {
	o.Manifests = slices.DeleteFunc(o.Manifests, func(manifest Manifest) bool {
		name := manifest.Quota.Name
		if mistakes := mistakes(manifest.Quota); len(mistakes) > 0 {
			o.note(Refused, outcomes.InvalidQuota.Text(name, strings.Join(mistakes, "; ")))
			return true
		}
		switch other, taken := quotas[name]; {
		case taken && kindOf(other.source) != kindOf(o.Source) && apiequality.Semantic.DeepEqual(other.spec, manifest.Quota.Spec):
			o.note(Skipped, outcomes.SameQuota.Text(name, other.source))
		case taken:
			o.note(Refused, outcomes.NameTaken.Text(name, other.source))
		default:
			quotas[name] = settled{o.Source, manifest.Quota.Spec}
			return false
		}
		return true
	})
}

// kindOf returns the kind of the object that a source names first.
func kindOf(source string) string {
	kind, _, _ := strings.Cut(source, " ")
	return kind
}

// mistakes are the errors that the API server and the operator's webhook would return.
func mistakes(quota *quotav1.ClusterResourceQuota) []string {
	errs := append(
		apivalidation.ValidateObjectMeta(&quota.ObjectMeta, false, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata")),
		definition.Validate(quota)...)
	path, spec := field.NewPath("spec", "quota"), quota.Spec.Quota
	if len(spec.Hard) > maxHard {
		errs = append(errs, field.TooMany(path.Child("hard"), len(spec.Hard), maxHard))
	}
	if len(spec.Scopes) > maxScopes {
		errs = append(errs, field.TooMany(path.Child("scopes"), len(spec.Scopes), maxScopes))
	}
	mistakes := make([]string, 0, len(errs))
	for _, err := range errs {
		mistakes = append(mistakes, err.Error())
	}
	if err := writable(quota); err != nil {
		mistakes = append(mistakes, err.Error())
	}
	return mistakes
}

// writable is an error for a quota that comes out of YAML changed: an annotation may hold any characters.
func writable(quota *quotav1.ClusterResourceQuota) error {
	want, err := fieldsOf(quota)
	if err != nil {
		return err
	}
	text, err := document(quota)
	if err != nil {
		return err
	}
	if got, err := parse(text); err != nil || !reflect.DeepEqual(got, want) {
		return outcomes.NotPlain.Err()
	}
	return nil
}

// maxQuantity is longer than any intended quantity.
const maxQuantity = 64

// Kubernetes writes a number out to read it: for 1e999999999 that takes forever.
var hasLargeExponent = regexp.MustCompile(`[eE][+-]?\d{4}`).MatchString //nolint:gochecknoglobals // compiled once

// noQuantities names the limits that can't be read: the decoder of all of them doesn't say which.
func noQuantities(spec any) []string {
	var bad []string
	walk("spec", spec, func(at string, value any) {
		limits, isObject := value.(map[string]any)
		if !isObject || !strings.HasSuffix(at, ".hard") {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			if !isQuantity(limits[name]) {
				bad = append(bad, outcomes.NoQuantity.Text(at+"."+name, valueOf(limits[name])))
			}
		}
	})
	return bad
}

func isQuantity(value any) bool {
	switch value := value.(type) {
	case int64, float64:
		return true
	case string:
		if len(value) > maxQuantity || hasLargeExponent(value) {
			return false
		}
		_, err := resource.ParseQuantity(value)
		return err == nil
	}
	return false
}
