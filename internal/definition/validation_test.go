// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

func TestInvalidQuotas(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		want    []string
	}{
		"nothing": {},
		"nothing, with a scope of claims": {changes: []change{
			limiting("persistentvolumeclaims", "1", "requests.storage", "1Gi"),
			withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "VolumeAttributesClass", Operator: "NotIn", Values: []string{"fast"}}),
		}},
		"a scope that doesn't exist": {
			changes: []change{scoped("Sometimes")},
			want: []string{
				`spec.quota.scopes: Invalid value: ["Sometimes"]: unsupported scope`,
			},
		},
		"a negative limit": {
			changes: []change{limiting("requests.cpu", "-1")},
			want: []string{
				`spec.quota.hard[requests.cpu]: Invalid value: "-1": must be greater than or equal to 0`,
			},
		},
		"half a pod": {
			changes: []change{limiting("pods", "500m")},
			want: []string{
				`spec.quota.hard[pods]: Invalid value: "500m": must be an integer`,
			},
		},
		"more than can be counted": {
			changes: []change{limiting("requests.cpu", "1e300000000", "requests.memory", "1e30", "limits.cpu", "0e300000000", "limits.memory", "1e29")},
			want: []string{
				`spec.quota.hard[limits.cpu]: Invalid value: "0": must be less than 1e30: write a smaller number`,
				`spec.quota.hard[requests.cpu]: Invalid value: "1e300000000": must be less than 1e30: write a smaller number`,
				`spec.quota.hard[requests.memory]: Invalid value: "1e30": must be less than 1e30: write a smaller number`,
			},
		},
		"a name without a domain": {
			changes: []change{limiting("gpus", "1")},
			want: []string{
				`spec.quota.hard[gpus]: Invalid value: "gpus": must be a standard resource for quota`,
				`spec.quota.hard[gpus]: Invalid value: "gpus": must be a standard resource type or fully qualified`,
			},
		},
		"a selector that selects everything": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{})},
			want: []string{
				"spec.selector: Required value: must restrict the namespaces: give at least one entry in labels.matchLabels, labels.matchExpressions or annotations",
			},
		},
		"a selector whose labels are empty": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{}})},
			want: []string{
				"spec.selector: Required value: must restrict the namespaces: give at least one entry in labels.matchLabels, labels.matchExpressions or annotations",
			},
		},
		"an expression with an unknown operator": {
			changes: []change{selecting(byExpression("team", "Near", "shop"))},
			want: []string{
				`spec.selector.labels.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`,
			},
		},
		"an annotation that no namespace can have": {
			changes: []change{selecting(quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a b": "c"}})},
			want: []string{
				`spec.selector.annotations: Invalid value: "a b": name part must consist of`,
			},
		},
		"a scope selector that lacks its values": {
			changes: []change{withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "PriorityClass", Operator: "In"})},
			want: []string{
				"spec.quota.scopeSelector.matchExpressions.values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
			},
		},
		"an expression about a label that no namespace can have": {
			changes: []change{selecting(byExpression("a b", metav1.LabelSelectorOpIn, "c d"))},
			want: []string{
				`spec.selector.labels.matchExpressions[0].key: Invalid value: "a b": name part must consist of`,
				`spec.selector.labels.matchExpressions[0].values[0]: Invalid value: "c d": a valid label must be an empty string or consist of`,
			},
		},
		"a scope of claims on what pods use": {
			changes: []change{
				limiting("pods", "1"),
				withScopeSelector(corev1.ScopedResourceSelectorRequirement{ScopeName: "VolumeAttributesClass", Operator: "In", Values: []string{"fast"}}),
			},
			want: []string{
				`spec.quota.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"VolumeAttributesClass","Operator":"In","Values":["fast"]}]}: unsupported scope applied to resource`,
			},
		},
		"a scope selector by values that no object can be compared with": {
			changes: []change{withScopeSelector(corev1.ScopedResourceSelectorRequirement{
				ScopeName: "PriorityClass", Operator: "In", Values: []string{"high", "very high", strings.Repeat("x", 64)},
			})},
			want: []string{
				`spec.quota.scopeSelector.matchExpressions[0].values[1]: Invalid value: "very high": can't be compared with any object: a valid label must be an empty string or consist of`,
				`spec.quota.scopeSelector.matchExpressions[0].values[2]: Invalid value: "` + strings.Repeat("x", 64) + `": can't be compared with any object: must be no more than 63`,
			},
		},
		"surge that is no room above a limit": {
			changes: []change{limiting("pods", "1"), func(object *quotav1.ClusterResourceQuota) {
				object.Spec.Surge.Hard = corev1.ResourceList{"pods": resource.MustParse("1500m"), "services": resource.MustParse("-1")}
			}},
			want: []string{
				`spec.surge.hard[pods]: Invalid value: "1500m": must be an integer`,
				`spec.surge.hard[services]: Invalid value: "-1": must be greater than or equal to 0`,
				`spec.surge.hard[services]: Invalid value: "-1": surge is room above a limit, and services has none: write it into spec.quota.hard, too, or remove it here`,
			},
		},
		"surge beyond all measure": {
			changes: []change{limiting("pods", "1"), func(object *quotav1.ClusterResourceQuota) {
				object.Spec.Surge.Hard = corev1.ResourceList{"pods": resource.MustParse("1e31")}
			}},
			want: []string{`spec.surge.hard[pods]: Invalid value: "10e30": must be less than 1e30: write a smaller number`},
		},
		"several mistakes at a time": {
			changes: []change{limiting("pods", "-1", "services", "1500m"), selecting(quotav1.ClusterResourceQuotaSelector{})},
			want: []string{
				`spec.quota.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`,
				`spec.quota.hard[services]: Invalid value: "1500m": must be an integer`,
				"spec.selector: Required value: must restrict the namespaces: ",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			requireWrong(t, Validate(team(test.changes...)), test.want)
		})
	}
}

// requireWrong compares errors with how they should begin.
func requireWrong(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	slices.Sort(got)
	for i := range min(len(got), len(want)) {
		if strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("wrong (-want,+got):\n%s", diff)
	}
}

// The text becomes a condition: it must not differ from one look to the next.
func TestTheSameMistakesAreToldInTheSameOrder(t *testing.T) {
	told := func() string {
		_, err := Compile(team(limiting("a", "-1", "b", "-1", "c", "-1", "pods", "-1", "services", "-1"),
			selecting(quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"a b": "", "c d": "", "e f": ""}})))
		if err == nil {
			t.Fatal("want an error")
		}
		return err.Error()
	}
	first := told()
	for range 50 {
		if diff := cmp.Diff(first, told()); diff != "" {
			t.Fatalf("told (-at first,+later):\n%s", diff)
		}
	}
}
