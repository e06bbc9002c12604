// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestWhoEditedTheConfiguration(t *testing.T) {
	by := func(manager string, at int64, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Time: ptr.To(metav1.Unix(at, 0)), FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const entries, other = `{"f:webhooks":{"k:{\"name\":\"a\"}":{"f:failurePolicy":{}}}}`, `{"f:metadata":{"f:labels":{}}}`
	for name, test := range map[string]struct {
		managers []metav1.ManagedFieldsEntry
		want     string
	}{
		"a manager after the operator":         {managers: []metav1.ManagedFieldsEntry{by("own", 5, entries), by("kubectl-edit", 6, entries)}, want: `"kubectl-edit"`},
		"one in the same second":               {managers: []metav1.ManagedFieldsEntry{by("kubectl-edit", 5, entries), by("own", 5, entries)}, want: `"kubectl-edit"`},
		"one in the same second, listed later": {managers: []metav1.ManagedFieldsEntry{by("own", 5, entries), by("kubectl-edit", 5, entries)}, want: `"kubectl-edit"`},
		"the last of several":                  {managers: []metav1.ManagedFieldsEntry{by("b", 7, entries), by("own", 5, entries), by("a", 6, entries)}, want: `"b"`},
		"not one whose edit is repaired":       {managers: []metav1.ManagedFieldsEntry{by("a", 4, entries), by("own", 5, entries)}, want: "somebody whom the API server doesn't name"},
		"not one of labels": {
			managers: []metav1.ManagedFieldsEntry{by("own", 5, entries), by("labeller", 6, other), {Manager: "unreadable"}}, want: "somebody whom the API server doesn't name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			current.ResourceVersion, current.ManagedFields = "7", test.managers
			if got, want := EditOf(current, "own"), test.want+" edited the webhook configuration shared-quota"; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
