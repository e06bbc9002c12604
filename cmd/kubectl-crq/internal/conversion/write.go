// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// separator stands between the documents.
const separator = "---\n"

// YAML returns the quotas as documents, each below what there is to say about
// it. What became no quota is a comment where it would stand.
func YAML(outcomes []Outcome) ([]byte, error) {
	var text bytes.Buffer
	documents := 0
	for _, outcome := range outcomes {
		for i, manifest := range outcome.Manifests {
			switch {
			case documents > 0:
				text.WriteString(separator)
			case text.Len() > 0:
				text.WriteByte('\n')
			}
			documents++
			if i == 0 {
				writeComments(&text, outcome.Source, outcome.Notes)
			}
			writeComments(&text, "", manifest.Notes)
			document, err := document(manifest.Quota)
			if err != nil {
				return nil, err
			}
			text.Write(document)
		}
		if len(outcome.Manifests) == 0 {
			if text.Len() > 0 {
				text.WriteByte('\n')
			}
			writeComments(&text, outcome.Source, outcome.Notes)
		}
	}
	return text.Bytes(), nil
}

// JSON returns the quota, or a list of them if there are several.
func JSON(outcomes []Outcome) ([]byte, error) {
	items := []any{}
	for _, outcome := range outcomes {
		for _, manifest := range outcome.Manifests {
			fields, err := fieldsOf(manifest.Quota)
			if err != nil {
				return nil, err
			}
			items = append(items, fields)
		}
	}
	var content any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		content = items[0]
	}
	text, err := json.MarshalIndent(content, "", "    ")
	if err != nil {
		return nil, fmt.Errorf("writing JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// Comments returns all that there is to say, for where the output has no room
// for it.
func Comments(outcomes []Outcome) []byte {
	var text bytes.Buffer
	for _, outcome := range outcomes {
		notes := outcome.Notes
		for _, manifest := range outcome.Manifests {
			notes = slices.Concat(notes, manifest.Notes)
		}
		if len(notes) > 0 {
			writeComments(&text, outcome.Source, notes)
		}
	}
	return text.Bytes()
}

// writeComments writes a line for the source, if one is given, and one for each note.
func writeComments(text *bytes.Buffer, source string, notes []Note) {
	if source != "" {
		fmt.Fprintf(text, "# %s\n", plain(source))
	}
	for _, note := range notes {
		fmt.Fprintf(text, "# %s: %s\n", note.Subject, plain(note.Text))
	}
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

// fieldsOf returns what is to be applied: no status, and no time of creation.
func fieldsOf(quota *quotav1.ClusterResourceQuota) (map[string]any, error) {
	fields, err := asFields(quota)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", quota.Name, err)
	}
	wanted, _ := fields.(map[string]any)
	delete(wanted, "status")
	if metadata, given := wanted["metadata"].(map[string]any); given {
		delete(metadata, "creationTimestamp")
	}
	return wanted, nil
}
