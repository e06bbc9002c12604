// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
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

// unmarshal decodes into the value of a pointer. It does so in one pass, where Kubernetes' decoder
// takes several over each request's object: that was a fifth of the operator's CPU time under load.
// A text that it refuses, such as one with a name twice, is read again by that decoder: it has the
// last word, and the messages that people know.
func unmarshal(text []byte, into any) error {
	if jsonv2.Unmarshal(text, into) == nil {
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return json.Unmarshal(text, into) //nolint:wrapcheck // each caller names the text
}
