// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func TestSummary(t *testing.T) {
	for name, test := range map[string]struct {
		used, hard corev1.ResourceList
		want       string
	}{
		"nothing is limited": {used: list("pods", "1")},
		"one resource":       {used: list("pods", "3"), hard: list("pods", "10"), want: "pods: 3/10"},
		"several are sorted": {used: list("requests.cpu", "300m", "pods", "3"), hard: list("requests.cpu", "2", "pods", "10"), want: "pods: 3/10, requests.cpu: 300m/2"},
		"what hasn't been counted has a question mark": {used: list("pods", "0"), hard: list("requests.cpu", "2", "pods", "10"), want: "pods: 0/10, requests.cpu: ?/2"},
		"what isn't limited is left out":               {used: list("pods", "3", "services", "1"), hard: list("pods", "10"), want: "pods: 3/10"},
		"quantities are in their own words":            {used: list("requests.memory", "1536Mi"), hard: list("requests.memory", "2Gi"), want: "requests.memory: 1536Mi/2Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Summary(test.used, test.hard)); diff != "" {
				t.Errorf("summary (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAmounts(t *testing.T) {
	for name, test := range map[string]struct {
		list corev1.ResourceList
		want string
	}{
		"nothing":                         {want: "none"},
		"nothing of what is known":        {list: list("pods", "0"), want: "none"},
		"several are sorted":              {list: list("requests.cpu", "100m", "pods", "1"), want: "pods: 1, requests.cpu: 100m"},
		"what there is none of is spared": {list: list("requests.cpu", "0", "pods", "1"), want: "pods: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Amounts(test.list)); diff != "" {
				t.Errorf("amounts (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	current := func(name corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: name, Operator: operator, Values: values}
	}
	for name, test := range map[string]struct {
		scopes       []corev1.ResourceQuotaScope
		requirements []corev1.ScopedResourceSelectorRequirement
		want         string
	}{
		"everything is limited": {want: "none"},
		"scopes are in the order of the spec": {
			scopes: []corev1.ResourceQuotaScope{"NotTerminating", "BestEffort"}, want: "NotTerminating, BestEffort",
		},
		"a selector may name values": {
			requirements: []corev1.ScopedResourceSelectorRequirement{
				current("PriorityClass", corev1.ScopeSelectorOpIn, "high", "low"), current("VolumeAttributesClass", corev1.ScopeSelectorOpNotIn, "gold"),
			},
			want: "PriorityClass in (high,low), VolumeAttributesClass notin (gold)",
		},
		"or ask whether there is any": {
			scopes: []corev1.ResourceQuotaScope{"Terminating"},
			requirements: []corev1.ScopedResourceSelectorRequirement{
				current("CrossNamespacePodAffinity", corev1.ScopeSelectorOpExists), current("PriorityClass", corev1.ScopeSelectorOpDoesNotExist),
			},
			want: "Terminating, CrossNamespacePodAffinity, no PriorityClass",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Scopes(test.scopes, &corev1.ScopeSelector{MatchExpressions: test.requirements})); diff != "" {
				t.Errorf("scopes (-want,+got):\n%s", diff)
			}
		})
	}
	if got := Scopes(nil, nil); got != "none" {
		t.Errorf("without a selector: %q", got)
	}
}

func TestAvailable(t *testing.T) {
	for name, test := range map[string]struct {
		hard, used, reserved, want corev1.ResourceList
	}{
		"what is left of the limit":           {hard: list("pods", "10"), used: list("pods", "3"), want: list("pods", "7")},
		"what is reserved isn't":              {hard: list("pods", "10"), used: list("pods", "3"), reserved: list("pods", "2"), want: list("pods", "5")},
		"nothing is, over the limit":          {hard: list("pods", "1"), used: list("pods", "3"), want: list("pods", "0")},
		"nor over it by what is reserved":     {hard: list("pods", "3"), used: list("pods", "3"), reserved: list("pods", "2"), want: list("pods", "0")},
		"what hasn't been counted is unknown": {hard: list("pods", "3", "services", "1"), used: list("pods", "1"), want: list("pods", "2")},
		"what isn't limited has no bound":     {hard: list("pods", "3"), used: list("pods", "1", "services", "1"), reserved: list("services", "1"), want: list("pods", "2")},
		"fractions add up":                    {hard: list("cpu", "2"), used: list("cpu", "250m"), reserved: list("cpu", "250m"), want: list("cpu", "1500m")},
		"of nothing limited, nothing is":      {used: list("pods", "1"), want: list()},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Available(test.hard, test.used, test.reserved); !quota.Equals(test.want, got) {
				t.Errorf("available: got %v, want %v", got, test.want)
			}
		})
	}
}
