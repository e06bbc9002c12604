// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
)

// native returns a ResourceQuota of which so much is used.
func native(name string, hard, used corev1.ResourceList) corev1.ResourceQuota {
	return corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: used},
	}
}

func TestNativeQuotasRefuseAsTheAPIServerWill(t *testing.T) {
	pod := podOf(container("app", amountsOf("cpu", "1"), nil))
	full := native("compute", amountsOf("pods", "2"), amountsOf("pods", "2"))
	stuck := resized(pod, "3")
	stuck.Generation = 2
	stuck.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, ObservedGeneration: 1,
	}}
	stuck.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "app", AllocatedResources: amountsOf("cpu", "1")}}
	beyond := podOf(container("app", amountsOf("cpu", "1e2000000"), nil))
	scoped := native("scoped", amountsOf("pods", "0"), amountsOf("pods", "0"))
	scoped.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}

	for name, test := range map[string]struct {
		request admission.Attributes
		quotas  []corev1.ResourceQuota
		want    string
	}{
		"none":     {request: creation(pods(), pod)},
		"one full": {request: creation(pods(), pod), quotas: []corev1.ResourceQuota{full}, want: "exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2"},
		"the second is full": {
			request: creation(pods(), pod), quotas: []corev1.ResourceQuota{native("a", amountsOf("pods", "9"), amountsOf("pods", "2")), full},
			want: "exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2",
		},
		"one with room":             {request: creation(pods(), pod), quotas: []corev1.ResourceQuota{native("compute", amountsOf("pods", "3"), amountsOf("pods", "2"))}},
		"one that wants more said":  {request: creation(pods(), pod), quotas: []corev1.ResourceQuota{native("compute", amountsOf("limits.cpu", "3"), amountsOf("limits.cpu", "2"))}, want: "failed quota: compute: must specify limits.cpu for: app"},
		"one of other pods":         {request: creation(pods(), pod), quotas: []corev1.ResourceQuota{scoped}},
		"one without a status":      {request: creation(pods(), pod), quotas: []corev1.ResourceQuota{{Spec: corev1.ResourceQuotaSpec{Hard: amountsOf("pods", "0")}}}},
		"one of something else":     {request: creation(services(), serviceOf(corev1.ServiceTypeClusterIP)), quotas: []corev1.ResourceQuota{full}},
		"a resize of what is there": {request: resize(resized(pod, "3"), pod), quotas: []corev1.ResourceQuota{native("compute", amountsOf("requests.cpu", "2"), amountsOf("requests.cpu", "1"))}, want: "exceeded quota: compute, requested: requests.cpu=2, used: requests.cpu=1, limited: requests.cpu=2"},
		"a condition is believed, as the API server does": {
			request: resize(stuck, pod), quotas: []corev1.ResourceQuota{native("compute", amountsOf("requests.cpu", "2"), amountsOf("requests.cpu", "1"))},
		},
		"a quantity beyond all bounds isn't judged": {
			request: creation(pods(), beyond), quotas: []corev1.ResourceQuota{native("compute", amountsOf("requests.cpu", "2"), amountsOf("requests.cpu", "1"))},
		},
		"a change that no quota judges": {request: update(pods(), pod, pod.DeepCopy()), quotas: []corev1.ResourceQuota{full}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newTestEvaluators().CheckNative(test.request, test.quotas)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if _, ok := err.(*NativeRefusal); err != nil && !ok { //nolint:errorlint // the very type
				t.Errorf("got a %T", err)
			}
		})
	}
	if used := full.Status.Used["pods"]; used.Cmp(resource.MustParse("2")) != 0 {
		t.Errorf("the quota was changed: used %s", used.String())
	}
}
