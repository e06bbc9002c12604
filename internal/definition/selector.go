// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	unversionedvalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Selector is a compiled ClusterResourceQuotaSelector. The zero Selector
// matches nothing.
type Selector struct {
	// labels is nil in the zero Selector only.
	labels      labels.Selector
	annotations map[string]string // key -> the value that it must have
}

// Everything returns the Selector that matches every namespace.
func Everything() Selector { return Selector{labels: labels.Everything()} }

// CompileSelector returns the compiled selector. The error names the field of a
// ClusterResourceQuota that is wrong, and all of them if there are several.
func CompileSelector(selector quotav1.ClusterResourceQuotaSelector) (Selector, error) {
	// Without labels the annotations choose. Upstream takes nil for nothing.
	byLabels, err := metav1.LabelSelectorAsSelector(cmp.Or(selector.LabelSelector, &metav1.LabelSelector{}))
	if err != nil || len(selector.AnnotationSelector) > 0 || isEmpty(selector) { // otherwise, all labels have been validated just now
		if errs := ValidateSelector(selector, field.NewPath("spec", "selector")); len(errs) > 0 {
			return Selector{}, fmt.Errorf("invalid selector: %w", errs.ToAggregate())
		}
	}
	if err != nil {
		return Selector{}, fmt.Errorf("compiling the label selector: %w", err)
	}
	return Selector{labels: byLabels, annotations: maps.Clone(selector.AnnotationSelector)}, nil
}

// ValidateSelector returns the errors of the selector at this path. It is sorted:
// it ends up in a condition, which must not change from one look to the next.
func ValidateSelector(selector quotav1.ClusterResourceQuotaSelector, path *field.Path) field.ErrorList {
	if isEmpty(selector) {
		return field.ErrorList{field.Required(path, outcomes.NoSelector.Text())}
	}
	errs := unversionedvalidation.ValidateLabelSelector(selector.LabelSelector,
		unversionedvalidation.LabelSelectorValidationOptions{}, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(selector.AnnotationSelector, path.Child("annotations"))...)
	slices.SortFunc(errs, func(a, b *field.Error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errs
}

func isEmpty(selector quotav1.ClusterResourceQuotaSelector) bool {
	byLabels := selector.LabelSelector
	return (byLabels == nil || len(byLabels.MatchLabels)+len(byLabels.MatchExpressions) == 0) &&
		len(selector.AnnotationSelector) == 0
}

// Matches reports whether a namespace with these labels and annotations is
// selected.
func (s Selector) Matches(namespaceLabels, namespaceAnnotations map[string]string) bool {
	if s.labels == nil || !s.labels.Matches(labels.Set(namespaceLabels)) {
		return false
	}
	for key, want := range s.annotations {
		if got, found := namespaceAnnotations[key]; !found || got != want {
			return false
		}
	}
	return true
}

// HasAnnotations reports whether the selector asks for annotations too, which no
// label selector can.
func (s Selector) HasAnnotations() bool { return len(s.annotations) > 0 }

// Labels returns the part of the selector that is about labels.
func (s Selector) Labels() labels.Selector {
	if s.labels == nil {
		return labels.Nothing()
	}
	return s.labels
}

// String returns the selector in the form that kubectl's --selector takes,
// sorted; annotations follow in brackets, as in
// "team=payments [openshift.io/requester=alice]".
func (s Selector) String() string {
	var parts []string
	if byLabels := s.labelString(); byLabels != "" {
		parts = append(parts, byLabels)
	}
	if len(s.annotations) > 0 {
		parts = append(parts, "["+labels.Set(s.annotations).String()+"]")
	}
	return strings.Join(parts, " ")
}

// labelString sorts by key, and requirements of the same key by their text:
// upstream leaves those in the order that they were written in.
func (s Selector) labelString() string {
	if s.labels == nil {
		return ""
	}
	written, _ := s.labels.Requirements()
	requirements := slices.SortedFunc(slices.Values(written), func(a, b labels.Requirement) int {
		return cmp.Or(cmp.Compare(a.Key(), b.Key()), cmp.Compare(a.String(), b.String()))
	})
	texts := make([]string, 0, len(requirements))
	for i := range requirements {
		texts = append(texts, requirements[i].String())
	}
	return strings.Join(texts, ",")
}
