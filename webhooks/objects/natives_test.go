// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// A native quota that is full refuses a request that would otherwise hold room in vain.
func TestARequestThatAResourceQuotaWillRefuseHoldsNoRoom(t *testing.T) {
	const full = "exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2"
	for name, test := range map[string]struct {
		cached, live string
		failure      error
		behind       bool
		// message is of the refusal; none if the request is allowed.
		message string
		reads   int
	}{
		"a full quota refuses":                             {cached: "2", live: "2", message: full, reads: 1},
		"a quota with room doesn't refuse, and isn't read": {cached: "1", live: "1"},
		"a quota that has come free doesn't refuse":        {cached: "2", live: "1", reads: 1},
		"a quota that is full by now is met later":         {cached: "1", live: "2"},
		"a quota that can't be read is met later":          {cached: "2", live: "2", failure: errors.New("timeout"), reads: 1},
		"nothing is known before it has been shown":        {cached: "2", live: "2", behind: true},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", "5")), func(t *testing.T, served *served) {
				reads := 0
				live := interceptor.NewClient(nativeClient(test.live), interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						reads++
						if test.failure != nil {
							return test.failure
						}
						return c.List(ctx, list, options...)
					},
				})
				served.handler.Natives = newNatives(nativeClient(test.cached), func() bool { return !test.behind }, live)
				got := served.handle(t.Context(), creation())
				if got.Allowed != (test.message == "") || got.Result.Message != test.message || reads != test.reads {
					t.Errorf("got %v %q after %d reads, want %q after %d", got.Allowed, got.Result.Message, reads, test.message, test.reads)
				}
				held := served.store.reserved("team")
				if (len(held) == 0) != (test.message != "") {
					t.Errorf("reserved: got %+v", held)
				}
			})
		})
	}
}

// nativeClient has a ResourceQuota of two pods, of which so many are used, and a full one of
// another namespace.
func nativeClient(used string) client.WithWatch {
	of := func(namespace, used string) *corev1.ResourceQuota {
		hard := corev1.ResourceList{"pods": resource.MustParse("2")}
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "compute"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
			Status: corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{"pods": resource.MustParse(used)}},
		}
	}
	return fake.NewClientBuilder().WithObjects(of("shop", used), of("office", "2")).Build()
}
