// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestParseSubject(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range Kinds() {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	for name, test := range map[string]struct {
		args []string
		want string
		fail string
	}{
		"a kind and a name":       {args: []string{"deployment/web"}, want: "Deployment web"},
		"apart":                   {args: []string{"deployment", "web"}, want: "Deployment web"},
		"a plural":                {args: []string{"statefulsets", "db"}, want: "StatefulSet db"},
		"with its group":          {args: []string{"deployment.apps/web"}, want: "Deployment web"},
		"in capitals":             {args: []string{"Job/import"}, want: "Job import"},
		"an autoscaler":           {args: []string{"horizontalpodautoscaler/web"}, want: "HorizontalPodAutoscaler web"},
		"of another group":        {args: []string{"deployment.example/web"}, fail: `unknown kind "deployment.example": use one of deployment, `},
		"of an unknown kind":      {args: []string{"secret/web"}, fail: `unknown kind "secret"`},
		"without a name":          {args: []string{"deployment"}, fail: "want KIND/NAME"},
		"with a name of nothing":  {args: []string{"deployment/"}, fail: "want KIND/NAME"},
		"with two names":          {args: []string{"deployment/web/x"}, fail: "want KIND/NAME"},
		"with a slash too many":   {args: []string{"deployment", "pod/web"}, fail: "want KIND/NAME"},
		"without anything at all": {fail: "want KIND/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSubject(test.args, mapper)
			if test.fail != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.fail) {
					t.Fatalf("got %v, want an error that begins with %q", err, test.fail)
				}
				return
			}
			if err != nil || got.Kind+" "+got.Name != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

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
		"two things are missing": {want: Match{Met: []Requirement{{Text: tier}}, Unmet: []Requirement{{Text: team}, {Text: owner}}}},
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
