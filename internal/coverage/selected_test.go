// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

func TestSelected(t *testing.T) {
	namespace := func(name, team, owner string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"team": team}, Annotations: map[string]string{"owner": owner},
		}}
	}
	index := &Index{
		cached: fake.NewClientBuilder().WithObjects(
			namespace("shop", "payments", "alice"), namespace("ledgers", "payments", "bob"), namespace("web", "search", "alice"),
		).Build(),
		live: fake.NewClientBuilder().WithObjects(
			namespace("shop", "payments", "alice"), namespace("new", "food", "bob"), namespace("newer", "food", "alice"),
		).Build(),
	}
	team := func(name string) selection.Selector {
		return mustSelect(t, quotav1.ClusterResourceQuotaSelector{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}},
		})
	}
	alices := mustSelect(t, quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"owner": "alice"}})
	for name, test := range map[string]struct {
		selectors []selection.Selector
		want      []string
	}{
		"by label":                        {selectors: []selection.Selector{team("payments")}, want: []string{"ledgers", "shop"}},
		"by annotation":                   {selectors: []selection.Selector{alices}, want: []string{"shop", "web"}},
		"by both":                         {selectors: []selection.Selector{alices, team("payments")}, want: []string{"shop"}},
		"none":                            {selectors: []selection.Selector{team("payments"), team("search")}},
		"what the cache doesn't know yet": {selectors: []selection.Selector{team("food")}, want: []string{"new", "newer"}},
		"what the cache doesn't know yet, by both": {
			selectors: []selection.Selector{alices, team("food")}, want: []string{"newer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := index.Selected(t.Context(), test.selectors...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("selected (-want,+got):\n%s", diff)
			}
		})
	}
}

func mustSelect(t *testing.T, selector quotav1.ClusterResourceQuotaSelector) selection.Selector {
	t.Helper()
	compiled, err := selection.Compile(selector)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
