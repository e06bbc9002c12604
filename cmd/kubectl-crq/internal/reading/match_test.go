// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestJudge(t *testing.T) {
	selector := quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{
			MatchLabels: map[string]string{"team": "payments"},
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"prod"}},
			},
		},
		AnnotationSelector: map[string]string{"owner": "vera"},
	}
	const team, tier, owner = "label team=payments", "label tier notin (prod)", "annotation owner=vera"
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                Match
		near                bool
	}{
		"all is met": {
			labels: map[string]string{"team": "payments"}, annotations: map[string]string{"owner": "vera", "other": "x"},
			want: Match{Covered: true, Met: []Requirement{{Text: team, Has: "team=payments"}, {Text: tier}, {Text: owner, Has: "owner=vera"}}},
		},
		"a label has another value": {
			labels: map[string]string{"team": "search"}, annotations: map[string]string{"owner": "vera"},
			want: Match{
				Met:   []Requirement{{Text: tier}, {Text: owner, Has: "owner=vera"}},
				Unmet: []Requirement{{Text: team, Has: "team=search"}},
			},
			near: true,
		},
		"a label has the wrong value": {
			labels: map[string]string{"team": "payments", "tier": "prod"}, annotations: map[string]string{"owner": "vera"},
			want: Match{
				Met:   []Requirement{{Text: team, Has: "team=payments"}, {Text: owner, Has: "owner=vera"}},
				Unmet: []Requirement{{Text: tier, Has: "tier=prod"}},
			},
			near: true,
		},
		"two things are missing": {
			want: Match{Met: []Requirement{{Text: tier}}, Unmet: []Requirement{{Text: team}, {Text: owner}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := MatchSelector(selector, c.labels, c.annotations)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("match (-want,+got):\n%s", diff)
			}
			if got.NearMiss() != c.near {
				t.Errorf("near miss: %t", got.NearMiss())
			}
		})
	}
}

func TestAnotherTeamIsFarAway(t *testing.T) {
	selector := quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	got, err := MatchSelector(selector, map[string]string{"team": "b"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Covered || got.NearMiss() {
		t.Errorf("got %+v", got)
	}
}

func TestASelectorThatDoesNotCompileIsAnError(t *testing.T) {
	if _, err := MatchSelector(quotav1.ClusterResourceQuotaSelector{}, nil, nil); err == nil {
		t.Error("no error")
	}
}
