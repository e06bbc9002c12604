// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

var (
	pods        = schema.GroupResource{Resource: "pods"}
	services    = schema.GroupResource{Resource: "services"}
	deployments = schema.GroupResource{Group: "apps", Resource: "deployments"}
	widgets     = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	claims      = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	events      = schema.GroupResource{Resource: "events"}
)

func testSettings() Settings {
	return Settings{
		Endpoint: Endpoint{URL: "https://127.0.0.1:9443"}, Paths: Paths{Objects: "/objects", Workloads: "/workloads", Quotas: "/quotas", Probe: "/probe"},
		Protected: []string{"kube-system", "operator"}, FailurePolicy: admissionregistrationv1.Fail,
	}
}

// teamQuota limits resources in the namespaces of one team.
func teamQuota(team string, limited ...schema.GroupResource) Quota {
	return Quota{
		Name: team, UID: types.UID(team), Generation: 1, Version: 7,
		Selector: selectorOf(map[string]string{"team": team}, nil), Limited: limited,
	}
}

func selectorOf(byLabels, byAnnotations map[string]string) definition.Selector {
	given := quotav1.ClusterResourceQuotaSelector{AnnotationSelector: byAnnotations}
	if byLabels != nil {
		given.LabelSelector = &metav1.LabelSelector{MatchLabels: byLabels}
	}
	selector, err := definition.CompileSelector(given)
	if err != nil {
		panic(err)
	}
	return selector
}

func webhooksFor(limited ...schema.GroupResource) []admissionregistrationv1.ValidatingWebhook {
	webhooks, _ := testSettings().Webhooks([]Quota{teamQuota("shop", limited...)})
	return webhooks
}

// configured is the configuration as the controller writes it.
func configured(webhooks []admissionregistrationv1.ValidatingWebhook, exact bool) *admissionregistrationv1.ValidatingWebhookConfiguration {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{Webhooks: webhooks}
	if !exact {
		configuration.Annotations = map[string]string{WideAnnotation: "why"}
	}
	return configuration
}

// Coverage is that of one quota.
func (s Settings) Coverage(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, quota Quota) Coverage {
	return s.Coverages(configuration, []Quota{quota})[0]
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
			if got := testSettings().Coverage(configured(webhooks, true), teamQuota("shop", test.limited...)); got != Exact {
				t.Errorf("coverage by the entries of what they were made for: got %v, want Exact", got)
			}
		})
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
	// Thirty seconds would pin the workers of every controller during an outage.
	for _, webhook := range webhooksFor(pods) {
		if *webhook.FailurePolicy != admissionregistrationv1.Fail || *webhook.MatchPolicy != admissionregistrationv1.Equivalent ||
			*webhook.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun || *webhook.TimeoutSeconds != 10 {
			t.Errorf("%s: got %+v", webhook.Name, webhook)
		}
		if diff := cmp.Diff([]string{"v1"}, webhook.AdmissionReviewVersions); diff != "" {
			t.Errorf("%s: versions (-want,+got):\n%s", webhook.Name, diff)
		}
	}
}

// matched are the entries that a namespace meets.
func matched(t fataler, webhooks []admissionregistrationv1.ValidatingWebhook, namespace string, with map[string]string) []string {
	t.Helper()
	set := labels.Set{"kubernetes.io/metadata.name": namespace}
	maps.Copy(set, with)
	var names []string
	for _, webhook := range webhooks[1:] {
		selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if selector.Matches(set) {
			names = append(names, fmt.Sprint(ruled(resourcesOf(webhook))))
		}
	}
	return names
}

func resourcesOf(webhook admissionregistrationv1.ValidatingWebhook) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, rule := range webhook.Rules {
		name, _, _ := strings.Cut(rule.Resources[0], "/")
		resources = append(resources, schema.GroupResource{Group: rule.APIGroups[0], Resource: name})
	}
	return resources
}

