// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

func limitedNames() []corev1.ResourceName {
	return []corev1.ResourceName{"pods", "requests.cpu", "limits.memory", "count/widgets.example.com"}
}

// anySlices are namespaces' uses of all limited names.
func anySlices(t *rapid.T) map[string]corev1.ResourceList {
	amount := rapid.Map(rapid.Int64Range(0, 1<<40), func(milli int64) resource.Quantity {
		return *resource.NewMilliQuantity(milli, resource.DecimalSI)
	})
	used := map[string]corev1.ResourceList{}
	namespace := rapid.StringMatching(`[a-z]{1,3}`)
	for _, namespace := range rapid.SliceOfNDistinct(namespace, 0, 8, rapid.ID[string]).Draw(t, "namespaces") {
		used[namespace] = corev1.ResourceList{}
		for _, name := range limitedNames() {
			used[namespace][name] = amount.Draw(t, namespace+" "+string(name))
		}
	}
	return used
}

func TestTheTotalIsTheSumOfTheSlices(t *testing.T) {
	some := rapid.SliceOfDistinct(rapid.SampledFrom(limitedNames()), rapid.ID[corev1.ResourceName])
	rapid.Check(t, func(t *rapid.T) {
		known := good(func(f *facts) { f.slices = anySlices(t) })
		known.uncounted, known.idle = some.Draw(t, "uncounted"), some.Draw(t, "idle")
		got := known.status(team("pods", "1", "requests.cpu", "1", "limits.memory", "1", "count/widgets.example.com", "1"))
		want := corev1.ResourceList{}
		for _, name := range limitedNames() {
			if slices.Contains(known.uncounted, name) || slices.Contains(known.idle, name) {
				continue
			}
			total := resource.Quantity{}
			for _, slice := range known.slices {
				total.Add(slice[name])
			}
			want[name] = total
		}
		if diff := cmp.Diff(want, got.Total.Used); diff != "" {
			t.Fatalf("total (-want,+got):\n%s", diff)
		}
		requireEachNamespace(t, known.slices, slices.Collect(maps.Keys(want)), got)
	})
}

func requireEachNamespace(
	t *rapid.T, used map[string]corev1.ResourceList, counted []corev1.ResourceName, got quotav1.ClusterResourceQuotaStatus,
) {
	t.Helper()
	var want []quotav1.ResourceQuotaStatusByNamespace
	for _, namespace := range slices.Sorted(maps.Keys(used)) {
		part := quotav1.ResourceQuotaStatusByNamespace{Namespace: namespace}
		part.Status.Hard, part.Status.Used = got.Total.Hard, corev1.ResourceList{}
		for _, name := range counted {
			part.Status.Used[name] = used[namespace][name]
		}
		want = append(want, part)
	}
	if diff := cmp.Diff(want, got.Namespaces); diff != "" || int(got.NamespaceCount) != len(used) {
		t.Fatalf("%d namespaces (-want,+got):\n%s", got.NamespaceCount, diff)
	}
}

// Zero would be a claim.
func TestAResourceLimitedSinceTheCountIsNotCounted(t *testing.T) {
	got := good(func(f *facts) { f.countedGeneration = 1 }).status(team("pods", "10", "services", "5"))
	if diff := cmp.Diff(list("pods", "3"), got.Total.Used); diff != "" {
		t.Errorf("used (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff("pods: 3/10, services: ?/5", got.Summary); diff != "" {
		t.Errorf("summary (-want,+got):\n%s", diff)
	}
}

func TestAnotherReasonIsNoTransition(t *testing.T) {
	object := team("pods", "10")
	object.Status = good(func(f *facts) { f.uncounted = []corev1.ResourceName{"pods"} }).status(object)
	known := good(func(f *facts) { f.now, f.invalid = moment.Add(time.Hour), errors.New("invalid") })
	ready := meta.FindStatusCondition(known.status(object).Conditions, quotav1.ConditionReady)
	if ready.Reason != quotav1.ReasonInvalidSpec || !ready.LastTransitionTime.Time.Equal(moment) {
		t.Errorf("got %s since %s, want InvalidSpec since %s", ready.Reason, ready.LastTransitionTime, moment)
	}
}

func TestTheSameFactsLaterAreTheSameStatus(t *testing.T) {
	object := team("pods", "10")
	object.Status = good().status(object)
	again := good(func(f *facts) { f.now = moment.Add(time.Hour) }).status(object)
	if !apiequality.Semantic.DeepEqual(object.Status, again) {
		t.Errorf("status (-first,+again):\n%s", cmp.Diff(object.Status, again))
	}
}

func TestAStatusIsMadeWithoutChangingWhatItIsMadeOf(t *testing.T) {
	object := team("pods", "10")
	object.Status = good().status(object)
	before := object.DeepCopy()
	known := good(func(f *facts) {
		f.now, f.verdict, f.uncounted = moment.Add(time.Hour), webhookconfig.Verdict{}, []corev1.ResourceName{"pods"}
	})
	known.status(object)
	if diff := cmp.Diff(before, object); diff != "" {
		t.Errorf("object (-before,+after):\n%s", diff)
	}
	if diff := cmp.Diff(good().slices, known.slices); diff != "" {
		t.Errorf("slices (-before,+after):\n%s", diff)
	}
}

func TestConditionsOfOthersAreKept(t *testing.T) {
	object := team("pods", "10")
	object.Status.Conditions = []metav1.Condition{{Type: "Reviewed", Status: "True", Reason: "ByFinance"}}
	if meta.FindStatusCondition(good().status(object).Conditions, "Reviewed") == nil {
		t.Error("the condition Reviewed is gone")
	}
}

// A quota may limit 256 names. The API server refuses a status in which the
// message of a condition is longer than this.
func TestAMessageFitsIntoACondition(t *testing.T) {
	const most = 32768
	object := team()
	var unlimitable []corev1.ResourceName
	for i := range 256 {
		object.Spec.Quota.Hard[corev1.ResourceName(fmt.Sprintf("lions-%d", i))] = resource.MustParse("1")
		domain := strings.Repeat(strings.Repeat("a", 60)+".", 3) + "example"
		unlimitable = append(unlimitable, corev1.ResourceName(fmt.Sprintf("%s/lions-%d", domain, i)))
	}
	_, invalid := definition.Compile(object)
	for name, change := range map[string]func(*facts){
		"all names are invalid":                    func(f *facts) { f.invalid = invalid },
		"all names are long, and can't be limited": misnamed(unlimitable...),
	} {
		t.Run(name, func(t *testing.T) {
			for _, condition := range good(change).status(object).Conditions {
				if len(condition.Message) > most {
					t.Errorf("%s: the message has %d bytes, more than %d", condition.Type, len(condition.Message), most)
				}
			}
		})
	}
}
