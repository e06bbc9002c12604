// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
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

// errNothing is returned where there is no object at all.
var errNothing = errors.New("no objects found in the manifests")

// Read reads the namespaced objects of the manifests. The notes tell what was
// assumed, and what was left out.
func Read(from *resource.FilenameOptions, target Target, mapper meta.RESTMapper) (objects []Object, notes []string, err error) {
	infos, err := resource.NewLocalBuilder().Unstructured().FilenameParam(false, from).Flatten().Do().Infos()
	if err != nil {
		return nil, nil, fmt.Errorf("reading the manifests: %w", err)
	}
	read := make([]*unstructured.Unstructured, 0, len(infos))
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			read = append(read, object)
		}
	}
	if len(read) == 0 {
		return nil, nil, errNothing
	}
	return placed(read, target, mapper)
}

// placed returns the namespaced objects with their resources and namespaces. An
// object that is there twice counts once: it is applied twice.
func placed(read []*unstructured.Unstructured, target Target, mapper meta.RESTMapper) (objects []Object, notes []string, err error) {
	defined := definitions(read)
	at := map[string]int{} // what an object is -> its place in objects
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
		return errors.New(otherNamespace(object.GetKind(), object.GetName(), named, target.Namespace))
	}
	return nil
}
