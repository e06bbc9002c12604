// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func TestSalvageOfAValidQuotaIsTheCompiledOne(t *testing.T) {
	if diff := cmp.Diff(mustCompile(t, team()).Limits, Salvage(team()).Limits); diff != "" {
		t.Errorf("limits (-compiled,+salvaged):\n%s", diff)
	}
	if got := Salvage(team()); got.Invalid != nil || got.Quota.Spec.ScopeSelector == nil {
		t.Errorf("got %+v, want the whole spec, and nothing invalid", got)
	}
}

func TestSalvageKeepsWhatIsLimitedAndNoScope(t *testing.T) {
	got := Salvage(team(func(q *quotav1.ClusterResourceQuota) {
		q.Spec.Quota.Hard = list("pods", "-1", "no such name!", "1", "requests.cpu", "1e40")
	}))
	if got.Invalid == nil || !strings.Contains(got.Invalid.Error(), "spec.quota.hard") {
		t.Errorf("invalid: got %v, want what is wrong", got.Invalid)
	}
	want := ledger.Limits{
		Name: "team", Hard: list("pods", "-1", "no such name!", "1", "requests.cpu", "1e40"),
		Basis: ledger.Basis{Quota: "uid", Generation: 3, Digest: got.Limits.Digest},
	}
	if diff := cmp.Diff(want, got.Limits); diff != "" {
		t.Errorf("limits (-want,+got):\n%s", diff)
	}
	if spec := got.Quota.Spec; got.Quota.Name != "team" || len(spec.Hard) != 3 || spec.Scopes != nil || spec.ScopeSelector != nil {
		t.Errorf("quota: got %+v, want its limits without scopes", got.Quota)
	}
}

func TestSalvageSelectsByTheRequirementsThatAreValid(t *testing.T) {
	exists := func(key string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpExists}
	}
	for name, test := range map[string]struct {
		selector quotav1.ClusterResourceQuotaSelector
		want     string
	}{
		"all of them": {
			selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"team": "shop"}, MatchExpressions: []metav1.LabelSelectorRequirement{exists("stage")},
				},
				AnnotationSelector: map[string]string{"owner": "alice"},
			},
			want: "stage,team=shop [owner=alice]",
		},
		"one of each kind": {
			selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{"team": "shop", "no label!": "x"},
					MatchExpressions: []metav1.LabelSelectorRequirement{
						exists("stage"), {Key: "tier", Operator: "Resembles", Values: []string{"web"}},
					},
				},
				AnnotationSelector: map[string]string{"owner": "alice", "no annotation!": "x"},
			},
			want: "stage,team=shop [owner=alice]",
		},
		"annotations alone": {
			selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector:      &metav1.LabelSelector{MatchLabels: map[string]string{"no label!": "x"}},
				AnnotationSelector: map[string]string{"owner": "alice"},
			},
			want: "[owner=alice]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Salvage(team(func(q *quotav1.ClusterResourceQuota) {
				q.Spec.Selector, q.Spec.Quota.Hard = test.selector, list("pods", "-1")
			}))
			if got.Selector.String() != test.want {
				t.Errorf("selector: got %s, want %s", got.Selector, test.want)
			}
		})
	}
}

func TestSalvageOfNoValidRequirementSelectsNothing(t *testing.T) {
	for name, selector := range map[string]quotav1.ClusterResourceQuotaSelector{
		"an empty selector": {},
		"an unreadable one": {LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"no label!": "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Salvage(team(func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector = selector }))
			if got.Invalid == nil || got.Selector.Matches(map[string]string{"team": "shop", "no label!": "x"}, nil) {
				t.Errorf("got %+v, want it invalid and selecting nothing", got)
			}
		})
	}
}
