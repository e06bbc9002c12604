// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// team is a valid quota, with these changes.
func team(changes ...func(*quotav1.ClusterResourceQuota)) *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid", Generation: 3},
		Spec: quotav1.ClusterResourceQuotaSpec{
			Selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector:      &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop", "stage": "prod"}},
				AnnotationSelector: map[string]string{"owner": "alice"},
			},
			Quota: quotav1.ResourceQuotaSpec{
				Hard:          list("pods", "10", "requests.cpu", "2"),
				Scopes:        []corev1.ResourceQuotaScope{"NotBestEffort", "NotTerminating"},
				ScopeSelector: priorities("high"),
			},
		},
	}
	for _, change := range changes {
		change(quota)
	}
	return quota
}

func priorities(classes ...string) *corev1.ScopeSelector {
	return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: classes},
	}}
}

func mustCompile(t *testing.T, object *quotav1.ClusterResourceQuota) Definition {
	t.Helper()
	compiled, err := Compile(object)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestCompile(t *testing.T) {
	compiled := mustCompile(t, team())
	want := ledger.Limits{
		Name: "team", Hard: list("pods", "10", "requests.cpu", "2"),
		Basis: ledger.Basis{Quota: "uid", Generation: 3, Digest: compiled.Limits.Digest},
	}
	if diff := cmp.Diff(want, compiled.Limits); diff != "" {
		t.Errorf("limits (-want,+got):\n%s", diff)
	}
	if compiled.Limits.Digest == "" {
		t.Error("want a digest")
	}
	if got := compiled.Quota; got.Name != "team" || len(got.Spec.Hard) != 2 || len(got.Spec.Scopes) != 2 || got.Spec.ScopeSelector == nil {
		t.Errorf("quota: got %+v, want the whole spec", got)
	}
	if got, want := compiled.Selector.String(), "stage=prod,team=shop [owner=alice]"; got != want {
		t.Errorf("selector: got %s, want %s", got, want)
	}
}

func TestAnInvalidQuotaDoesNotCompile(t *testing.T) {
	_, err := Compile(team(func(q *quotav1.ClusterResourceQuota) {
		q.Spec.Selector = quotav1.ClusterResourceQuotaSelector{}
		q.Spec.Quota.Hard = list("pods", "-1")
	}))
	if err == nil {
		t.Fatal("want an error")
	}
	for _, want := range []string{"quota team: ", "spec.selector", "spec.quota.hard[pods]"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error: got %q, want %q in it", err, want)
		}
	}
}

// Replicas of two releases share a ledger while one replaces the other, and a
// replica that computes another digest can't judge by the count for this one.
func TestTheDigestIsTheSameInEveryRelease(t *testing.T) {
	if got, want := mustCompile(t, team()).Limits.Digest, "d5f8a5515231db51"; got != want {
		t.Errorf("digest: got %s, want %s", got, want)
	}
}

func TestTheDigestChangesWithWhatIsCounted(t *testing.T) {
	before := mustCompile(t, team()).Limits.Digest
	for name, test := range map[string]struct {
		change func(*quotav1.ClusterResourceQuota)
		same   bool
	}{
		"nothing changes":               {change: func(*quotav1.ClusterResourceQuota) {}, same: true},
		"a limit is raised":             {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard = list("pods", "99", "requests.cpu", "2") }, same: true},
		"a limit is lowered to nothing": {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard = list("pods", "0", "requests.cpu", "2") }, same: true},
		"only its generation grows":     {change: func(q *quotav1.ClusterResourceQuota) { q.Generation++ }, same: true},
		"the quota itself is labelled":  {change: func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} }, same: true},
		"its status is written":         {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Summary = "pods: 1/10" }, same: true},
		"its scopes are ordered anew": {change: func(q *quotav1.ClusterResourceQuota) {
			q.Spec.Quota.Scopes = []corev1.ResourceQuotaScope{"NotTerminating", "NotBestEffort"}
		}, same: true},
		"it is made again": {change: func(q *quotav1.ClusterResourceQuota) { q.UID = "another" }},
		"more is limited": {change: func(q *quotav1.ClusterResourceQuota) {
			q.Spec.Quota.Hard = list("pods", "10", "requests.cpu", "2", "requests.memory", "1Gi")
		}},
		"less is limited":                {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard = list("pods", "10") }},
		"something else is limited":      {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Hard = list("pods", "10", "requests.memory", "2") }},
		"it has fewer scopes":            {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.Scopes = q.Spec.Quota.Scopes[:1] }},
		"its scopes select other values": {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.ScopeSelector = priorities("low") }},
		"it has no scope selector":       {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.ScopeSelector = nil }},
		"it selects by another label":    {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector.LabelSelector.MatchLabels["team"] = "office" }},
		"it selects by fewer labels":     {change: func(q *quotav1.ClusterResourceQuota) { delete(q.Spec.Selector.LabelSelector.MatchLabels, "stage") }},
		"it selects by an expression": {change: func(q *quotav1.ClusterResourceQuota) {
			q.Spec.Selector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: metav1.LabelSelectorOpExists}}
		}},
		"it selects by another annotation": {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector.AnnotationSelector["owner"] = "bob" }},
		"it selects without annotations":   {change: func(q *quotav1.ClusterResourceQuota) { q.Spec.Selector.AnnotationSelector = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			after := mustCompile(t, team(test.change)).Limits.Digest
			if same := before == after; same != test.same {
				t.Errorf("the same digest: got %v, want %v", same, test.same)
			}
		})
	}
}

func TestUpdatesThatChangeADefinition(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*quotav1.ClusterResourceQuota)
		want   bool
	}{
		"another status does not":   {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Summary = "pods: 1/2" }},
		"other labels do not":       {change: func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} }},
		"another spec does":         {change: func(q *quotav1.ClusterResourceQuota) { q.Generation++ }, want: true},
		"a quota made again does":   {change: func(q *quotav1.ClusterResourceQuota) { q.UID = "b" }, want: true},
		"the same object, relisted": {change: func(*quotav1.ClusterResourceQuota) {}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &quotav1.ClusterResourceQuota{}
			before.UID, before.Generation = "a", 1
			after := before.DeepCopy()
			test.change(after)
			if got := Changed(before, after); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
