// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Path is where the endpoint is served.
const Path = "/validate-quotas"

// Validator refuses quotas that can't be enforced, and warns of probable mistakes
// in others.
type Validator struct {
	warner *Warner
	fences *Fences
}

var _ admission.Validator[*quotav1.ClusterResourceQuota] = &Validator{}

// NewValidator makes a Validator.
func NewValidator(warner *Warner, fences *Fences) *Validator {
	return &Validator{warner: warner, fences: fences}
}

// ValidateCreate returns an Invalid error that lists every invalid field.
func (v *Validator) ValidateCreate(ctx context.Context, quota *quotav1.ClusterResourceQuota) (admission.Warnings, error) {
	return v.validate(ctx, nil, quota)
}

// ValidateUpdate is as strict as ValidateCreate, but lets a quota go that is
// being deleted. It warns of the changes. A limit that is lowered binds before
// the edit is allowed.
func (v *Validator) ValidateUpdate(ctx context.Context, previous, quota *quotav1.ClusterResourceQuota) (admission.Warnings, error) {
	if !quota.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	warnings, err := v.validate(ctx, previous, quota)
	if err != nil {
		return warnings, err
	}
	return warnings, v.fences.impose(ctx, previous, quota)
}

// ValidateDelete allows every deletion.
func (*Validator) ValidateDelete(context.Context, *quotav1.ClusterResourceQuota) (admission.Warnings, error) {
	return nil, nil
}

func (v *Validator) validate(ctx context.Context, previous, quota *quotav1.ClusterResourceQuota) (admission.Warnings, error) {
	if err := invalid(previous, quota); err != nil {
		return nil, err
	}
	return v.warner.Warnings(ctx, previous, quota), nil
}

func invalid(previous, quota *quotav1.ClusterResourceQuota) error {
	errs := definition.Validate(quota)
	if size := sizeOf(quota.Spec.Selector); size > maxSelector && selectsAnew(previous, quota) {
		errs = append(errs, field.Forbidden(field.NewPath("spec", "selector"),
			outcomes.SelectorSize.Text(size>>10, maxSelector>>10)))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(quotav1.GroupVersion.WithKind("ClusterResourceQuota").GroupKind(), quota.Name, errs)
}
