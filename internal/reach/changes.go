// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadataField stands for what goes with the entries: owners and annotations.
const metadataField = "metadata"

// Changes says in which fields a configuration differs from what this operator, which
// is the manager own, has written, and which other managers own these. The API server
// knows no manager of what was removed, nor of what it changed itself while this operator
// wrote it.
func Changes(current, written *admissionregistrationv1.ValidatingWebhookConfiguration, own string) string {
	if current.ResourceVersion == "" {
		return "somebody deleted it"
	}
	entries := map[change][]string{} // with the Entry left out -> the names of entries
	for _, entry := range differing(current, written) {
		for _, field := range entry.fields {
			by := owners(current.ManagedFields, own, entry.name, field)
			key := change{by, field}
			entries[key] = append(entries[key], entry.name)
		}
	}
	keys := slices.SortedFunc(maps.Keys(entries), func(a, b change) int {
		return cmp.Or(cmp.Compare(a.by, b.by), cmp.Compare(a.field, b.field))
	})
	var parts []string
	for _, key := range keys {
		slices.Sort(entries[key])
		these := few("the entry", "entries", entries[key])
		switch key.field {
		case added, removed:
			parts = append(parts, key.by+" "+key.field+" "+these)
		case metadataField:
			parts = append(parts, key.by+" changed its metadata")
		default:
			parts = append(parts, key.by+" changed "+key.field+" of "+these)
		}
	}
	return strings.Join(parts, ", and ")
}

// change is what somebody has changed.
type change struct{ by, field string }

// difference is in which fields an entry differs. The entry without a name stands for
// what goes with them.
type difference struct {
	name   string
	fields []string
}

// differing returns the entries that differ.
func differing(current, written *admissionregistrationv1.ValidatingWebhookConfiguration) []difference {
	var all []difference
	present, before := fieldsOf(current), fieldsOf(written)
	for _, name := range slices.Sorted(maps.Keys(present)) {
		previous, found := before[name]
		if !found {
			all = append(all, difference{name, []string{added}})
			continue
		}
		var fields []string
		for _, field := range sortedKeys(present[name], previous) {
			if !apiequality.Semantic.DeepEqual(present[name][field], previous[field]) {
				fields = append(fields, field)
			}
		}
		if len(fields) > 0 {
			all = append(all, difference{name, fields})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, found := present[name]; !found {
			all = append(all, difference{name, []string{removed}})
		}
	}
	if !apiequality.Semantic.DeepEqual(current.OwnerReferences, written.OwnerReferences) || !Annotated(current, written) {
		all = append(all, difference{"", []string{metadataField}})
	}
	return all
}

// In place of a field: the whole entry.
const added, removed = "added", "removed"

// fieldsOf returns the fields of each entry by name.
func fieldsOf(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) map[string]map[string]any {
	all := map[string]map[string]any{}
	for i := range configuration.Webhooks {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&configuration.Webhooks[i])
		if err == nil { // the type has nothing that can't be converted
			all[configuration.Webhooks[i].Name] = fields
		}
	}
	return all
}

func sortedKeys(some, more map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(some)), maps.Keys(more))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// unowned is said where the API server names no manager.
const unowned = "somebody whom the API server doesn't name"

// owners says which managers but own have the field of an entry. The managed fields are
// keyed as in https://kubernetes.io/docs/reference/using-api/server-side-apply.
func owners(managed []metav1.ManagedFieldsEntry, own, entry, field string) string {
	path := []string{"f:webhooks", `k:{"name":` + strconv.Quote(entry) + `}`, "f:" + field}
	switch field {
	case added, removed:
		path = path[:2]
	case metadataField:
		path = []string{"f:" + metadataField}
	}
	var names []string
	for _, manager := range managed {
		if manager.Manager != own && manager.FieldsV1 != nil && has(manager.FieldsV1.GetRawBytes(), path) {
			names = append(names, strconv.Quote(manager.Manager))
		}
	}
	if len(names) == 0 {
		return unowned
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " and ")
}

// has reports whether managed fields have a path.
func has(fields []byte, path []string) bool {
	for _, step := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(fields, &level) != nil {
			return false
		}
		next, found := level[step]
		if !found {
			return false
		}
		fields = next
	}
	return true
}

// SameIntent reports whether two configurations that this operator makes ask about the same.
// They may do so by other tokens, and be of other editions.
func SameIntent(one, other *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return one.Annotations[WideAnnotation] == other.Annotations[WideAnnotation] &&
		apiequality.Semantic.DeepEqual(intent(one), intent(other))
}

func intent(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	var entries []admissionregistrationv1.ValidatingWebhook
	for _, webhook := range configuration.Webhooks {
		if webhook.Name == ProbeWebhook {
			continue
		}
		entry := *webhook.DeepCopy()
		for _, called := range []*string{entry.ClientConfig.URL, servicePath(entry.ClientConfig)} {
			if called != nil {
				*called = WithoutTokens(*called)
			}
		}
		entries = append(entries, entry)
	}
	return entries
}

func servicePath(called admissionregistrationv1.WebhookClientConfig) *string {
	if called.Service == nil {
		return nil
	}
	return called.Service.Path
}
