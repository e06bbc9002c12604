// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

func mustFootprint(t interface{ Fatal(...any) }, evaluators *Evaluators, resource schema.GroupResource, object runtime.Object) Footprint {
	footprint, err := evaluators.Footprint(resource, object)
	if err != nil {
		t.Fatal(err)
	}
	return footprint
}

func deletedPod(in, grace time.Duration) *corev1.Pod {
	pod := typicalPod()
	pod.DeletionTimestamp = &metav1.Time{Time: testNow().Add(in)}
	pod.DeletionGracePeriodSeconds = ptr.To(int64(grace / time.Second))
	return pod
}

// At every moment a footprint uses the amount that Kubernetes measures at that
// moment, also right before and right at its change.
func TestFootprintsKnowTheFuture(t *testing.T) {
	evaluators, outcomes := newTestEvaluators(), tally{}
	quotaOfAll := quotaOf("all", limitableNames()...)
	rapid.Check(t, func(t *rapid.T) {
		pod := anyPod().Draw(t, "pod")
		footprint := mustFootprint(t, evaluators, pods(), pod)
		moments := []time.Time{testNow(), testNow().Add(-2 * time.Hour), testNow().Add(2 * time.Hour)}
		if changesAt, changes := footprint.ChangesAt(); changes {
			outcomes["changes"]++
			moments = append(moments, changesAt.Add(-1), changesAt)
		}
		requireTheSameAtEachMoment(t, footprint, moments)
		for _, moment := range moments {
			want, err := core.PodUsageFunc(upToDate(pod), clockAt{now: moment})
			if err != nil {
				t.Fatal(err)
			}
			want = quota.Mask(quota.RemoveZeros(want), quota.ResourceNames(quotaOfAll.Spec.Hard))
			got, err := evaluators.Usage(pods(), footprint, quotaOfAll, moment)
			if err != nil || !quota.Equals(want, got) {
				t.Fatalf("at %v want %v, got %v, %v", moment, want, got, err)
			}
		}
	})
	outcomes.require(t, 1, "changes")
}

// The footprint of a moment has the same use for as long as the object does, and
// later.
func requireTheSameAtEachMoment(t *rapid.T, footprint Footprint, moments []time.Time) {
	for _, one := range moments {
		if current := footprint.At(one); current.At(one.Add(24*time.Hour)) != current {
			t.Fatal("what is used at a moment changes later")
		}
		for _, other := range moments {
			same := footprint.At(one).usage == footprint.At(other).usage
			if got := footprint.At(one) == footprint.At(other); got != same {
				t.Fatalf("at %v and %v: want the same %v, got %v", one, other, same, got)
			}
		}
	}
}

// Kubernetes' arithmetic overflows after three centuries, and takes such a pod for gone while it runs.
func TestAPodWithAGraceOfCenturiesCountsAsLongAsItIsThere(t *testing.T) {
	evaluators := newTestEvaluators()
	for _, grace := range []int64{longestGrace + 1, 5_000_000_000, 10_000_000_000, math.MaxInt64} {
		pod := deletedPod(time.Minute, 0)
		pod.DeletionGracePeriodSeconds = &grace
		footprint := mustFootprint(t, evaluators, pods(), pod)
		if after, changes := footprint.ChangesAfter(); changes {
			t.Errorf("grace %d: it counts for %s", grace, after)
		}
		used, err := evaluators.Usage(pods(), footprint, quotaOf("all", "pods"), testNow().Add(time.Hour))
		if count := used["pods"]; err != nil || count.Value() != 1 {
			t.Errorf("grace %d: want one pod, got %v, %v", grace, used, err)
		}
	}
	grace := int64(longestGrace)
	pod := deletedPod(time.Minute, 0)
	pod.DeletionGracePeriodSeconds = &grace
	if after, _ := mustFootprint(t, evaluators, pods(), pod).ChangesAfter(); after <= 0 {
		t.Errorf("the longest grace: it counts for %s", after)
	}
}

// Measuring leaves objects as they are: they belong to caches.
func TestMeasuringChangesNoObject(t *testing.T) {
	evaluators := newTestEvaluators()
	rapid.Check(t, func(t *rapid.T) {
		typed := anyTyped().Draw(t, "object")
		before := typed.object.DeepCopyObject()
		first := mustFootprint(t, evaluators, typed.resource, typed.object)
		if second := mustFootprint(t, evaluators, typed.resource, typed.object); !second.Equal(first) {
			t.Fatal("measured twice, not the same")
		}
		_, _ = evaluators.Charges(creation(typed.resource, typed.object), []Quota{quotaOf("all", limitableNames()...)})
		if !apiequality.Semantic.DeepEqual(before, typed.object) {
			t.Fatal("the object changed")
		}
	})
}

func TestFootprintsAreEqualWhereTheyUseTheSame(t *testing.T) {
	evaluators := newTestEvaluators()
	footprint := mustFootprint(t, evaluators, pods(), deletedPod(time.Minute, time.Minute))
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"another name and phase":       {func(pod *corev1.Pod) { pod.Name, pod.Status.Phase = "other", corev1.PodRunning }, true},
		"another amount":               {func(pod *corev1.Pod) { pod.Spec.Overhead = amountsOf("cpu", "1") }, false},
		"another scope":                {func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" }, false},
		"another end":                  {func(pod *corev1.Pod) { pod.DeletionGracePeriodSeconds = ptr.To[int64](61) }, false},
		"the same end in another zone": {func(pod *corev1.Pod) { pod.DeletionTimestamp.Time = pod.DeletionTimestamp.Local() }, true},
		"no end":                       {func(pod *corev1.Pod) { pod.DeletionTimestamp = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := deletedPod(time.Minute, time.Minute)
			test.change(pod)
			if got := mustFootprint(t, evaluators, pods(), pod).Equal(footprint); got != test.want {
				t.Errorf("want equal %v, got %v", test.want, got)
			}
		})
	}
	other := footprint
	other.change = &change{at: footprint.change.at, later: footprint.usage}
	if other.Equal(footprint) {
		t.Error("want footprints that differ later to differ")
	}
}

// A count is one for any object, even if it looks like a pod.
func TestPlainCountsDoNotLookAtTheObject(t *testing.T) {
	evaluators := newTestEvaluators()
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	want := mustFootprint(t, evaluators, widgets, metadataOf("Widget"))
	for _, object := range []runtime.Object{typicalPod(), deletedPod(time.Minute, time.Minute), serviceOf("NodePort", 1)} {
		if got := mustFootprint(t, evaluators, widgets, object); !got.Equal(want) {
			t.Errorf("%T: want a count of one", object)
		}
	}
}

// It is unknown whether the quota's scopes leave the object out: it counts.
func TestAnUnmatchableObjectIsUsedInFull(t *testing.T) {
	bad := quotaOf("bad", "pods", "requests.cpu")
	bad.Spec.ScopeSelector = scopeSelector(corev1.ResourceQuotaScopePriorityClass, "Near", "x")
	evaluators := newTestEvaluators()
	footprint := mustFootprint(t, evaluators, pods(), podOf(container("app", amountsOf("cpu", "2"), nil)))
	used, err := evaluators.Usage(pods(), footprint, bad, testNow())
	if want := amountsOf("pods", "1", "requests.cpu", "2"); err == nil || !quota.Equals(want, used) {
		t.Errorf("want %v and an error, got %v, %v", want, used, err)
	}
}
