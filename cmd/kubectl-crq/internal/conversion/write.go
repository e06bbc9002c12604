// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// separator stands between the documents.
const separator = "---\n"

// YAML returns the quotas as documents, each below its notes. An object that became no quota is a comment in its place.
func YAML(outcomes []Outcome) ([]byte, error) {
	var blocks [][]byte
	for _, outcome := range outcomes {
		above := comments(outcome.Source, outcome.Notes)
		for _, manifest := range outcome.Manifests {
			document, err := document(manifest.Quota)
			if err != nil {
				return nil, err
			}
			blocks = append(blocks, slices.Concat(above, comments("", manifest.Notes), document))
			above = nil
		}
		if len(outcome.Manifests) == 0 {
			blocks = append(blocks, above)
		}
	}
	return bytes.Join(blocks, []byte(separator)), nil
}

// Comments returns all that there is to say, for where the output has no room for it.
func Comments(outcomes []Outcome) []byte {
	var text []byte
	for i := range outcomes {
		if notes := outcomes[i].allNotes(); len(notes) > 0 {
			text = append(text, comments(outcomes[i].Source, notes)...)
		}
	}
	return text
}

// comments returns a line for the source, if one is given, and one for each note.
func comments(source string, notes []Note) []byte {
	var text []byte
	if source != "" {
		text = fmt.Appendf(text, "# %s\n", plain(source))
	}
	for _, note := range notes {
		text = fmt.Appendf(text, "# %s: %s\n", note.Subject, plain(note.Text))
	}
	return text
}

func document(quota *quotav1.ClusterResourceQuota) ([]byte, error) {
	fields, err := fieldsOf(quota)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", quota.Name, err)
	}
	return text, nil
}

// fieldsOf returns the fields that must be applied: no status, and no time of creation.
func fieldsOf(quota *quotav1.ClusterResourceQuota) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(quota)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", quota.Name, err)
	}
	unstructured.RemoveNestedField(fields, "status")
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return fields, nil
}
