// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Object is one object of the manifests.
type Object struct {
	*unstructured.Unstructured
	Resource schema.GroupVersionResource
	// Served: the cluster knows the kind.
	Served bool
}

// Target is the namespace that objects go to.
type Target struct {
	Namespace string
	// Enforced: an object may name no other. Else it goes where it says.
	Enforced bool
}

// Read reads the namespaced objects of the manifests. The notes describe the
// assumptions, and the objects that were left out.
func Read(from *resource.FilenameOptions, target Target, mapper meta.RESTMapper) (objects []Object, notes []string, err error) {
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, from).Flatten().Do().Infos()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the manifests: %w", plainError(err))
	}
	read := make([]*unstructured.Unstructured, 0, len(infos))
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			read = append(read, object)
		}
	}
	if len(read) == 0 {
		return nil, nil, outcomes.NoManifest.Err()
	}
	return placed(read, target, mapper)
}

// plainError leaves the words of Go's decoders out of an error of reading files.
func plainError(err error) error {
	where, cause, _ := strings.Cut(err.Error(), ": ")
	if !strings.Contains(cause, "interface {}") && !strings.Contains(cause, "Go value") {
		return err
	}
	return outcomes.NotYAML.Err(where)
}

// placed returns the namespaced objects with their resources and namespaces. An
// object that is there twice counts once: it is applied twice.
func placed(read []*unstructured.Unstructured, target Target, mapper meta.RESTMapper) (objects []Object, notes []string, err error) {
	defined := definitions(read)
	at := map[string]int{} // object's identity -> its place in objects
	for _, object := range read {
		mapping, note, err := mappingOf(object, defined, mapper)
		if err != nil {
			return nil, nil, err
		}
		if note != "" {
			notes = append(notes, note)
		}
		if !mapping.namespaced {
			continue
		}
		if err := place(object, target); err != nil {
			return nil, nil, err
		}
		found := Object{Unstructured: object, Resource: mapping.resource, Served: mapping.served}
		id := fmt.Sprint(mapping.resource.GroupResource(), "/", object.GetNamespace(), "/", object.GetName())
		if where, again := at[id]; again && object.GetName() != "" {
			objects[where] = found
			continue
		}
		at[id] = len(objects)
		objects = append(objects, found)
	}
	return objects, notes, nil
}

func place(object *unstructured.Unstructured, target Target) error {
	switch named := object.GetNamespace(); {
	case named == "":
		object.SetNamespace(target.Namespace)
	case target.Enforced && named != target.Namespace:
		return outcomes.OtherNamespace.Err(object.GetKind(), object.GetName(), named, target.Namespace, named)
	}
	return nil
}

// mapping is the resource of a kind.
type mapping struct {
	resource   schema.GroupVersionResource
	namespaced bool
	served     bool
}

// mappingOf asks the cluster, then the definitions among the manifests, and then guesses, which it notes.
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
	if served, err := mapper.RESTMapping(kind.GroupKind()); err == nil {
		return mapping{}, "", outcomes.OtherVersion.Err(kind.GroupVersion(), kind.Kind, served.GroupVersionKind.GroupVersion())
	}
	if found, ok := defined[kind.GroupKind()]; ok {
		found.resource.Version = kind.Version
		return found, "", nil
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return mapping{resource: plural, namespaced: true}, guessed(kind, plural), nil
}

// definitions returns the mappings of the CustomResourceDefinitions among the objects.
func definitions(objects []*unstructured.Unstructured) map[schema.GroupKind]mapping {
	defined := map[schema.GroupKind]mapping{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		text := func(fields ...string) string {
			value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, fields...)...)
			return value // empty if it is no text
		}
		defined[schema.GroupKind{Group: text("group"), Kind: text("names", "kind")}] = mapping{
			resource:   schema.GroupVersionResource{Group: text("group"), Resource: text("names", "plural")},
			namespaced: text("scope") == "Namespaced",
		}
	}
	return defined
}

func missingNamespace(namespace string) string {
	return fmt.Sprintf("namespace %s doesn't exist, and which quotas will cover it isn't known: create it first, and ask again", namespace)
}

func unreadPresent(resource, namespace string) string {
	return fmt.Sprintf("You may not read %s in namespace %s: what is there is counted as if it were to be made.", resource, namespace)
}

func unreadLive(kind, namespace, name string) string {
	return fmt.Sprintf("You may not read %s %s/%s: it is counted as if it were new.", kind, namespace, name)
}

func guessed(kind schema.GroupVersionKind, plural schema.GroupVersionResource) string {
	return fmt.Sprintf("The cluster doesn't serve %s %s: it is counted as %s.", kind.GroupVersion(), kind.Kind, plural.GroupResource())
}
