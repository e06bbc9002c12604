// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Object is one object of the input.
type Object struct {
	// origin is where the object was read, as in "tenants.yaml, document 2".
	origin  string
	kind    schema.GroupVersionKind
	content map[string]any
	// left are the values that no conversion has taken yet.
	left map[string]any // path -> value
}

func newObject(origin string, content map[string]any) Object {
	return Object{
		origin:  origin,
		kind:    schema.FromAPIVersionAndKind(text(content, "apiVersion"), text(content, "kind")),
		content: content,
		left:    leaves(content),
	}
}

func (o *Object) metadata(name string) string {
	fields, _ := o.content["metadata"].(map[string]any)
	return text(fields, name)
}

// String names the object for people, as in "Tenant solar (tenants.yaml)".
func (o *Object) String() string {
	kind, name := o.kind.Kind, o.metadata("name")
	if kind == "" {
		kind = "something without a kind"
	}
	if namespace := o.metadata("namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	if name == "" {
		return fmt.Sprintf("%s (%s)", kind, o.origin)
	}
	return fmt.Sprintf("%s %s (%s)", kind, name, o.origin)
}

// take reads what stands below the path into a value of a type that knows it,
// and crosses off what that type has a field for. Nothing there is no error.
func (o *Object) take(into any, path ...string) error {
	if err := o.read(into, path...); err != nil {
		return err
	}
	taken, err := asFields(into)
	if err != nil {
		return fmt.Errorf("reading %s: %w", root.to(path...), err)
	}
	root.to(path...).visit(taken, func(path string, _ any) { delete(o.left, path) })
	return nil
}

// read is take without crossing off. The case of names matters, as it does to
// the API server.
func (o *Object) read(into any, path ...string) error {
	below := any(o.content)
	for _, name := range path {
		fields, isObject := below.(map[string]any)
		if !isObject {
			return nil
		}
		below = fields[name]
	}
	given, err := json.Marshal(below)
	if err == nil {
		err = utiljson.Unmarshal(given, into)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", root.to(path...), err)
	}
	return nil
}

// ignore crosses off what stands below each of the paths.
func (o *Object) ignore(prefixes ...string) {
	maps.DeleteFunc(o.left, func(path string, _ any) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return isBelow(path, prefix) })
	})
}

// asFields returns a value as it would be written.
func asFields(value any) (any, error) {
	written, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("writing what was read: %w", err)
	}
	var fields any
	if err := utiljson.Unmarshal(written, &fields); err != nil {
		return nil, fmt.Errorf("writing what was read: %w", err)
	}
	return fields, nil
}