func TestTheNamespacesAndResourcesOfEntries(t *testing.T) {
	shop, blog := map[string]string{"team": "shop"}, map[string]string{"team": "blog"}
	for name, test := range map[string]struct {
		settings  func(*Settings)
		quotas    []Quota
		namespace string
		labels    map[string]string
		want      []string
	}{
		"a selected namespace": {
			quotas: []Quota{teamQuota("shop", pods)}, namespace: "a", labels: shop, want: []string{"[pods]"},
		},
		"one that is not": {quotas: []Quota{teamQuota("shop", pods)}, namespace: "a", labels: blog},
		"each quota's resources in its own": {
			quotas: []Quota{teamQuota("shop", pods), teamQuota("blog", services)}, namespace: "a", labels: blog,
			want: []string{"[services]"},
		},
		"those of all that select it": {
			quotas: []Quota{teamQuota("shop", pods), teamQuota("shop", services)}, namespace: "a", labels: shop,
			want: []string{"[pods services]"},
		},
		"a protected one, though selected": {
			quotas: []Quota{teamQuota("shop", pods)}, namespace: "kube-system", labels: shop,
		},
		"what is limited everywhere": {
			settings: func(s *Settings) { s.Everywhere = []schema.GroupResource{services} },
			quotas:   []Quota{teamQuota("shop", pods)}, namespace: "a", labels: blog, want: []string{"[services]"},
		},
		"that, and what a quota limits": {
			settings: func(s *Settings) { s.Everywhere = []schema.GroupResource{services} },
			quotas:   []Quota{teamQuota("shop", pods)}, namespace: "a", labels: shop, want: []string{"[pods services]"},
		},
		"any, where annotations select": {
			quotas:    []Quota{{Selector: selectorOf(nil, map[string]string{"owner": "me"}), Limited: []schema.GroupResource{pods}}},
			namespace: "a", labels: blog, want: []string{"[pods]"},
		},
		"any, past the bound": {
			quotas: tooMany(), namespace: "a", labels: nil, want: []string{"[pods services]"},
		},
		"no protected one, past the bound": {quotas: tooMany(), namespace: "kube-system", labels: shop},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			if test.settings != nil {
				test.settings(&settings)
			}
			webhooks, exact := settings.Webhooks(test.quotas)
			if diff := cmp.Diff(test.want, matched(t, webhooks, test.namespace, test.labels)); diff != "" {
				t.Errorf("asked about (-want,+got):\n%s", diff)
			}
			for _, quota := range test.quotas {
				if got := settings.Coverage(configured(webhooks, exact), quota); got == Missing {
					t.Errorf("the entries don't cover a quota that they were made for")
				}
			}
		})
	}
}

// tooMany quotas can't be told apart in maxEntries entries.
func tooMany() []Quota {
	var quotas []Quota
	for i := range maxEntries + 1 {
		key := fmt.Sprintf("key-%d", i)
		quotas = append(quotas, Quota{
			Selector: selectorOf(map[string]string{key: "a"}, nil), Limited: []schema.GroupResource{[]schema.GroupResource{pods, services}[i%2]},
		})
	}
	return quotas
}

