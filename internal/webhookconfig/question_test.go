// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// anyQuestion draws the questions that are written.
func anyQuestion() *rapid.Generator[Question] {
	return rapid.Custom(func(t *rapid.T) Question {
		question := Question{
			Witness: rapid.SampledFrom([]Witness{WitnessNone, WitnessSome, WitnessExact}).Draw(t, "witness"),
			Epoch:   rapid.Uint64().Draw(t, "epoch"),
			Specs:   digestOf([]string{rapid.String().Draw(t, "specs")}),
		}
		if question.Witness == WitnessExact {
			question.Quotas = QuotaSet([]types.UID{types.UID(rapid.String().Draw(t, "quota"))})
		}
		return question
	})
}

func TestAQuestionIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyQuestion().Draw(t, "question")
		got, err := ParseQuestion(want.Path())
		if err != nil || got != want {
			t.Fatalf("got %+v and %v, want %+v", got, err, want)
		}
		for segment := range strings.SplitSeq(want.Path(), "/") {
			if problems := validation.IsDNS1123Subdomain(segment); len(problems) > 0 {
				t.Fatalf("the API server refuses the segment %q of a Service's path: %v", segment, problems)
			}
		}
	})
}

func FuzzParseQuestion(f *testing.F) {
	f.Add("exact-0123456789abcdef/12-0123456789abcdef")
	f.Add("any/0-0123456789abcdef")
	f.Fuzz(func(t *testing.T, path string) {
		if question, err := ParseQuestion(path); err == nil && question.Path() != path {
			t.Errorf("%q is read as %q", path, question.Path())
		}
	})
}

func TestPathsThatAreNoQuestion(t *testing.T) {
	const digest = "0123456789abcdef"
	for name, path := range map[string]string{
		"nothing":                         "",
		"a witness alone":                 "some",
		"no specs":                        "some/12",
		"an empty digest":                 "some/12-",
		"a short digest":                  "some/12-0123",
		"a digest of capitals":            "some/12-0123456789ABCDEF",
		"a digest that isn't hexadecimal": "some/12-0123456789abcdeg",
		"more behind it":                  "some/12-" + digest + "/more",
		"a slash behind it":               "some/12-" + digest + "/",
		"another witness":                 "none/12-" + digest,
		"no witness":                      "/12-" + digest,
		"exact, without quotas":           "exact/12-" + digest,
		"exact, with quotas cut short":    "exact-0123/12-" + digest,
		"quotas that aren't exact":        "some-" + digest + "/12-" + digest,
		"no epoch":                        "some/-" + digest,
		"an epoch with a sign":            "some/+12-" + digest,
		"an epoch with a zero before it":  "some/012-" + digest,
		"an epoch that is too large":      "some/18446744073709551616-" + digest,
	} {
		t.Run(name, func(t *testing.T) {
			if question, err := ParseQuestion(path); err == nil {
				t.Errorf("%q is read as %+v", path, question)
			}
		})
	}
}

func TestAQuotaSetHasNoOrder(t *testing.T) {
	one, other := QuotaSet([]types.UID{"a", "b"}), QuotaSet([]types.UID{"b", "a"})
	if one != other || one == QuotaSet([]types.UID{"a"}) || one == QuotaSet([]types.UID{"ab"}) {
		t.Errorf("got %s and %s", one, other)
	}
}

// asked are the questions of the entries that enforce.
func (s Settings) asked(t fataler, webhooks []admissionregistrationv1.ValidatingWebhook) []Question {
	t.Helper()
	var questions []Question
	for _, webhook := range webhooks[1:] {
		question, ours := s.isOurs(webhook)
		if !ours {
			t.Fatalf("entry %s isn't as it was generated: %+v", webhook.Name, webhook)
		}
		questions = append(questions, question)
	}
	return questions
}

func TestTheQuestionOfAnEntry(t *testing.T) {
	quota := func(name string, version uint64, byLabels, byAnnotations map[string]string, limited ...schema.GroupResource) Quota {
		return Quota{
			Name: name, UID: types.UID(name), Generation: 1, Version: version,
			Selector: selectorOf(byLabels, byAnnotations), Limited: limited,
		}
	}
	shop, tier, mine := map[string]string{"team": "shop"}, map[string]string{"tier": "x"}, map[string]string{"owner": "me"}
	for name, test := range map[string]struct {
		settings func(*Settings)
		quotas   []Quota
		want     []string
	}{
		"the quota that covers all of it": {
			quotas: []Quota{quota("a", 7, shop, nil, pods)}, want: []string{"exact [a] 7"},
		},
		"each quota, where two meet": {
			quotas: []Quota{quota("a", 7, shop, nil, pods), quota("b", 9, tier, nil, pods)},
			want:   []string{"exact [b] 9", "exact [a] 7", "exact [a b] 9"},
		},
		"some quota, because annotations select, too": {
			quotas: []Quota{quota("a", 7, shop, nil, pods), quota("b", 9, shop, mine, pods)}, want: []string{"some [a b] 9"},
		},
		"nothing, if annotations alone select": {
			quotas: []Quota{quota("b", 9, shop, mine, pods)}, want: []string{"any [b] 9"},
		},
		"also a quota that asks about nothing": {
			quotas: []Quota{quota("a", 7, shop, nil, pods), quota("b", 9, shop, nil)}, want: []string{"exact [a b] 9"},
		},
		"nothing but that some quota covers it, if a quota that asks about nothing covers a part": {
			quotas: []Quota{quota("a", 7, shop, nil, pods), quota("b", 9, tier, nil)}, want: []string{"some [a b] 9"},
		},
		"no quota, where all are asked about": {
			settings: func(s *Settings) { s.Everywhere = []schema.GroupResource{services} },
			quotas:   []Quota{quota("a", 7, shop, nil, pods)}, want: []string{"exact [] 0", "exact [a] 7"},
		},
		"nothing, past the bound": {
			quotas: tooMany(), want: []string{"any all 0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := testSettings()
			if test.settings != nil {
				test.settings(&settings)
			}
			webhooks, _ := settings.Webhooks(test.quotas)
			var got []string
			for _, question := range settings.asked(t, webhooks) {
				got = append(got, described(question, test.quotas))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("questions (-want,+got):\n%s", diff)
			}
		})
	}
}

