// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapping tells what resource a kind is.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
	served     bool
}

// mappingOf asks the cluster, then the definitions among the manifests, and then
// guesses, which it notes.
func mappingOf(
	object *unstructured.Unstructured, defined map[schema.GroupKind]mapping, mapper meta.RESTMapper,
) (found mapping, note string, err error) {
	kind := object.GroupVersionKind()
	known, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil {
		return mapping{known.Resource, known.Scope.Name() == meta.RESTScopeNameNamespace, true}, "", nil
	}
	if !meta.IsNoMatchError(err) {
		return mapping{}, "", fmt.Errorf("finding the resource of %s: %w", kind.Kind, err)
	}
	if found, ok := defined[kind.GroupKind()]; ok {
		found.resource.Version = kind.Version
		return found, "", nil
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return mapping{resource: plural, namespaced: true}, guessed(kind, plural), nil
}

// definitions returns what the CustomResourceDefinitions among the objects define.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupKind]mapping {
	defined := map[schema.GroupKind]mapping{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		text := func(fields ...string) string {
			value, _, err := unstructured.NestedString(object.Object, append([]string{"spec"}, fields...)...)
			if err != nil {
				return ""
			}
			return value
		}
		defined[schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}] = mapping{
			resource:   schema.GroupVersionResource{Group: text("group"), Resource: text("names", "plural")},
			namespaced: text("scope") == "Namespaced",
		}
	}
	return defined
}
