// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

var errNoRequest = errors.New("the AdmissionReview holds no request")

// decoder reads the objects of requests: whole where they cost more than a
// count, their metadata alone elsewhere.
type decoder struct {
	types runtime.ObjectCreater
}

func newDecoder() decoder {
	return decoder{types: scheme.Scheme}
}

// attributes returns the request as evaluation takes it.
func (d decoder) attributes(request *admissionv1.AdmissionRequest) (admission.Attributes, error) {
	if request.UID == "" || request.Resource.Resource == "" {
		return nil, errNoRequest
	}
	resource := schema.GroupVersionResource(request.Resource)
	object, err := d.object(resource.GroupResource(), request.Kind, request.Object.Raw)
	if err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	var old runtime.Object
	if request.Operation == admissionv1.Update {
		if old, err = d.object(resource.GroupResource(), request.Kind, request.OldObject.Raw); err != nil {
			return nil, fmt.Errorf("reading the object before the update: %w", err)
		}
	}
	return admission.NewAttributesRecord(object, old, schema.GroupVersionKind(request.Kind), request.Namespace,
		request.Name, resource, request.SubResource, admission.Operation(request.Operation), nil,
		ptr.Deref(request.DryRun, false), nil), nil
}

func (d decoder) object(resource schema.GroupResource, kind metav1.GroupVersionKind, raw []byte) (runtime.Object, error) {
	if len(raw) == 0 {
		return nil, errors.New("it is missing")
	}
	if !evaluation.NeedsObject(resource) {
		object := &metav1.PartialObjectMetadata{}
		if err := unmarshal(raw, object); err != nil {
			return nil, fmt.Errorf("as metadata: %w", err)
		}
		return object, nil
	}
	// The kind is known, so that the object isn't searched for it: a deserializer
	// would take half as long again.
	object, err := d.types.New(schema.GroupVersionKind(kind))
	if err != nil {
		return nil, fmt.Errorf("as %s: %w", resource, err)
	}
	if err := unmarshal(raw, object); err != nil {
		return nil, fmt.Errorf("as %s: %w", resource, err)
	}
	if current := object.GetObjectKind().GroupVersionKind(); !current.Empty() && current != schema.GroupVersionKind(kind) {
		return nil, fmt.Errorf("as %s: it is a %s of %s", resource, current.Kind, current.GroupVersion())
	}
	return object, nil
}

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
