// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// requiring adds requirements to a selector, as kubectl's --selector has them.
func requiring(selector *metav1.LabelSelector, text string) {
	parsed, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		panic(err)
	}
	selector.MatchExpressions = append(selector.MatchExpressions, parsed.MatchExpressions...)
	for key, value := range parsed.MatchLabels {
		if selector.MatchLabels == nil {
			selector.MatchLabels = map[string]string{}
		}
		selector.MatchLabels[key] = value
	}
}

// everywhere adds requirements to all selectors of namespaces.
func everywhere(text string) func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
	return func(current *admissionregistrationv1.ValidatingWebhookConfiguration) {
		for i := range current.Webhooks {
			requiring(current.Webhooks[i].NamespaceSelector, text)
		}
	}
}

// namespaceOf is a namespace with these labels, as in "team=shop,tier=web".
func namespaceOf(name, text string) Namespace {
	set, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		panic(err)
	}
	set[corev1.LabelMetadataName] = name
	return Namespace{Name: name, Labels: set}
}

func written(settings Settings, quotas ...Quota) *admissionregistrationv1.ValidatingWebhookConfiguration {
	webhooks, exact := settings.Webhooks(quotas)
	current := configured(append(webhooks, settings.Probe(editionAt(1))), exact)
	current.Generation, current.ResourceVersion = 1, "1"
	return current
}

func TestAdditionsByOthersAreReported(t *testing.T) {
	const entry = 1 // of objects
	type configuration = admissionregistrationv1.ValidatingWebhookConfiguration
	shop := namespaceOf("shop", "team=shop")
	for name, test := range map[string]struct {
		change     func(current *configuration)
		namespaces []Namespace
		// edited: what was changed isn't only added.
		edited bool
		want   Coverage
		words  string
	}{
		"nothing":                    {change: func(*configuration) {}, namespaces: []Namespace{shop}, want: Exact},
		"what takes nothing out":     {change: everywhere("!control-plane,example.com/by notin (aks)"), namespaces: []Namespace{shop}, want: Exact},
		"what no namespace meets":    {change: everywhere("example.com/by=me"), want: Exact},
		"what takes others' out":     {change: everywhere("!control-plane"), namespaces: []Namespace{shop, namespaceOf("other", "control-plane=true")}, want: Exact},
		"what takes a protected out": {change: everywhere("!control-plane"), namespaces: []Namespace{namespaceOf("operator", "team=shop,control-plane=true")}, want: Exact},
		"what takes one out": {
			change: everywhere("!control-plane"), namespaces: []Namespace{shop, namespaceOf("two", "team=shop,control-plane=true")},
			want: Missing, words: "the requirement !control-plane takes out the namespace two",
		},
		"labels that take some out": {
			change: everywhere("tier=web,!x"), namespaces: []Namespace{
				shop, namespaceOf("five", "team=shop,x=y,tier=web"), namespaceOf("b", "team=shop"), namespaceOf("c", "team=shop"),
			},
			want: Missing, words: "2 requirements: !x, tier in (web) takes out 4 namespaces: b, c, five and others",
		},
		"what only other entries have": {
			change: func(current *configuration) {
				requiring(current.Webhooks[0].NamespaceSelector, "!team")
				requiring(current.Webhooks[2].NamespaceSelector, "!control-plane")
			},
			namespaces: []Namespace{shop, namespaceOf("two", "team=shop,control-plane=true")}, edited: true, want: Exact,
		},
		"a key that a quota selects by": {
			change: everywhere("team notin (blog)"), namespaces: []Namespace{shop}, edited: true, want: Exact,
		},
		"a key that a quota selects by, so that nothing is left": {change: everywhere("!team"), edited: true, want: Missing},
		"a requirement of objects": {
			change: func(current *configuration) { requiring(current.Webhooks[entry].ObjectSelector, "!skip") }, edited: true, want: Missing,
		},
		"a requirement of quotas": {
			change: func(current *configuration) { requiring(current.Webhooks[0].ObjectSelector, "!skip") }, edited: true, want: Exact,
		},
		"one of probes that they meet":   {change: func(current *configuration) { requiring(current.Webhooks[2].ObjectSelector, "!skip") }, want: Exact},
		"one of probes that they do not": {change: func(current *configuration) { requiring(current.Webhooks[2].ObjectSelector, "skip") }, edited: true, want: Exact},
	} {
		t.Run(name, func(t *testing.T) {
			settings, quota := testSettings(), teamQuota("shop", pods)
			previous := written(settings, quota)
			current := previous.DeepCopy()
			test.change(current)
			before := current.DeepCopy()
			found := settings.Find(current, Keys([]Quota{quota}, previous))
			if diff := cmp.Diff(before, current); diff != "" {
				t.Errorf("what was found was changed (-before,+after):\n%s", diff)
			}
			if apiequality.Semantic.DeepEqual(previous.Webhooks, found.Own.Webhooks) == test.edited {
				t.Errorf("edited: want %t; (-was,+own):\n%s", test.edited, cmp.Diff(previous.Webhooks, found.Own.Webhooks))
			}
			coverage, words := settings.Cover(found, quota, found.Outside(test.namespaces))
			if coverage != test.want || words != test.words {
				t.Errorf("got %v and %q\nwant %v and %q", coverage, words, test.want, test.words)
			}
		})
	}
}

