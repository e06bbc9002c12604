// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// scopeTest reports whether a quota with this scope limits an object.
type scopeTest struct {
	scope    corev1.ResourceQuotaScope
	operator corev1.ScopeSelectorOperator // empty for Exists, which scopes without a selector mean
	values   []string
	object   runtime.Object
	want     bool
}

func podWith(change func(*corev1.Pod)) *corev1.Pod {
	pod := podOf(container("app", amountsOf("cpu", "1"), nil))
	change(pod)
	return pod
}

func podScopeTests() map[string]scopeTest {
	plain := podWith(func(*corev1.Pod) {})
	deadline := podWith(func(pod *corev1.Pod) { pod.Spec.ActiveDeadlineSeconds = ptr.To[int64](0) })
	idle := podOf(container("app", nil, nil))
	near := podWith(func(pod *corev1.Pod) { pod.Spec.Affinity = antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone"}) })
	abroad := podWith(func(pod *corev1.Pod) {
		pod.Spec.Affinity = antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"team-b"}})
	})
	anywhere := podWith(func(pod *corev1.Pod) {
		pod.Spec.Affinity = antiAffinity(corev1.PodAffinityTerm{TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{}})
	})
	high := podWith(func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" })
	const (
		terminating, notTerminating = corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating
		bestEffort, notBestEffort   = corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort
		priority, crossNamespace    = corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity
		in, notIn                   = corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn
		exists, doesNotExist        = corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist
	)
	return map[string]scopeTest{
		"a deadline makes a pod Terminating":              {scope: terminating, object: deadline, want: true},
		"without a deadline a pod isn't Terminating":      {scope: terminating, object: plain},
		"without a deadline a pod is NotTerminating":      {scope: notTerminating, object: plain, want: true},
		"with a deadline it isn't":                        {scope: notTerminating, object: deadline},
		"a pod that requests nothing is BestEffort":       {scope: bestEffort, object: idle, want: true},
		"a pod with requests isn't BestEffort":            {scope: bestEffort, object: plain},
		"a pod with requests is NotBestEffort":            {scope: notBestEffort, object: plain, want: true},
		"a pod that requests nothing isn't NotBestEffort": {scope: notBestEffort, object: idle},
		"a namespace that is named is abroad":             {scope: crossNamespace, object: abroad, want: true},
		"a namespace that is selected is abroad":          {scope: crossNamespace, object: anywhere, want: true},
		"affinity to its own namespace is not":            {scope: crossNamespace, object: near},
		"no affinity is not":                              {scope: crossNamespace, object: plain},
		"some priority class":                             {scope: priority, object: high, want: true},
		"some priority class, said with Exists":           {scope: priority, operator: exists, object: high, want: true},
		"no priority class":                               {scope: priority, object: plain},
		"no priority class, where none is asked for":      {scope: priority, operator: doesNotExist, object: plain, want: true},
		"a priority class, where none is asked for":       {scope: priority, operator: doesNotExist, object: high},
		"one of these priority classes":                   {scope: priority, operator: in, values: []string{"low", "high"}, object: high, want: true},
		"another priority class than these":               {scope: priority, operator: in, values: []string{"low"}, object: high},
		"no priority class is none of these":              {scope: priority, operator: in, values: []string{"low"}, object: plain},
		"a priority class that is not excluded":           {scope: priority, operator: notIn, values: []string{"low"}, object: high, want: true},
		"a priority class that is excluded":               {scope: priority, operator: notIn, values: []string{"high"}, object: high},
		"no priority class is not excluded":               {scope: priority, operator: notIn, values: []string{"high"}, object: plain, want: true},
	}
}

func antiAffinity(term corev1.PodAffinityTerm) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term},
	}}
}

