// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func managedBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestItIsToldWhoChangedWhat(t *testing.T) {
	type configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	const ours, objects, quotas = "operator", `"k:{\"name\":\"objects.quota.sharedquota.dev\"}"`, `"k:{\"name\":\"quotas.quota.sharedquota.dev\"}"`
	for name, test := range map[string]struct {
		change func(current *configuration)
		by     []metav1.ManagedFieldsEntry
		want   string
	}{
		"one field": {
			change: func(current *configuration) {
				current.Webhooks[1].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			},
			by: []metav1.ManagedFieldsEntry{
				managedBy(ours, `{"f:webhooks":{`+objects+`:{"f:rules":{}}}}`),
				managedBy("labeller", `{"f:metadata":{"f:labels":{}}}`),
				managedBy("elsewhere", `{"f:webhooks":{`+quotas+`:{"f:failurePolicy":{}}}}`),
				managedBy("kubectl-edit", `{"f:webhooks":{`+objects+`:{"f:failurePolicy":{}}}}`),
				managedBy("unreadable", `[]`),
			},
			want: `"kubectl-edit" changed failurePolicy of the entry objects.quota.sharedquota.dev`,
		},
		"one field of several entries, and others by two": {
			change: func(current *configuration) {
				everywhere("!x")(current)
				current.Webhooks[1].TimeoutSeconds = ptr.To[int32](1)
			},
			by: []metav1.ManagedFieldsEntry{
				managedBy("b", `{"f:webhooks":{`+objects+`:{"f:namespaceSelector":{},"f:timeoutSeconds":{}},`+quotas+`:{"f:namespaceSelector":{}}}}`),
				managedBy("a", `{"f:webhooks":{`+objects+`:{"f:timeoutSeconds":{}}}}`),
			},
			want: `"a" and "b" changed timeoutSeconds of the entry objects.quota.sharedquota.dev, ` +
				`and "b" changed namespaceSelector of 2 entries: objects.quota.sharedquota.dev, quotas.quota.sharedquota.dev, ` +
				`and somebody whom the API server doesn't name changed namespaceSelector of the entry probe.quota.sharedquota.dev`,
		},
		"what is gone has no manager": {
			change: func(current *configuration) { current.Webhooks = current.Webhooks[:1] },
			want: "somebody whom the API server doesn't name removed 2 entries: " +
				"objects.quota.sharedquota.dev, probe.quota.sharedquota.dev",
		},
		"what is new": {
			change: func(current *configuration) {
				current.Webhooks = append(current.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: "more.example.com"})
			},
			by:   []metav1.ManagedFieldsEntry{managedBy("x", `{"f:webhooks":{"k:{\"name\":\"more.example.com\"}":{".":{}}}}`)},
			want: `"x" added the entry more.example.com`,
		},
		"what isn't in entries": {
			change: func(current *configuration) { current.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} },
			by:     []metav1.ManagedFieldsEntry{managedBy("x", `{"f:metadata":{"f:ownerReferences":{}}}`)},
			want:   `"x" changed its metadata`,
		},
		"all of it": {change: func(current *configuration) { *current = configuration{} }, want: "somebody deleted it"},
	} {
		t.Run(name, func(t *testing.T) {
			previous := written(testSettings(), teamQuota("shop", pods))
			current := previous.DeepCopy()
			current.ManagedFields = test.by
			test.change(current)
			if got := Changes(current, previous, ours); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A token that is replaced is no other intent, and neither is another edition.
func TestTheIntentIsWhatIsAskedAbout(t *testing.T) {
	settings, quota := testSettings(), teamQuota("shop", pods)
	with := func(change func(settings *Settings, quota *Quota)) *admissionregistrationv1.ValidatingWebhookConfiguration {
		settings, quota := settings, quota
		settings.Token = NewToken()
		change(&settings, &quota)
		return written(settings, quota)
	}
	nothing := func(*Settings, *Quota) {}
	for name, test := range map[string]struct {
		change func(*Settings, *Quota)
		same   bool
	}{
		"another token":     {change: nothing, same: true},
		"another spec":      {change: func(_ *Settings, quota *Quota) { quota.Generation++ }},
		"another policy":    {change: func(_ *Settings, quota *Quota) { quota.Admits = true }},
		"another authority": {change: func(settings *Settings, _ *Quota) { settings.Endpoint.CABundle = []byte("new") }},
	} {
		t.Run(name, func(t *testing.T) {
			if same := SameIntent(with(nothing), with(test.change)); same != test.same {
				t.Errorf("the same: got %t", same)
			}
			settings.Endpoint = Endpoint{Namespace: "operator", Name: "webhook"}
			defer func() { settings.Endpoint = testSettings().Endpoint }()
			if same := SameIntent(with(nothing), with(test.change)); same != test.same {
				t.Errorf("the same, of a Service: got %t", same)
			}
		})
	}
}
