// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// files are path below the repository's root -> content.
type files map[string][]byte

// add renders an object as it would be written by hand: without a status, and
// without what its Go type says of fields that are not set.
func (f files) add(path string, object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	delete(fields, "status")
	if spec, ok := fields["spec"].(map[string]any); ok {
		for _, unset := range []string{"apiservicedefinitions", "cleanup"} {
			delete(spec, unset)
		}
	}
	document, err := yaml.Marshal(withoutNulls(fields))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, there := f[path]; there {
		return fmt.Errorf("%s: two objects have this name", path)
	}
	f[path] = append([]byte(generated), document...)
	return nil
}

// withoutNulls drops the fields that are null, such as a creationTimestamp.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			if field == nil {
				delete(value, name)
				continue
			}
			value[name] = withoutNulls(field)
		}
	case []any:
		for i := range value {
			value[i] = withoutNulls(value[i])
		}
	}
	return value
}

// write replaces the whole bundle below the directory, and the files beside it.
func (f files) write(root string) error {
	if err := os.RemoveAll(filepath.Join(root, bundleDir)); err != nil {
		return err
	}
	for path, content := range f {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
