// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	strictjson "sigs.k8s.io/json"

	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Manifest reads the live object, and returns the result of applying the manifest
// to it. The note isn't empty if it may not be read: it is taken for new.
func (r *Reader) Manifest(ctx context.Context, object Object) (manifest fitting.Manifest, note string, err error) {
	if err := strict(object); err != nil {
		return fitting.Manifest{}, "", err
	}
	live, note, err := r.live(ctx, object)
	if err != nil {
		return fitting.Manifest{}, "", err
	}
	manifest = fitting.Manifest{Resource: object.Resource, Kind: object.GetKind()}
	applied := object.Unstructured
	if live != nil {
		if applied, err = r.applied(object.Unstructured, live); err != nil {
			return fitting.Manifest{}, "", err
		}
		if manifest.Live, err = r.types.Typed(live); err != nil {
			return fitting.Manifest{}, "", err
		}
	}
	if manifest.Object, err = r.types.Typed(applied); err != nil {
		return fitting.Manifest{}, "", err
	}
	return manifest, note, nil
}

// strict returns an error for fields that the object's kind doesn't have, and for values that they can't have. The API
// server refuses them by default.
func strict(object Object) error {
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil //nolint:nilerr // only the API server knows its fields
	}
	asJSON, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("reading %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	mistakes, err := strictjson.UnmarshalStrict(asJSON, typed)
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
		err = outcomes.WrongType.Err(mistyped.Field, mistyped.Value)
	}
	for _, field := range []string{"replicas", "parallelism", "completions"} {
		if count, _, _ := unstructured.NestedInt64(object.Object, "spec", field); count < 0 {
			mistakes = append(mistakes, outcomes.BelowZero.Err(field))
		}
	}
	if err := kerrors.NewAggregate(append(mistakes, err)); err != nil {
		return outcomes.WouldNotApply.Err(object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// live returns nil if there is no such object.
func (r *Reader) live(ctx context.Context, object Object) (live *unstructured.Unstructured, note string, err error) {
	if object.GetName() == "" || !object.Served {
		return nil, "", nil
	}
	live = &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	err = r.client.Get(ctx, client.ObjectKeyFromObject(object), live)
	switch {
	case err == nil:
		return live, "", nil
	case isNotServed(err):
		return nil, "", nil
	case apierrors.IsForbidden(err):
		return nil, unreadLive(object.GetKind(), object.GetNamespace(), object.GetName()), nil
	}
	return nil, "", fmt.Errorf("reading %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
}

// applied returns the object that kubectl apply would make of the live object: the manifest's fields, without fields that
// the manifest had the last time and no longer has, and with fields that others have set.
func (r *Reader) applied(object, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind := object.GroupVersionKind()
	if !r.types.Known(kind) {
		return object, nil // its content isn't used
	}
	merged, err := r.merge(object, live)
	if err != nil {
		return nil, fmt.Errorf("merging %s %s/%s with what is there: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	return merged, nil
}

//nolint:wrapcheck // the caller names the action
func (r *Reader) merge(object, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	structure, err := r.types.Empty(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(structure)
	if err != nil {
		return nil, err
	}
	modified, err := object.MarshalJSON()
	if err != nil {
		return nil, err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, schema, true)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(current, patch, schema)
	if err != nil {
		return nil, err
	}
	merged := &unstructured.Unstructured{}
	if err := merged.UnmarshalJSON(text); err != nil {
		return nil, err
	}
	return merged, nil
}
