// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	strictjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Read returns the objects in YAML documents or JSON texts, with the items of
// lists in their place. A name that a document gives twice is an error: one of
// the two values would be lost.
func Read(file string, content []byte) ([]Object, error) {
	texts, err := split(content)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	var objects []Object
	for i, document := range texts {
		origin := file
		if len(texts) > 1 {
			origin = fmt.Sprintf("%s, document %d", file, i+1)
		}
		content, err := parse(document)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", origin, err)
		}
		if content != nil {
			objects = flatten(objects, origin, content)
		}
	}
	return objects, nil
}

// split returns the JSON texts of a file that begins like JSON, and the
// documents of any other.
func split(content []byte) ([][]byte, error) {
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		if texts, err := splitJSON(content); err == nil {
			return texts, nil
		}
		// Braces begin YAML as well.
	}
	var documents [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the end of document %d: %w", len(documents)+1, err)
		}
		documents = append(documents, document)
	}
}

func splitJSON(content []byte) ([][]byte, error) {
	var texts [][]byte
	decoder := json.NewDecoder(bytes.NewReader(content))
	for {
		var object json.RawMessage
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("parsing JSON: %w", err)
		}
		texts = append(texts, object)
	}
}

// parse returns the document's content, or nil where there is none.
func parse(document []byte) (map[string]any, error) {
	asJSON := document
	if !json.Valid(asJSON) {
		var err error
		if asJSON, err = yaml.YAMLToJSONStrict(document); err != nil {
			return nil, fmt.Errorf("parsing YAML: %w", err)
		}
	}
	var content any
	strict, err := strictjson.UnmarshalStrict(asJSON, &content)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, fmt.Errorf("parsing JSON: %w", err)
	}
	switch content := content.(type) {
	case nil:
		return nil, nil //nolint:nilnil // an empty document is no object, and no mistake
	case map[string]any:
		return content, nil
	}
	return nil, errors.New("not an object: it must have apiVersion, kind and metadata")
}

// flatten appends the object, or the items of a list in its place. An item of a
// list as the API server returns it has no kind of its own.
func flatten(objects []Object, origin string, content map[string]any) []Object {
	kind := text(content, "kind")
	items, listed := content["items"].([]any)
	if !listed || !strings.HasSuffix(kind, "List") {
		return append(objects, newObject(origin, content))
	}
	for i, item := range items {
		fields, isObject := item.(map[string]any)
		if !isObject {
			fields = map[string]any{}
		}
		if text(fields, "kind") == "" && kind != "List" {
			fields["kind"], fields["apiVersion"] = strings.TrimSuffix(kind, "List"), content["apiVersion"]
		}
		objects = flatten(objects, fmt.Sprintf("%s, item %d", origin, i+1), fields)
	}
	return objects
}

func text(fields map[string]any, name string) string {
	value, _ := fields[name].(string)
	return value
}
