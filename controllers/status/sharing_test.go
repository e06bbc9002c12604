// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"reflect"
	"runtime"
	"testing"
	"weak"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// figuresView is a view of a quota of three pods.
func figuresView(namespace, used string) *quotav1.LocalResourceQuota {
	pods := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(amount)}
	}
	return &quotav1.LocalResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "team", OwnerReferences: []metav1.OwnerReference{{Name: "team", UID: "uid"}},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "operator"}},
		},
		Status: quotav1.LocalResourceQuotaStatus{
			Total: corev1.ResourceQuotaStatus{Hard: pods("3"), Used: pods("2")}, Used: pods(used), Reserved: pods("0"), Available: pods("1"),
			Levels: map[corev1.ResourceName]quotav1.Level{corev1.ResourcePods: quotav1.LevelNearLimit},
		},
	}
}

func TestViewsOfOneQuotaShareTheirFigures(t *testing.T) {
	transform := ShareFigures()
	shared := func(namespace, used string) *quotav1.LocalResourceQuota {
		t.Helper()
		got, err := transform(figuresView(namespace, used))
		if err != nil {
			t.Fatal(err)
		}
		want := figuresView(namespace, used)
		want.ManagedFields = nil
		if !apiequality.Semantic.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		return got.(*quotav1.LocalResourceQuota)
	}
	one, two := shared("one", "2"), shared("two", "0")
	at := func(list any) uintptr { return reflect.ValueOf(list).Pointer() }
	if at(one.Status.Total.Hard) != at(two.Status.Total.Hard) || at(one.Status.Levels) != at(two.Status.Levels) ||
		at(one.OwnerReferences) != at(two.OwnerReferences) {
		t.Error("want equal figures shared")
	}
	if at(one.Status.Used) == at(two.Status.Used) {
		t.Error("want other figures kept apart")
	}
}

func TestAViewThatIsGoneIsFreed(t *testing.T) {
	transform := ShareFigures()
	gone := func() weak.Pointer[quotav1.LocalResourceQuota] {
		got, err := transform(figuresView("one", "2"))
		if err != nil {
			t.Fatal(err)
		}
		return weak.Make(got.(*quotav1.LocalResourceQuota))
	}()
	runtime.GC()
	if gone.Value() != nil {
		t.Error("want no view kept that its cache has no longer")
	}
	runtime.KeepAlive(transform)
}

func TestSlicesOfAQuotaShareTheirFigures(t *testing.T) {
	pods := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(amount)}
	}
	figures := func(used string) corev1.ResourceQuotaStatus {
		return corev1.ResourceQuotaStatus{Hard: pods("3"), Used: pods(used)}
	}
	shown := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", ManagedFields: []metav1.ManagedFieldsEntry{{}}}}
	shown.Status.Total = figures("2")
	for _, used := range []string{"0", "0", "1", "1"} {
		shown.Status.Namespaces = append(shown.Status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{Status: figures(used)})
	}
	want := shown.DeepCopy()
	want.ManagedFields = nil
	got, err := ShareSlices(shown)
	if err != nil || !apiequality.Semantic.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	at := func(list any) uintptr { return reflect.ValueOf(list).Pointer() }
	slices := shown.Status.Namespaces
	for i, slice := range slices {
		if at(slice.Status.Hard) != at(shown.Status.Total.Hard) {
			t.Errorf("slice %d: want the limits of the whole quota shared", i)
		}
	}
	if at(slices[0].Status.Used) != at(slices[1].Status.Used) || at(slices[2].Status.Used) != at(slices[3].Status.Used) {
		t.Error("want equal figures shared")
	}
	if at(slices[1].Status.Used) == at(slices[2].Status.Used) {
		t.Error("want other figures kept apart")
	}
}

func TestOtherObjectsStayAsTheyAre(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "shop/team"}
	for name, transform := range map[string]cache.TransformFunc{"views": ShareFigures(), "quotas": ShareSlices} {
		if got, err := transform(gone); err != nil || got != gone {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