func volumeClaimScopeTests() map[string]scopeTest {
	plain, wanted, current, target := volumeClaimOf("", "1"), volumeClaimOf("", "1"), volumeClaimOf("", "1"), volumeClaimOf("", "1")
	wanted.Spec.VolumeAttributesClassName = ptr.To("gold")
	current.Status.CurrentVolumeAttributesClassName = ptr.To("gold")
	target.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: "gold"}
	const class, in = corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpIn
	return map[string]scopeTest{
		"some volume attributes class":           {scope: class, object: wanted, want: true},
		"no volume attributes class":             {scope: class, object: plain},
		"none, where none is asked for":          {scope: class, operator: corev1.ScopeSelectorOpDoesNotExist, object: plain, want: true},
		"the class that is wanted":               {scope: class, operator: in, values: []string{"gold"}, object: wanted, want: true},
		"the class that the volume has":          {scope: class, operator: in, values: []string{"gold"}, object: current, want: true},
		"the class that the volume is moving to": {scope: class, operator: in, values: []string{"gold"}, object: target, want: true},
		"another class":                          {scope: class, operator: in, values: []string{"silver"}, object: wanted},
		"a class that is excluded":               {scope: class, operator: corev1.ScopeSelectorOpNotIn, values: []string{"gold"}, object: current},
		"a class that is not excluded":           {scope: class, operator: corev1.ScopeSelectorOpNotIn, values: []string{"silver"}, object: current, want: true},
		"scopes of pods leave volume claims out": {scope: corev1.ResourceQuotaScopeNotTerminating, object: plain},
	}
}

func TestScopesChooseWhatIsChargedAndCounted(t *testing.T) {
	for name, test := range podScopeTests() {
		t.Run("pods/"+name, func(t *testing.T) { test.run(t, pods(), "pods") })
	}
	for name, test := range volumeClaimScopeTests() {
		t.Run("volume claims/"+name, func(t *testing.T) { test.run(t, volumeClaims(), "persistentvolumeclaims") })
	}
	for name, scope := range map[string]corev1.ResourceQuotaScope{"pods": "NotTerminating", "volume claims": "VolumeAttributesClass"} {
		t.Run("services have no scope of "+name, func(t *testing.T) {
			scopeTest{scope: scope, object: serviceOf("ClusterIP")}.run(t, services(), "services")
		})
	}
}

func (test scopeTest) run(t *testing.T, resource schema.GroupResource, limited corev1.ResourceName) {
	quota := quotaOf("scoped", limited)
	if test.operator == "" {
		quota.Spec.Scopes = []corev1.ResourceQuotaScope{test.scope}
	} else {
		quota.Spec.ScopeSelector = scopeSelector(test.scope, test.operator, test.values...)
	}
	evaluators := newTestEvaluators()
	charges, err := evaluators.Charges(creation(resource, test.object), []Quota{quota})
	if err != nil || (len(charges) > 0) != test.want {
		t.Errorf("want charged %v, got %v, %v", test.want, charges, err)
	}
	footprint, err := evaluators.Footprint(resource, test.object)
	if err != nil {
		t.Fatal(err)
	}
	usage, err := evaluators.Usage(resource, footprint, quota, testNow())
	if err != nil || (len(usage) > 0) != test.want {
		t.Errorf("want counted %v, got %v, %v", test.want, usage, err)
	}
}

// A stand-in matches every quota that its object matches, and no other.
func TestStandInsMatchWhatTheirObjectsMatch(t *testing.T) {
	evaluators, outcomes := newTestEvaluators(), tally{}
	rapid.Check(t, func(t *rapid.T) {
		typed := anyTyped().Draw(t, "object")
		evaluator := evaluators.evaluator(typed.resource)
		if evaluator == nil {
			return // Events.
		}
		facts, err := factsOf(evaluator, typed.object)
		if err != nil {
			t.Fatal(err)
		}
		standIn := facts.standIn(neededObject(typed.resource))
		for _, spec := range rapid.SliceOfN(anyScopedSpec(), 30, 30).Draw(t, "specs") {
			spec.Hard = quotaOf("scoped", limitableNames()...).Spec.Hard
			quota := Quota{Name: "scoped", Spec: spec}
			want, err := evaluator.Matches(countedQuota(quota), typed.object)
			got, standInErr := evaluator.Matches(countedQuota(quota), standIn)
			if want != got || err != nil || standInErr != nil {
				t.Fatalf("object %v, %v; stand-in %v, %v; %v", want, err, got, standInErr, spec)
			}
			outcomes[map[bool]string{true: "matched", false: "not matched"}[want]]++
		}
	})
	outcomes.require(t, 100, "matched", "not matched")
}
