// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// reservation returns the reservation that is held for the request until its object is observed.
func reservation(request *admissionv1.AdmissionRequest, attributes admission.Attributes, expiry time.Time) (ledger.Reservation, error) {
	object, err := meta.Accessor(attributes.GetObject())
	if err != nil {
		return ledger.Reservation{}, fmt.Errorf("reading the object's metadata: %w", err)
	}
	if object.GetUID() == "" {
		// Without it, the operator couldn't tell whether this object came to be.
		return ledger.Reservation{}, errors.New("the object has no UID: this API server doesn't set it before admission")
	}
	held := ledger.Reservation{
		Object: ledger.Object{
			Resource:  attributes.GetResource(),
			Namespace: request.Namespace,
			Name:      evaluation.ShortName(object.GetName()),
			UID:       object.GetUID(),
		},
		Attempt: string(request.UID),
		Expiry:  expiry.Truncate(time.Second),
	}
	if attributes.GetOldObject() == nil {
		return held, validate(held)
	}
	old, err := meta.Accessor(attributes.GetOldObject())
	if err != nil {
		return ledger.Reservation{}, fmt.Errorf("reading the metadata before the update: %w", err)
	}
	if old.GetResourceVersion() != "" {
		held.From = old.GetResourceVersion()
	}
	return held, validate(held)
}

// longestField bounds each field of a request that a ledger keeps. API servers make UIDs of 36
// bytes and resourceVersions of 20 at most.
const longestField = 128

// errTooLong is the answer to a field that no API server sends.
var errTooLong = errors.New("it is longer than that of any API server")

// validate refuses fields that would bloat a ledger.
func validate(held ledger.Reservation) error {
	for _, field := range [...]struct{ name, value string }{
		{"the object's UID", string(held.UID)},
		{"the request's UID", held.Attempt},
		{"the resourceVersion", held.From},
		{"the namespace", held.Namespace},
		{"the API version", held.Resource.Version},
	} {
		if len(field.value) > longestField {
			return fmt.Errorf("%s has %d bytes: %w", field.name, len(field.value), errTooLong)
		}
	}
	return nil
}
