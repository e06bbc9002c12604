// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/ptr"
)

// The evaluators are built one by one. A release of Kubernetes that adds one,
// or a second name for a count, must not go unnoticed.
func TestEvaluatorsAreThoseOfKubernetes(t *testing.T) {
	evaluators := newTestEvaluators()
	withoutInformers := func(resource schema.GroupVersionResource) bool {
		return resource.GroupResource() != resourceClaims()
	}
	want, err := core.NewEvaluators(nil, nil, withoutInformers)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(evaluators.special); got != len(want)+1 {
		t.Errorf("want %d evaluators and that of resource claims, got %d", len(want), got)
	}
	for _, evaluator := range want {
		resource := evaluator.GroupResource()
		own := evaluators.special[resource]
		if own == nil {
			t.Errorf("no evaluator of %s", resource)
			continue
		}
		if diff := cmp.Diff(evaluator.MatchingResources(limitableNames()), own.MatchingResources(limitableNames())); diff != "" {
			t.Errorf("names of %s (-want,+got):\n%s", resource, diff)
		}
	}
}

// claimOfPod is a claim that the scheduler made for a pod's extended resources.
func claimOfPod(owner *corev1.Pod) *resourceapi.ResourceClaim {
	claim := resourceClaimOf(exactly("gpu", 3))
	claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Pod", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)},
	}
	return claim
}

func TestClaimsForThePodsOwnDevicesAreChargedOnce(t *testing.T) {
	const gpus = "requests.vndr.example/gpu"
	owner := podOf(container("train", amountsOf("vndr.example/gpu", "2"), nil))
	owner.UID = "owner-uid"
	claims := func(claims ...*resourceapi.ResourceClaim) func(string, types.UID) ([]*resourceapi.ResourceClaim, error) {
		return func(string, types.UID) ([]*resourceapi.ResourceClaim, error) { return claims, nil }
	}
	earlier := &resourceapi.ResourceClaim{ObjectMeta: inTeamA("an-earlier-claim")}
	classes := deviceClasses("gpu", "vndr.example/gpu")

	for name, test := range map[string]struct {
		sources ClaimSources
		want    corev1.ResourceList
	}{
		"without device classes a claim is no extended resource": {want: amountsOf()},
		"with a class that offers one, it is":                    {sources: ClaimSources{DeviceClasses: classes}, want: amountsOf(gpus, "3")},
		"what the pod is charged is taken off": {
			sources: ClaimSources{DeviceClasses: classes, Pods: podLister(owner), ClaimsOfPod: claims()}, want: amountsOf(gpus, "1")},
		"but not for a second claim": {
			sources: ClaimSources{DeviceClasses: classes, Pods: podLister(owner), ClaimsOfPod: claims(earlier)}, want: amountsOf(gpus, "3")},
		"nor where other claims are not known": {
			sources: ClaimSources{DeviceClasses: classes, Pods: podLister(owner)}, want: amountsOf(gpus, "3")},
		"nor for a pod that is gone": {
			sources: ClaimSources{DeviceClasses: classes, Pods: podLister(), ClaimsOfPod: claims()}, want: amountsOf(gpus, "3")},
	} {
		t.Run(name, func(t *testing.T) {
			evaluators := New(clockAt{now: testNow()}, test.sources)
			charges, err := evaluators.Charges(creation(resourceClaims(), claimOfPod(owner)), []Quota{quotaOf("team", gpus)})
			if diff := cmp.Diff(test.want, quotaAmounts(charges)); diff != "" || err != nil {
				t.Errorf("charge (-want,+got):\n%s%v", diff, err)
			}
		})
	}
}

func quotaAmounts(charges []Charge) corev1.ResourceList {
	if len(charges) == 0 {
		return corev1.ResourceList{}
	}
	return charges[0].Amounts
}

// Run with -race this shows that requests and counting may go on at once.
func TestEvaluatorsServeManyAtOnce(t *testing.T) {
	evaluators := newTestEvaluators()
	quotas := []Quota{quotaOf("a", limitableNames()...), quotaOf("b", "pods", "count/widgets.example.com")}
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if charges, err := evaluators.Charges(creation(widgets, metadataOf("Widget")), quotas); err != nil || len(charges) != 2 {
					t.Errorf("want charges to both quotas, got %v, %v", charges, err)
				}
				first, _ := evaluators.Footprint(pods(), typicalPod())
				second, _ := evaluators.Footprint(pods(), typicalPod())
				if !first.Equal(second) {
					t.Error("want equal footprints of equal pods")
				}
			}
		})
	}
	group.Wait()
}
