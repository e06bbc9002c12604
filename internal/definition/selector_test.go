// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func requirement(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
}

func byLabels(matchLabels map[string]string, expressions ...metav1.LabelSelectorRequirement) quotav1.ClusterResourceQuotaSelector {
	return quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: matchLabels, MatchExpressions: expressions},
	}
}

func byAnnotations(annotations map[string]string) quotav1.ClusterResourceQuotaSelector {
	return quotav1.ClusterResourceQuotaSelector{AnnotationSelector: annotations}
}

func mustSelect(t interface{ Fatal(...any) }, selector quotav1.ClusterResourceQuotaSelector) Selector {
	compiled, err := CompileSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestAnnotationsChooseWithoutLabels(t *testing.T) {
	type set = map[string]string
	exact := byAnnotations(set{"Owner": "Alice B."})
	for name, selector := range map[string]quotav1.ClusterResourceQuotaSelector{"no labels": exact, "empty labels": withEmptyLabels(exact)} {
		compiled := mustSelect(t, selector)
		if !compiled.Matches(set{"team": "a"}, set{"Owner": "Alice B."}) || compiled.Matches(nil, set{"Owner": "Alice B. "}) || compiled.Matches(set{"Owner": "Alice B."}, nil) {
			t.Errorf("%s: %s selects others", name, compiled)
		}
	}
}

func withEmptyLabels(selector quotav1.ClusterResourceQuotaSelector) quotav1.ClusterResourceQuotaSelector {
	selector.LabelSelector = &metav1.LabelSelector{}
	return selector
}

func TestTheZeroSelectorMatchesNothing(t *testing.T) {
	if (Selector{}).Matches(map[string]string{"a": "b"}, nil) || (Selector{}).String() != "" {
		t.Error("the zero selector selects")
	}
	if (Selector{}).Labels().Matches(labels.Set{}) {
		t.Error("the labels of the zero selector select")
	}
}

func TestSelectorsThatDoNotCompile(t *testing.T) {
	const empty = "spec.selector: Required value: must restrict the namespaces: " +
		"give at least one entry in labels.matchLabels, labels.matchExpressions or annotations"
	wrong := byLabels(map[string]string{"not a key": "x"}, requirement("team", "In"), requirement("team", "Near", "x"), requirement("team", "In", "a b"))
	wrong.AnnotationSelector = map[string]string{"neither/a/key": "x"}

	for name, test := range map[string]struct {
		selector quotav1.ClusterResourceQuotaSelector
		want     []string // the error's parts, in this order
	}{
		"nothing":                      {want: []string{empty}},
		"empty labels":                 {selector: byLabels(nil), want: []string{empty}},
		"empty labels and annotations": {selector: withEmptyLabels(byAnnotations(map[string]string{})), want: []string{empty}},
		"everything wrong, by field": {selector: wrong, want: []string{
			`spec.selector.annotations: Invalid value: "neither/a/key": a valid label key`,
			`spec.selector.labels.matchExpressions[0].values: Required value: must be specified`,
			`spec.selector.labels.matchExpressions[1].operator: Invalid value: "Near": not a valid selector operator`,
			`spec.selector.labels.matchExpressions[2].values[0]: Invalid value: "a b": a valid label`,
			`spec.selector.labels.matchLabels: Invalid value: "not a key": name part`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := CompileSelector(test.selector)
			if err == nil || selector.labels != nil {
				t.Fatal("it compiled")
			}
			rest := err.Error()
			for _, want := range test.want {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("want %q in what is left of the error, %q", want, rest)
				}
				rest = after
			}
		})
	}
}

func TestSelectorsReadAsKubectlTakesThem(t *testing.T) {
	type set = map[string]string
	long := byLabels(set{"team": "payments", "app": ""}, requirement("tier", "NotIn", "test", "dev"), requirement("team", "Exists"),
		requirement("old", "DoesNotExist"), requirement("app", "In", "b", "a"))
	mixed := byLabels(set{"team": "payments"})
	mixed.AnnotationSelector = set{"openshift.io/requester": "alice", "cost": "7"}
	for want, selector := range map[string]quotav1.ClusterResourceQuotaSelector{
		"team=payments": byLabels(set{"team": "payments"}),
		"app in (a,b),app=,!old,team,team=payments,tier notin (dev,test)": long,
		"team=payments [cost=7,openshift.io/requester=alice]":             mixed,
		"[openshift.io/requester=alice]":                                  byAnnotations(set{"openshift.io/requester": "alice"}),
	} {
		t.Run(want, func(t *testing.T) {
			got := mustSelect(t, selector).String()
			if got != want {
				t.Errorf("want %q, got %q", want, got)
			}
			if _, err := labels.Parse(strings.Split(got, "[")[0]); err != nil {
				t.Errorf("kubectl would not take it: %v", err)
			}
		})
	}
}
