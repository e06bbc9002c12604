// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"
)

// judged is a quota whose workloads are judged.
func judged(team string) Quota {
	quota := teamQuota(team, pods)
	quota.Preflight = true
	return quota
}

func workloadEntries(quotas ...Quota) []admissionregistrationv1.ValidatingWebhook {
	webhooks, _ := testSettings().Webhooks(quotas)
	var found []admissionregistrationv1.ValidatingWebhook
	for _, webhook := range webhooks {
		if webhook.ClientConfig.URL != nil && *webhook.ClientConfig.URL == "https://127.0.0.1:9443/workloads" {
			found = append(found, webhook)
		}
	}
	return found
}

func TestWhoseWorkloadsAreAskedAbout(t *testing.T) {
	labelled := judged("tier")
	labelled.Selector = selectorOf(map[string]string{"tier": "gold"}, nil)
	for name, test := range map[string]struct {
		quotas []Quota
		want   []string
	}{
		"nobody's, if nobody wants it": {quotas: []Quota{teamQuota("shop", pods)}},
		"those of one": {
			quotas: []Quota{judged("shop"), teamQuota("office", pods)},
			want:   []string{WorkloadsWebhook + ": kubernetes.io/metadata.name notin (kube-system,operator),team in (shop)"},
		},
		"those of two by one entry": {
			quotas: []Quota{judged("shop"), judged("office")},
			want:   []string{WorkloadsWebhook + ": kubernetes.io/metadata.name notin (kube-system,operator),team in (office,shop)"},
		},
		"those of two, by two entries, because no label has both": {
			quotas: []Quota{judged("shop"), labelled},
			want: []string{
				WorkloadsWebhook + ": kubernetes.io/metadata.name notin (kube-system,operator),team notin (shop),tier in (gold)",
				"workloads-2.quota.sharedquota.dev: kubernetes.io/metadata.name notin (kube-system,operator),team in (shop)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, webhook := range workloadEntries(test.quotas...) {
				got = append(got, webhook.Name+": "+metav1.FormatLabelSelector(webhook.NamespaceSelector))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// With any failure policy of quotas, an entry for workloads is never in the way, and doesn't count as an entry that
// enforces: no quota counts as covered by it.
func TestAnEntryForWorkloadsIsNeverInTheWay(t *testing.T) {
	for _, entry := range workloadEntries(judged("shop")) {
		if ptr.Deref(entry.FailurePolicy, "") != admissionregistrationv1.Ignore || ptr.Deref(entry.TimeoutSeconds, 0) != 2 ||
			ptr.Deref(entry.SideEffects, "") != admissionregistrationv1.SideEffectClassNoneOnDryRun || IsOfObjects(entry) {
			t.Errorf("got %+v", entry)
		}
		want := []string{
			" v1 replicationcontrollers Namespaced CREATE+UPDATE", " v1 replicationcontrollers/scale Namespaced UPDATE",
			"apps v1 daemonsets,deployments,replicasets,statefulsets Namespaced CREATE+UPDATE",
			"apps v1 deployments/scale,replicasets/scale,statefulsets/scale Namespaced UPDATE",
			"autoscaling v2 horizontalpodautoscalers Namespaced CREATE+UPDATE", "batch v1 cronjobs,jobs Namespaced CREATE+UPDATE",
		}
		if diff := cmp.Diff(want, ruleLines(entry)); diff != "" {
			t.Errorf("(-want,+got):\n%s", diff)
		}
		alone := configured([]admissionregistrationv1.ValidatingWebhook{entry}, true)
		if got := testSettings().Coverage(alone, judged("shop")); got != Missing {
			t.Errorf("got coverage %v by it alone, want Missing", got)
		}
	}
}

func TestWhichWorkloadsAreAskedAbout(t *testing.T) {
	controlled := func(kind string, controller bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Controller: &controller}}
	}
	of := func(change func(current, old *appsv1.ReplicaSet)) update {
		current, old := &appsv1.ReplicaSet{}, &appsv1.ReplicaSet{}
		change(current, old)
		return updateOf("replicasets", "ReplicaSet", old, current)
	}
	for name, test := range map[string]struct {
		update update
		want   bool
	}{
		"a creation": {update: of(func(*appsv1.ReplicaSet, *appsv1.ReplicaSet) {}).but(func(u *update) { u.operation, u.old = admission.Create, nil }), want: true},
		"what a Deployment makes": {update: of(func(current, _ *appsv1.ReplicaSet) {
			current.OwnerReferences = controlled("Deployment", true)
		}).but(func(u *update) { u.operation, u.old = admission.Create, nil })},
		"a workload of a foreign controller": {update: of(func(current, _ *appsv1.ReplicaSet) {
			current.OwnerReferences = controlled("Rollout", true)
		}).but(func(u *update) { u.operation, u.old = admission.Create, nil }), want: true},
		"what a Deployment only owns": {update: of(func(current, _ *appsv1.ReplicaSet) {
			current.OwnerReferences, current.Spec.MinReadySeconds = controlled("Deployment", false), 1
		}), want: true},
		"an update of the labels": {update: of(func(current, _ *appsv1.ReplicaSet) { current.Labels = map[string]string{"a": "b"} })},
		"an update of the status": {update: of(func(current, _ *appsv1.ReplicaSet) { current.Status.Replicas = 7 })},
		"an update of the spec":   {update: of(func(current, _ *appsv1.ReplicaSet) { current.Spec.Replicas = ptr.To[int32](7) }), want: true},
		"a scale": {update: updateOf("replicasets", "Scale", &autoscalingv1.Scale{}, &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}).
			but(func(u *update) { u.subresource = "scale" }), want: true},
		"a scale to the same": {update: updateOf("replicasets", "Scale", &autoscalingv1.Scale{}, &autoscalingv1.Scale{}).
			but(func(u *update) { u.subresource = "scale" })},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, workloadConditions(), test.update); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
