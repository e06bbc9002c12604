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

package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

type change = func(*quotav1.ClusterResourceQuota)

func byExpression(key string, operator metav1.LabelSelectorOperator, values ...string) quotav1.ClusterResourceQuotaSelector {
	return quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}},
	}}
}

func limiting(hard ...string) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota = quotav1.ResourceQuotaSpec{Hard: list(hard...)} }
}

func scoped(scopes ...corev1.ResourceQuotaScope) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Scopes, q.Spec.Quota.ScopeSelector = scopes, nil }
}

func selecting(selector quotav1.ClusterResourceQuotaSelector) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector = selector }
}

func withScopeSelector(requirement corev1.ScopedResourceSelectorRequirement) change {
	return func(q *quotav1.ClusterResourceQuota) {
		q.Spec.Quota.Scopes = nil
		q.Spec.Quota.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{requirement}}
	}
}

func TestWhatIsWrongWithAQuota(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		want    []string
	}{
		"nothing": {},
		"a scope that doesn't exist": {
			changes: []change{scoped("Sometimes")},
			want:    []string{ /*0*/ },
		},
		"scopes that exclude each other": {
			changes: []change{scoped("BestEffort", "NotBestEffort")},
			want:    []string{ /*1*/ },
		},
		"scopes of time that exclude each other": {
			changes: []change{scoped("Terminating", "NotTerminating")},
			want:    []string{ /*2*/ },
		},
		"a scope on what it can't limit": {
			changes: []change{limiting("services", "1"), func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Scopes = []corev1.ResourceQuotaScope{"BestEffort"} }},
			want:    []string{ /*3*/ },
		},
		"a negative limit": {
			changes: []change{limiting("requests.cpu", "-1")},
			want:    []string{ /*4*/ },
		},
		"half a pod": {
			changes: []change{limiting("pods", "500m")},
			want:    []string{ /*5*/ },
		},
		"half a count of something": {
			changes: []change{limiting("count/widgets.example.com", "1500m")},
			want:    []string{ /*6*/ },
		},
		"a name without a domain": {
			changes: []change{limiting("gpus", "1")},
			want:    []string{ /*7*/ },
		},
		"a name that isn't one": {
			changes: []change{limiting("Not a name!", "1")},
			want:    []string{ /*8*/ },
		},
		"a selector that selects everything": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{})},
			want:    []string{ /*9*/ },
		},
		"a selector whose labels are empty": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{}})},
			want:    []string{ /*10*/ },
		},
		"an expression with an unknown operator": {
			changes: []change{selecting(byExpression("team", "Near", "shop"))},
			want:    []string{ /*11*/ },
		},
		"an expression that lacks its values": {
			changes: []change{selecting(byExpression("team", metav1.LabelSelectorOpIn))},
			want:    []string{ /*12*/ },
		},
		"an expression that has values to spare": {
			changes: []change{selecting(byExpression("team", metav1.LabelSelectorOpExists, "shop"))},
			want:    []string{ /*13*/ },
		},
		"a label that no namespace can have": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c d"}}})},
			want:    []string{ /*14*/ },
		},
		"an annotation that no namespace can have": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a b": "c"}})},
			want:    []string{ /*15*/ },
		},
		"a scope selector that lacks its values": {
			changes: []change{withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: "In"})},
			want:    []string{ /*16*/ },
		},
		"a scope selector with an unknown operator": {
			changes: []change{withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: "Near", Values: []string{"high"}})},
			want:    []string{ /*17*/ },
		},
		"a scope selector by values of a scope that has none": {
			changes: []change{withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "BestEffort", Operator: "In", Values: []string{"high"}})},
			want:    []string{ /*18*/ },
		},
		"several mistakes at a time": {
			changes: []change{limiting("pods", "-1", "services", "1500m"), selecting(quotav1.ClusterResourceQuotaSelector{})},
			want:    []string{ /*19*/ },
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range Validate(team(test.changes...)) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("wrong (-want,+got):\n%s", diff)
			}
		})
	}
}
