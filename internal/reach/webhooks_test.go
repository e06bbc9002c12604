/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package reach

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	services    = schema.GroupResource{Resource: "services"}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	widgets     = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	claims      = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	events      = schema.GroupResource{Resource: "events"}
)

func testPaths() Paths { return Paths{Objects: "/objects", Quotas: "/quotas"} }

func webhooksFor(limited ...schema.GroupResource) []admissionregistrationv1.ValidatingWebhook {
	return Webhooks(Endpoint{URL: "https://127.0.0.1:9443"}, testPaths(), limited, []string{"kube-system", "operator"})
}

// ruleLines are the rules of an entry in a form that can be read.
func ruleLines(webhook admissionregistrationv1.ValidatingWebhook) []string {
	var lines []string
	for _, rule := range webhook.Rules {
		var operations []string
		for _, operation := range rule.Operations {
			operations = append(operations, string(operation))
		}
		lines = append(lines, strings.Join([]string{
			strings.Join(rule.APIGroups, ","), strings.Join(rule.APIVersions, ","), strings.Join(rule.Resources, ","),
			string(*rule.Scope), strings.Join(operations, "+"),
		}, " "))
	}
	return lines
}

func TestTheRulesCoverWhatIsLimited(t *testing.T) {
	for name, test := range map[string]struct {
		limited []schema.GroupResource
		want    []string
	}{
		"pods, and their resizing": {
			limited: []schema.GroupResource{pods},
			want:    []string{" v1 pods Namespaced CREATE+UPDATE", " v1 pods/resize Namespaced UPDATE"},
		},
		"what an update can charge": {limited: []schema.GroupResource{services}, want: []string{" v1 services Namespaced CREATE+UPDATE"}},
		"device claims in the version that is evaluated": {
			limited: []schema.GroupResource{claims}, want: []string{"resource.k8s.io v1 resourceclaims Namespaced CREATE+UPDATE"},
		},
		"creations of what is only counted, in any version": {
			limited: []schema.GroupResource{deployments, widgets},
			want:    []string{"apps * deployments Namespaced CREATE", "example.com * widgets Namespaced CREATE"},
		},
		"sorted, and each once": {
			limited: []schema.GroupResource{widgets, services, deployments, services, widgets},
			want: []string{
				"apps * deployments Namespaced CREATE", " v1 services Namespaced CREATE+UPDATE", "example.com * widgets Namespaced CREATE",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.limited)
			webhooks := webhooksFor(test.limited...)
			if len(webhooks) != 2 || webhooks[1].Name != ObjectsWebhook {
				t.Fatalf("got %d entries, want that of quotas and that of objects", len(webhooks))
			}
			slices.Sort(test.want)
			got := ruleLines(webhooks[1])
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("rules (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.limited); diff != "" {
				t.Errorf("what is limited was changed (-before,+after):\n%s", diff)
			}
			if !Covers(webhooks, test.limited) {
				t.Error("the entries don't cover what they were made for")
			}
		})
	}
}

func TestTheSameLimitsHaveTheSameEntries(t *testing.T) {
	if diff := cmp.Diff(webhooksFor(pods, widgets, services), webhooksFor(services, pods, widgets)); diff != "" {
		t.Errorf("in another order (-one,+other):\n%s", diff)
	}
}

func TestWithNothingLimitedNoObjectIsAskedAbout(t *testing.T) {
	for name, limited := range map[string][]schema.GroupResource{"nothing": nil, "only what can't be limited": {events}} {
		t.Run(name, func(t *testing.T) {
			webhooks := webhooksFor(limited...)
			if len(webhooks) != 1 || webhooks[0].Name != QuotasWebhook {
				t.Errorf("got %d entries, want that of quotas alone", len(webhooks))
			}
			want := []string{"quota.sharedquota.dev v1 clusterresourcequotas Cluster CREATE+UPDATE"}
			if diff := cmp.Diff(want, ruleLines(webhooks[0])); diff != "" {
				t.Errorf("rules (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEveryEntryFailsClosed(t *testing.T) {
	for _, webhook := range webhooksFor(pods) {
		if *webhook.FailurePolicy != admissionregistrationv1.Fail || *webhook.MatchPolicy != admissionregistrationv1.Equivalent ||
			*webhook.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun || *webhook.TimeoutSeconds != 30 {
			t.Errorf("%s: got %+v", webhook.Name, webhook)
		}
		if diff := cmp.Diff([]string{"v1"}, webhook.AdmissionReviewVersions); diff != "" {
			t.Errorf("%s: versions (-want,+got):\n%s", webhook.Name, diff)
		}
	}
}

func TestProtectedNamespacesAreNeverMatched(t *testing.T) {
	selector, err := metav1.LabelSelectorAsSelector(webhooksFor(pods)[1].NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]bool{"kube-system": false, "operator": false, "shop": true, "kube-public": true} {
		if got := selector.Matches(labels.Set{"kubernetes.io/metadata.name": namespace}); got != want {
			t.Errorf("namespace %s: got matched %v, want %v", namespace, got, want)
		}
	}
}

func TestWhereTheAPIServerCalls(t *testing.T) {
	authority := []byte("authority")
	for name, test := range map[string]struct {
		endpoint Endpoint
		want     admissionregistrationv1.WebhookClientConfig
	}{
		"a URL": {
			endpoint: Endpoint{URL: "https://127.0.0.1:9443", CABundle: authority},
			want:     admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:9443/objects"), CABundle: authority},
		},
		"a Service": {
			endpoint: Endpoint{Namespace: "operator", Name: "webhook", CABundle: authority},
			want: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: "operator", Name: "webhook", Path: ptr.To("/objects"), Port: ptr.To[int32](443),
				},
				CABundle: authority,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			webhooks := Webhooks(test.endpoint, testPaths(), []schema.GroupResource{pods}, []string{"kube-system"})
			if diff := cmp.Diff(test.want, webhooks[1].ClientConfig); diff != "" {
				t.Errorf("client (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	for name, test := range map[string]struct {
		webhooks []admissionregistrationv1.ValidatingWebhook
		limited  []schema.GroupResource
		want     bool
	}{
		"nothing needs nothing":                 {want: true},
		"the same":                              {webhooks: webhooksFor(pods), limited: []schema.GroupResource{pods}, want: true},
		"less":                                  {webhooks: webhooksFor(pods, widgets), limited: []schema.GroupResource{widgets}, want: true},
		"what can't be limited needs no rule":   {webhooks: webhooksFor(), limited: []schema.GroupResource{events}, want: true},
		"more is not covered":                   {webhooks: webhooksFor(pods), limited: []schema.GroupResource{pods, widgets}},
		"nor anything by no entries":            {limited: []schema.GroupResource{pods}},
		"nor by the entry of quotas alone":      {webhooks: webhooksFor(), limited: []schema.GroupResource{pods}},
		"nor by another group's resource":       {webhooks: webhooksFor(schema.GroupResource{Group: "other", Resource: "widgets"}), limited: []schema.GroupResource{widgets}},
		"nor by a rule that lacks an operation": {webhooks: lackingUpdates(webhooksFor(pods)), limited: []schema.GroupResource{pods}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Covers(test.webhooks, test.limited); got != test.want {
				t.Errorf("covers: got %v, want %v", got, test.want)
			}
		})
	}
}

func lackingUpdates(webhooks []admissionregistrationv1.ValidatingWebhook) []admissionregistrationv1.ValidatingWebhook {
	for i := range webhooks[1].Rules {
		webhooks[1].Rules[i].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	}
	return webhooks
}
