// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	return o.crossOff(root.to(path...), into)
}

// crossOff crosses off what was read from the path.
func (o *Object) crossOff(at path, read any) error {
	taken, err := asFields(read)
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	at.visit(taken, func(path string, _ any) { delete(o.left, path) })
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

// leftBelow returns the paths of the values at the path and below that no conversion has taken, sorted.
func (o *Object) leftBelow(at path) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.left)), func(path string) bool { return !isBelow(path, string(at)) })
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

// path is where a value stands, as in spec.quota.hard["requests.cpu"] or
// spec.selectors[0].
type path string

// root is where the object itself stands.
const root path = ""

// plainName needs no quotes in a path.
const plainName = `^[A-Za-z_][A-Za-z0-9_-]*$`

var isPlain = regexp.MustCompile(plainName).MatchString //nolint:gochecknoglobals // compiled once

func (p path) to(names ...string) path {
	for _, name := range names {
		switch {
		case !isPlain(name):
			p += path("[" + strconv.QuoteToASCII(name) + "]")
		case p == root:
			p = path(name)
		default:
			p += path("." + name)
		}
	}
	return p
}

func (p path) index(i int) path { return path(fmt.Sprintf("%s[%d]", p, i)) }

// visit calls with each value that stands at the path or below and is neither an
// object nor a list. What is empty or null says nothing, and isn't visited.
func (p path) visit(value any, call func(path string, value any)) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for name, below := range value {
			p.to(name).visit(below, call)
		}
	case []any:
		for i, below := range value {
			p.index(i).visit(below, call)
		}
	default:
		call(string(p), value)
	}
}

// leaves returns all values by their paths.
func leaves(content any) map[string]any {
	all := map[string]any{}
	root.visit(content, func(path string, value any) { all[path] = value })
	return all
}

// isBelow reports whether a path is the prefix or below it.
func isBelow(path, prefix string) bool {
	rest, found := strings.CutPrefix(path, prefix)
	return found && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Kind is that of the object.
func (o *Object) Kind() schema.GroupVersionKind { return o.kind }

// Origin is where the object was read, as in "tenants.yaml, document 2".
func (o *Object) Origin() string { return o.origin }

// Content is the object as it was read.
func (o *Object) Content() map[string]any { return o.content }
