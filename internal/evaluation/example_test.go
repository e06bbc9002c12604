// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// A pod that requests half a CPU is charged to the quotas that limit something it
// uses. Once it exists, its footprint shows its use of a quota, without the pod.
func Example() {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
	}}}
	creation := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"),
		pod.Namespace, pod.Name, pods, "", admission.Create, nil, false, nil)
	limiting := func(name string, limited corev1.ResourceName) evaluation.Quota {
		hard := corev1.ResourceList{limited: resource.MustParse("10")}
		return evaluation.Quota{Name: name, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	}
	team, storage, memory := limiting("team", "requests.cpu"), limiting("storage", "requests.storage"), limiting("memory", "limits.memory")

	evaluators := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{})
	charges, _ := evaluators.Charges(creation, []evaluation.Quota{team, storage})
	for _, charge := range charges {
		fmt.Println("charged to", charge.Quota, charge.Amounts.Name("requests.cpu", resource.DecimalSI))
	}
	_, err := evaluators.Charges(creation, []evaluation.Quota{memory})
	fmt.Println("refused:", err)

	footprint, _ := evaluators.Footprint(pods.GroupResource(), pod)
	used, _ := evaluators.Usage(pods.GroupResource(), footprint, team, time.Unix(1000, 0))
	fmt.Println("uses", used.Name("requests.cpu", resource.DecimalSI))

	// Output:
	// charged to team 500m
	// refused: failed quota: memory: must specify limits.memory for: web
	// uses 500m
}