func TestTheAddressThatTheAPIServerCalls(t *testing.T) {
	authority := []byte("authority")
	path := "/objects/exact-" + QuotaSet([]types.UID{"shop"}) + "/7-" + digestOf([]string{"shop 1"})
	for name, test := range map[string]struct {
		endpoint Endpoint
		want     admissionregistrationv1.WebhookClientConfig
	}{
		"a URL": {
			endpoint: Endpoint{URL: "https://127.0.0.1:9443", CABundle: authority},
			want:     admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:9443" + path), CABundle: authority},
		},
		"a Service": {
			endpoint: Endpoint{Namespace: "operator", Name: "webhook", CABundle: authority},
			want: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{
					Namespace: "operator", Name: "webhook", Path: ptr.To(path), Port: ptr.To[int32](443),
				},
				CABundle: authority,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			settings.Endpoint = test.endpoint
			webhooks, _ := settings.Webhooks([]Quota{teamQuota("shop", pods)})
			if diff := cmp.Diff(test.want, webhooks[1].ClientConfig); diff != "" {
				t.Errorf("client (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestCoverage(t *testing.T) {
	shop := func(limited ...schema.GroupResource) []Quota { return []Quota{teamQuota("shop", limited...)} }
	for name, test := range map[string]struct {
		of    []Quota
		harm  func(*admissionregistrationv1.ValidatingWebhook)
		quota Quota
		want  Coverage
	}{
		"nothing needs nothing":               {quota: teamQuota("shop"), want: Exact},
		"the same":                            {of: shop(pods), quota: teamQuota("shop", pods), want: Exact},
		"less":                                {of: shop(pods, widgets), quota: teamQuota("shop", widgets), want: Exact},
		"what can't be limited needs no rule": {quota: teamQuota("shop", events), want: Exact},
		"more is not covered":                 {of: shop(pods), quota: teamQuota("shop", pods, widgets)},
		"nor anything by no entries":          {quota: teamQuota("shop", pods)},
		"nor another team's":                  {of: shop(pods), quota: teamQuota("blog", pods)},
		"nor by another group's resource": {
			of: shop(schema.GroupResource{Group: "other", Resource: "widgets"}), quota: teamQuota("shop", widgets),
		},
		"nor by a rule that lacks an operation": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.Rules[0].Operations = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
			},
		},
		"nor where some of its namespaces are left out": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.NamespaceSelector.MatchExpressions = append(w.NamespaceSelector.MatchExpressions,
					metav1.LabelSelectorRequirement{Key: "exempt", Operator: metav1.LabelSelectorOpDoesNotExist})
			},
		},
		"nor by an entry that fails open": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			},
		},
		"nor by one of a quota that admits while nobody decides": {
			of: admitting(shop(pods)...), quota: teamQuota("shop", pods),
		},
		"by that, if the quota admits, too": {
			of: admitting(shop(pods)...), quota: admitting(shop(pods)...)[0], want: Exact,
		},
		"by one that fails closed, if the quota admits": {
			of: shop(pods), quota: admitting(shop(pods)...)[0], want: Exact,
		},
		"nor by one of which somebody closed what the path leaves open": {
			of: admitting(shop(pods)...), quota: admitting(shop(pods)...)[0],
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
			},
		},
		"nor by one that somebody opened together with its path": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				*w.ClientConfig.URL += "-admit"
				w.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
			},
		},
		"nor by one that asks somebody else": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.URL = ptr.To("https://192.0.2.1") },
		},
		"nor by one with a condition more": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "never", Expression: "false"})
			},
		},
		"a new certificate covers as before": {
			of: shop(pods), quota: teamQuota("shop", pods), want: Exact,
			harm: func(w *admissionregistrationv1.ValidatingWebhook) { w.ClientConfig.CABundle = []byte("before") },
		},
		"by annotations, too much": {
			of:   []Quota{{Selector: selectorOf(nil, map[string]string{"owner": "me"}), Limited: []schema.GroupResource{pods}}},
			want: Wide, quota: Quota{Selector: selectorOf(nil, map[string]string{"owner": "me"}), Limited: []schema.GroupResource{pods}},
		},
		"nor by an entry that is older than the quota's spec": {
			of: shop(pods), quota: Quota{Selector: selectorOf(map[string]string{"team": "shop"}, nil), Limited: []schema.GroupResource{pods}, Version: 8},
		},
		"nor by one without a question": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ClientConfig.URL = ptr.To("https://127.0.0.1:9443/objects")
			},
		},
		"nor by one with more behind its question": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) { *w.ClientConfig.URL += "/more" },
		},
		"nor by one at another path": {
			of: shop(pods), quota: teamQuota("shop", pods),
			harm: func(w *admissionregistrationv1.ValidatingWebhook) {
				w.ClientConfig.URL = ptr.To(strings.Replace(*w.ClientConfig.URL, "9443", "9443/other", 1))
			},
		},
		"past the bound, too much": {
			of: append(tooMany(), shop(pods)...), quota: teamQuota("shop", pods), want: Wide,
		},
	} {
		t.Run(name, func(t *testing.T) {
			webhooks, exact := testSettings().Webhooks(test.of)
			if test.harm != nil {
				test.harm(&webhooks[1])
			}
			if got := testSettings().Coverage(configured(webhooks, exact), test.quota); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