// described is a question in a form that can be read.
func described(question Question, quotas []Quota) string {
	for subset := range 1 << min(len(quotas), 4) {
		names, uids, specs := []string{}, []types.UID{}, []string{}
		for i, quota := range quotas {
			if subset&(1<<i) != 0 {
				names, uids, specs = append(names, quota.Name), append(uids, quota.UID), append(specs, string(quota.UID)+" 1")
			}
		}
		if digestOf(specs) == question.Specs && (question.Quotas == "" || question.Quotas == QuotaSet(uids)) {
			return fmt.Sprint(question.Witness, " ", names, " ", question.Epoch)
		}
	}
	return fmt.Sprint(question.Witness, " all ", question.Epoch)
}

// anyQuotas draws quotas that select by the labels a and b, and sometimes by an
// annotation.
func anyQuotas() *rapid.Generator[[]Quota] {
	return rapid.Custom(func(t *rapid.T) []Quota {
		var quotas []Quota
		for i := range rapid.IntRange(0, 4).Draw(t, "quotas") {
			given := quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{}}
			for range rapid.IntRange(1, 2).Draw(t, "requirements") {
				requirement := metav1.LabelSelectorRequirement{
					Key:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key"),
					Operator: rapid.SampledFrom([]metav1.LabelSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}).Draw(t, "operator"),
				}
				if requirement.Operator == "In" || requirement.Operator == "NotIn" {
					requirement.Values = rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2"}), 1, 2).Draw(t, "values")
				}
				given.LabelSelector.MatchExpressions = append(given.LabelSelector.MatchExpressions, requirement)
			}
			if rapid.IntRange(0, 3).Draw(t, "with annotations") == 0 {
				given.AnnotationSelector = map[string]string{"owner": "me"}
			}
			selector, err := definition.CompileSelector(given)
			if err != nil {
				t.Fatal(err)
			}
			limited := rapid.SliceOfN(rapid.SampledFrom([]schema.GroupResource{pods, services, events}), 1, 2).Draw(t, "limited")
			quotas = append(quotas, Quota{
				Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint("quota ", i)), Generation: rapid.Int64Range(1, 3).Draw(t, "generation"),
				Version: rapid.Uint64Range(1, 100).Draw(t, "version"), Selector: selector, Limited: limited,
			})
		}
		return quotas
	})
}

// namespaces are all that the selectors of anyQuotas can tell apart, each as its
// labels and annotations.
func namespaces() [][2]map[string]string {
	var all [][2]map[string]string
	for _, a := range []string{"", "1", "2", "none"} {
		for _, b := range []string{"", "1", "2", "none"} {
			set := map[string]string{"kubernetes.io/metadata.name": "n"}
			if a != "" {
				set["a"] = a
			}
			if b != "" {
				set["b"] = b
			}
			all = append(all, [2]map[string]string{set, nil}, [2]map[string]string{set, {"owner": "me"}})
		}
	}
	return all
}

// An entry's claims about its quotas are true for each namespace that meets it.
func TestWitnessesAreRightAboutEveryNamespace(t *testing.T) {
	outcomes := map[Witness]int{}
	rapid.Check(t, func(t *rapid.T) {
		settings := testSettings()
		if rapid.IntRange(0, 3).Draw(t, "everywhere") == 0 {
			settings.Everywhere = []schema.GroupResource{services}
		}
		quotas := anyQuotas().Draw(t, "quotas")
		webhooks, _ := settings.Webhooks(quotas)
		for i, question := range settings.asked(t, webhooks) {
			outcomes[question.Witness]++
			selector, err := metav1.LabelSelectorAsSelector(webhooks[i+1].NamespaceSelector)
			if err != nil {
				t.Fatal(err)
			}
			for _, namespace := range namespaces() {
				if selector.Matches(labels.Set(namespace[0])) {
					wantWitness(t, question, quotas, namespace)
				}
			}
		}
	})
	for _, witness := range []Witness{WitnessNone, WitnessSome, WitnessExact} {
		if outcomes[witness] == 0 {
			t.Errorf("want every witness, got %v", outcomes)
		}
	}
}

func wantWitness(t *rapid.T, question Question, quotas []Quota, namespace [2]map[string]string) {
	t.Helper()
	var covering []types.UID
	for _, quota := range quotas {
		if !quota.Selector.Matches(namespace[0], namespace[1]) {
			continue
		}
		covering = append(covering, quota.UID)
		if question.Epoch < quota.Version {
			t.Fatalf("%v meets %+v, which is older than quota %+v", namespace, question, quota)
		}
	}
	switch question.Witness {
	case WitnessExact:
		if question.Quotas != QuotaSet(covering) {
			t.Fatalf("%v meets %+v and is covered by %v", namespace, question, covering)
		}
	case WitnessSome:
		if len(covering) == 0 {
			t.Fatalf("%v meets %+v and is covered by none", namespace, question)
		}
	case WitnessNone:
	}
}
