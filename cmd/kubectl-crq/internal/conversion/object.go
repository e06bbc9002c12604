// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Object is one object of the input, or a text that couldn't be read.
type Object struct {
	// origin is where the object was read, as in "tenants.yaml, document 2".
	origin  string
	kind    schema.GroupVersionKind
	content map[string]any
	// metadata has the fields that conversions look at.
	metadata metadata
	// unknown are the fields that no conversion has a place for.
	unknown []string
	// note says why there is no object. Its text is the unreadable one.
	note Note
	text string
}

type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func newObject(origin string, content map[string]any) Object {
	return Object{
		origin:  origin,
		kind:    schema.FromAPIVersionAndKind(text(content, "apiVersion"), text(content, "kind")),
		content: content,
	}
}

// NoObject stands for an object that couldn't be read, or was skipped on purpose.
func NoObject(subject Subject, origin, why string) Object {
	return Object{origin: origin, note: Note{subject, why}}
}

// named names the object by its kind and name, as in "Tenant solar".
func (o *Object) named() string {
	of, _ := o.content["metadata"].(map[string]any)
	kind, name := o.kind.Kind, text(of, "name")
	if kind == "" {
		kind = "something without a kind"
	}
	if namespace := text(of, "namespace"); namespace != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}

// String names the object for people, as in "Tenant solar (tenants.yaml)".
func (o *Object) String() string { return fmt.Sprintf("%s (%s)", o.named(), o.origin) }

// decode reads a top-level field into a type that has the converted fields, and notes the other ones. The case of names
// matters, as it does to the API server.
func (o *Object) decode(field string, into any) error {
	given, err := json.Marshal(o.content[field])
	if err != nil {
		return outcomes.NotAnObject.Err(field + ": ")
	}
	strict, err := strictjson.UnmarshalStrict(given, into)
	if mistyped := (*json.UnmarshalTypeError)(nil); errors.As(err, &mistyped) {
		at := strings.TrimSuffix(field+"."+mistyped.Field, ".")
		return wrongType(at, mistyped.Type.Kind().String(), strings.Fields(mistyped.Value)[0])
	}
	if err != nil {
		return outcomes.OfField.Err(field, unreadable("", err))
	}
	for _, err := range strict {
		if at, isField := err.(strictjson.FieldError); isField { //nolint:errorlint // not wrapped
			o.unknown = append(o.unknown, field+"."+at.FieldPath())
		}
	}
	return nil
}

// walk visits a value and all below it, in the order of their paths.
func walk(at string, value any, visit func(at string, value any)) {
	visit(at, value)
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			walk(strings.TrimPrefix(at+"."+name, "."), value[name], visit)
		}
	case []any:
		for i, item := range value {
			walk(fmt.Sprintf("%s[%d]", at, i), item, visit)
		}
	}
}

// first returns the first result of say for a value or a value below it.
func first(value any, say func(at string, value any) string) (said string) {
	walk("", value, func(at string, value any) {
		if said == "" {
			said = say(at, value)
		}
	})
	return said
}

// isBelow reports whether a path is the prefix or below it.
func isBelow(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
