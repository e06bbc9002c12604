// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"reflect"
	"testing"

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

func TestWhatIsNoViewStaysAsItIs(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "shop/team"}
	if got, err := ShareFigures()(gone); err != nil || got != gone {
		t.Errorf("got %v, %v", got, err)
	}
}
