// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	configvalidation "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	corev1helper "k8s.io/kubernetes/pkg/apis/core/v1/helper"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
)

// LimitedConfiguration has the resources that are limited by default. The zero
// value limits nothing.
type LimitedConfiguration struct {
	resources []resourcequotaapi.LimitedResource
}

// LoadLimited reads a file of the kind ResourceQuotaConfiguration. Without a path,
// nothing is limited by default.
func LoadLimited(path string) (LimitedConfiguration, error) {
	if path == "" {
		return LimitedConfiguration{}, nil
	}
	text, err := os.ReadFile(path) //nolint:gosec // the administrator names it
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("reading limited resources: %w", err)
	}
	configuration, err := parse(text)
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("reading limited resources from %s: %w", path, err)
	}
	return configuration, nil
}

func parse(text []byte) (LimitedConfiguration, error) {
	if err := checkSingle(text); err != nil {
		return LimitedConfiguration{}, err
	}
	decoded, err := resourcequota.LoadConfiguration(bytes.NewReader(text))
	if err != nil {
		return LimitedConfiguration{}, fmt.Errorf("decoding it as a ResourceQuotaConfiguration: %w", err)
	}
	if errs := validate(decoded); len(errs) > 0 {
		return LimitedConfiguration{}, fmt.Errorf("validating it: %w", errs.ToAggregate())
	}
	return LimitedConfiguration{resources: decoded.LimitedResources}, nil
}

// Limited returns the resources that are limited by default, for evaluation. It
// must not be changed.
func (c LimitedConfiguration) Limited() []resourcequotaapi.LimitedResource { return c.resources }

// Resources returns the resources whose requests must be seen in every
// namespace, sorted, each once: where no quota covers one, nothing else tells
// that it is limited.
func (c LimitedConfiguration) Resources() []schema.GroupResource {
	resources := make([]schema.GroupResource, 0, len(c.resources))
	for _, limited := range c.resources {
		resources = append(resources, resourceOf(limited))
	}
	slices.SortFunc(resources, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(resources)
}

func resourceOf(limited resourcequotaapi.LimitedResource) schema.GroupResource {
	return schema.GroupResource{Group: limited.APIGroup, Resource: limited.Resource}
}

// checkSingle refuses a file of several documents: all but the first would be
// passed over.
func checkSingle(text []byte) error {
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	documents := 0
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading its documents: %w", err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			documents++
		}
		if documents > 1 {
			return errors.New("it holds several documents: want one")
		}
	}
}

// validate returns the errors of a configuration, each by the path of its field.
// Kubernetes' own validation asks only that a resource is named.
func validate(configuration *resourcequotaapi.Configuration) field.ErrorList {
	errs := configvalidation.ValidateConfiguration(configuration)
	for i, limited := range configuration.LimitedResources {
		if limited.Resource != "" {
			errs = append(errs, validateLimited(limited, field.NewPath("limitedResources").Index(i))...)
		}
	}
	return errs
}

func validateLimited(limited resourcequotaapi.LimitedResource, path *field.Path) field.ErrorList {
	errs := validateResource(limited, path)
	if len(limited.MatchContains) == 0 && len(limited.MatchScopes) == 0 {
		errs = append(errs, field.Required(path, "matchContains or matchScopes: without them nothing of the resource is limited"))
	}
	for i, scope := range limited.MatchScopes {
		errs = append(errs, validateScope(limited, scope, path, i)...)
	}
	return errs
}

// validateResource makes sure that requests for the resource can be asked about:
// the API server would refuse a whole webhook configuration for one odd name.
func validateResource(limited resourcequotaapi.LimitedResource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, reason := range validation.IsDNS1035Label(limited.Resource) {
		errs = append(errs, field.Invalid(path.Child("resource"), limited.Resource, reason))
	}
	if limited.APIGroup != "" {
		for _, reason := range validation.IsDNS1123Subdomain(limited.APIGroup) {
			errs = append(errs, field.Invalid(path.Child("apiGroup"), limited.APIGroup, reason))
		}
	}
	if len(errs) == 0 && len(Rules(resourceOf(limited))) == 0 {
		errs = append(errs, field.Invalid(path.Child("resource"), limited.Resource, "Kubernetes keeps no quota on it"))
	}
	return errs
}

// validateScope validates a scope as that of a ResourceQuota, and makes sure of
// two things more. Kubernetes matches a scope with pods or claims under any
// resource, so it must be under the right one. And it admits every object while
// it can't match a scope, as where a value is no label value.
func validateScope(
	limited resourcequotaapi.LimitedResource, scope corev1.ScopedResourceSelectorRequirement, path *field.Path, index int,
) field.ErrorList {
	at := path.Child("matchScopes").Index(index)
	errs := validateExpression(scope, at)
	if len(errs) > 0 {
		return errs
	}
	if !hasScope(limited, scope.ScopeName) {
		errs = append(errs, field.Invalid(at.Child("scopeName"), scope.ScopeName, fmt.Sprintf("not a scope of %s", resourceOf(limited))))
	}
	if _, err := corev1helper.ScopedResourceSelectorRequirementsAsSelector(scope); err != nil {
		errs = append(errs, field.Invalid(at.Child("values"), scope.Values, err.Error()))
	}
	return errs
}

func hasScope(limited resourcequotaapi.LimitedResource, scope corev1.ResourceQuotaScope) bool {
	return NeedsObject(resourceOf(limited)) &&
		helper.IsResourceQuotaScopeValidForResource(core.ResourceQuotaScope(scope), core.ResourceName(limited.Resource))
}

// validateExpression has Kubernetes validate the expression in the scopeSelector
// of a quota, the only place where it does.
func validateExpression(scope corev1.ScopedResourceSelectorRequirement, at *field.Path) field.ErrorList {
	expression := core.ScopedResourceSelectorRequirement{
		ScopeName: core.ResourceQuotaScope(scope.ScopeName), Operator: core.ScopeSelectorOperator(scope.Operator), Values: scope.Values,
	}
	selector := &core.ScopeSelector{MatchExpressions: []core.ScopedResourceSelectorRequirement{expression}}
	errs := corevalidation.ValidateResourceQuotaSpec(&core.ResourceQuotaSpec{ScopeSelector: selector}, at)
	there := at.Child("scopeSelector", "matchExpressions").String()
	for _, err := range errs {
		err.Field = at.String() + strings.TrimPrefix(err.Field, there)
	}
	return errs
}