// Requirements of quotas that are gone are in the configuration until it is written.
func TestRequirementsOfBeforeAreNotTakenForAdded(t *testing.T) {
	settings := testSettings()
	previous := written(settings, teamQuota("shop", pods))
	if found := settings.Find(previous, Keys(nil, previous)); found.Touched() {
		t.Errorf("got %+v", found)
	}
}

// Whatever was added, a quota counts as covered if and only if the API server would ask
// about each of its namespaces that there is, and about all that there may be without what
// was added.
func TestAQuotaIsCoveredIfAllItsNamespacesAreAskedAbout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings, quotas := testSettings(), anyQuotas().Draw(t, "quotas")
		previous := written(settings, quotas...)
		current := previous.DeepCopy()
		for i := range current.Webhooks {
			text := rapid.SampledFrom([]string{"", "!plane", "plane notin (aks)", "plane=x", "!plane,zone"}).Draw(t, "added")
			requiring(current.Webhooks[i].NamespaceSelector, text)
		}
		var namespaces []Namespace
		for i := range rapid.IntRange(0, 8).Draw(t, "namespaces") {
			namespaces = append(namespaces, anyNamespace(t, fmt.Sprintf("n%d", i)))
		}
		found := settings.Find(current, Keys(quotas, previous))
		outside := found.Outside(namespaces)
		for _, quota := range quotas {
			got, words := settings.Cover(found, quota, outside)
			want := settings.Coverage(previous, quota)
			if want != Missing && slices.ContainsFunc(namespaces, func(namespace Namespace) bool {
				return quota.Selector.Matches(namespace.Labels, namespace.Annotations) && len(objectRules(quota.Limited)) > 0 &&
					!slices.Contains(settings.Protected, namespace.Name) && !isAsked(current, quota, namespace)
			}) {
				want = Missing
			}
			if got != want || (words != "") != (want == Missing && settings.Coverage(previous, quota) != Missing) {
				t.Fatalf("quota %s: got %v, %q, want %v", quota.Name, got, words, want)
			}
		}
	})
}

// isAsked reports whether the API server asks about what a quota limits in a namespace.
func isAsked(current *admissionregistrationv1.ValidatingWebhookConfiguration, quota Quota, namespace Namespace) bool {
	return slices.ContainsFunc(current.Webhooks, func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
		return err == nil && IsOfObjects(webhook) && selector.Matches(labels.Set(namespace.Labels)) &&
			hasAll(webhook.Rules, objectRules(quota.Limited))
	})
}

func anyNamespace(t *rapid.T, name string) Namespace {
	namespace := Namespace{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}, Annotations: map[string]string{}}
	for _, label := range []struct {
		key    string
		values []string
	}{
		{"a", []string{"", "1", "2", "none"}}, {"b", []string{"", "1", "2", "none"}}, {"plane", []string{"", "aks", "x"}}, {"zone", []string{"", "z"}},
	} {
		if value := rapid.SampledFrom(label.values).Draw(t, label.key); value != "" {
			namespace.Labels[label.key] = value
		}
	}
	if rapid.Bool().Draw(t, "mine") {
		namespace.Annotations["owner"] = "me"
	}
	return namespace
}
