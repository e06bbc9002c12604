// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	appsinstall "k8s.io/kubernetes/pkg/apis/apps/install"
	batchinstall "k8s.io/kubernetes/pkg/apis/batch/install"
	coreinstall "k8s.io/kubernetes/pkg/apis/core/install"
	resourceinstall "k8s.io/kubernetes/pkg/apis/resource/install"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Types are Kubernetes' types whose fields decide the cost of an object.
type Types struct {
	scheme *runtime.Scheme
}

// NewTypes returns the types with their defaults.
func NewTypes() *Types {
	scheme := runtime.NewScheme()
	coreinstall.Install(scheme)
	appsinstall.Install(scheme)
	batchinstall.Install(scheme)
	resourceinstall.Install(scheme)
	return &Types{scheme: scheme}
}

// Known reports whether a kind is one of them.
func (t *Types) Known(kind schema.GroupVersionKind) bool {
	return t.scheme.Recognizes(kind)
}

// Empty returns an object of a known kind.
func (t *Types) Empty(kind schema.GroupVersionKind) (runtime.Object, error) {
	object, err := t.scheme.New(kind)
	if err != nil {
		return nil, fmt.Errorf("making a %s: %w", kind.Kind, err)
	}
	return object, nil
}

// Typed returns an object of a known kind in its own type, with its defaults; of
// dynamic resource allocation in the version that quotas look at. An object of any
// other kind is returned as it is.
func (t *Types) Typed(object *unstructured.Unstructured) (client.Object, error) {
	kind := object.GroupVersionKind()
	if !t.Known(kind) {
		return object, nil
	}
	typed, err := t.Empty(kind)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
	}
	t.scheme.Default(typed)
	if kind.Group == resourceapi.GroupName && kind.Version != resourceapi.SchemeGroupVersion.Version {
		typed, err = t.newest(typed)
		if err != nil {
			return nil, fmt.Errorf("converting %s %s/%s: %w", kind.Kind, object.GetNamespace(), object.GetName(), err)
		}
	}
	asClient, ok := typed.(client.Object)
	if !ok {
		return object, nil
	}
	return asClient, nil
}

func (t *Types) newest(object runtime.Object) (runtime.Object, error) {
	hub := schema.GroupVersion{Group: resourceapi.GroupName, Version: runtime.APIVersionInternal}
	internal, err := t.scheme.ConvertToVersion(object, hub)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says which object
	}
	return t.scheme.ConvertToVersion(internal, resourceapi.SchemeGroupVersion) //nolint:wrapcheck // the caller says which object
}
