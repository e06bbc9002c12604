// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	goyaml "go.yaml.in/yaml/v2"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Read returns the objects in YAML documents or JSON texts, with the items of
// lists in their place. A text that can't be read is an Object with the reason.
func Read(file string, content []byte) []Object {
	// PowerShell writes UTF-16.
	content, _, err := transform.Bytes(unicode.BOMOverride(encoding.Nop.NewDecoder()), content)
	if err != nil {
		return []Object{NoObject(Refused, file, outcomes.InvalidYAML.Text())}
	}
	var objects []Object
	texts := split(content)
	for i, document := range texts {
		origin := file
		if len(texts) > 1 {
			origin = fmt.Sprintf("%s, document %d", file, i+1)
		}
		content, err := parse(document)
		if err != nil || inComments.Match(document) {
			unread := NoObject(Refused, origin, unreadable(string(document), err))
			unread.text = string(document)
			objects = append(objects, unread)
			continue
		}
		objects = flatten(objects, origin, content)
	}
	if len(objects) == 0 {
		return []Object{NoObject(Skipped, file, outcomes.NothingInIt.Text())}
	}
	return objects
}

var (
	// boundary is a line that begins or ends a document.
	boundary = regexp.MustCompile(`(?m)^(---|\.{3})([ \t].*)?$`)
	// blank is a document with nothing but comments and directives.
	blank = regexp.MustCompile(`^(---|\.{3})?(\s+|#.*|%(YAML|TAG) .*)*$`)
)

// split returns the JSON texts of a file that begins like JSON, and the documents of any other.
func split(content []byte) [][]byte {
	if texts, isJSON := splitJSON(content); isJSON {
		return texts
	}
	content = bytes.ReplaceAll(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	var documents [][]byte
	begin := 0
	for _, at := range boundary.FindAllIndex(content, -1) {
		end := at[0]
		if content[end] == '.' {
			end = at[1]
		}
		documents = append(documents, content[begin:end])
		begin = end
	}
	return slices.DeleteFunc(append(documents, content[begin:]), blank.Match)
}

func splitJSON(content []byte) (texts [][]byte, isJSON bool) {
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var text json.RawMessage
		err := decoder.Decode(&text)
		if err != nil {
			return texts, errors.Is(err, io.EOF) && len(texts) > 0
		}
		texts = append(texts, text)
	}
}

// parse returns the content of a document. A name that it gives twice is an error: one of the two values would be lost.
func parse(document []byte) (any, error) {
	asJSON := document
	if !json.Valid(asJSON) {
		var err error
		if asJSON, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, fmt.Errorf("parsing YAML: %w", err)
		}
		if !isWhole(document) {
			return nil, outcomes.GoesOn.Err()
		}
	}
	var content any
	strict, err := strictjson.UnmarshalStrict(asJSON, &content)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	return content, nil
}

// isWhole reports whether a document is all of the text. The parser passes over the rest.
func isWhole(text []byte) bool {
	decoder := goyaml.NewDecoder(bytes.NewReader(text))
	var content any
	return decoder.Decode(&content) == nil && errors.Is(decoder.Decode(&content), io.EOF)
}

// flatten appends the object, or the items of a list in its place. An item of a
// list as the API server returns it has no kind of its own.
func flatten(objects []Object, origin string, content any) []Object {
	switch content := content.(type) {
	case nil:
		return objects
	case []any:
		for i, item := range content {
			objects = flatten(objects, fmt.Sprintf("%s, item %d", origin, i+1), item)
		}
		return objects
	case map[string]any:
		kind := text(content, "kind")
		given, has := content["items"]
		if !has || !strings.HasSuffix(kind, "List") {
			return append(objects, newObject(origin, content))
		}
		items, listed := given.([]any)
		if !listed && given != nil {
			return append(objects, NoObject(Refused, origin, outcomes.NoList.Text()))
		}
		if kind != "List" {
			nameKinds(items, strings.TrimSuffix(kind, "List"), content["apiVersion"])
		}
		return flatten(objects, origin, items)
	}
	return append(objects, NoObject(Refused, origin, outcomes.NotAnObject.Text("")))
}

func nameKinds(items []any, kind string, version any) {
	for _, item := range items {
		if fields, isObject := item.(map[string]any); isObject && text(fields, "kind") == "" {
			fields["kind"], fields["apiVersion"] = kind, version
		}
	}
}

func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}
