// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

func podWith(requests, limits corev1.ResourceList) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}}
	return pod
}

func limitRange(namespace string, items ...corev1.LimitRangeItem) corev1.LimitRange {
	return corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "range"}, Spec: corev1.LimitRangeSpec{Limits: items}}
}

func TestPodsBecomeWhatAdmissionMakesOfThem(t *testing.T) {
	defaults := corev1.LimitRangeItem{
		Type: corev1.LimitTypeContainer, Default: list("cpu", "2"), DefaultRequest: list("cpu", "200m"), Max: list("cpu", "3"),
	}
	for name, test := range map[string]struct {
		pod              *corev1.Pod
		ranges           []corev1.LimitRange
		requests, limits corev1.ResourceList
		refusal          string
	}{
		"it requests its limits": {pod: podWith(nil, list("cpu", "1")), requests: list("cpu", "1"), limits: list("cpu", "1")},
		"it takes the defaults of its namespace": {
			pod: podWith(nil, nil), ranges: []corev1.LimitRange{limitRange("shop", defaults)}, requests: list("cpu", "200m"), limits: list("cpu", "2"),
		},
		"it has said so itself": {
			pod: podWith(nil, list("cpu", "1")), ranges: []corev1.LimitRange{limitRange("shop", defaults)},
			requests: list("cpu", "1"), limits: list("cpu", "1"),
		},
		"another namespace has defaults": {pod: podWith(nil, nil), ranges: []corev1.LimitRange{limitRange("other", defaults)}},
		"it asks for more than may be": {
			pod: podWith(nil, list("cpu", "4")), ranges: []corev1.LimitRange{limitRange("shop", defaults)},
			requests: list("cpu", "4"), limits: list("cpu", "4"), refusal: "maximum cpu usage per Container is 3, but limit is 4",
		},
		"it requests more than the limit that it is given": {
			pod: podWith(list("cpu", "2500m"), nil), ranges: []corev1.LimitRange{limitRange("shop", defaults)},
			requests: list("cpu", "2500m"), limits: list("cpu", "2"), refusal: "with the defaults of LimitRange range: " +
				`spec.containers[0].resources.requests: Invalid value: "2500m": must be less than or equal to cpu limit of 2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.pod.DeepCopy()
			rules := NewRules(NewTypes(), Surroundings{LimitRanges: test.ranges})
			completed, refusal := rules.Complete(test.pod)
			resources := completed.(*corev1.Pod).Spec.Containers[0].Resources
			if diff := cmp.Diff(corev1.ResourceRequirements{Requests: test.requests, Limits: test.limits}, resources); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if refusal != test.refusal {
				t.Errorf("refused with %q, want %q", refusal, test.refusal)
			}
			if diff := cmp.Diff(before, test.pod); diff != "" {
				t.Errorf("what was passed in was changed:\n%s", diff)
			}
		})
	}
}

// The resources of a pod as a whole are completed by those of its containers, after LimitRanges have completed these.
func TestPodsGetWhatTheyRequestAsAWhole(t *testing.T) {
	defaults := limitRange("shop", corev1.LimitRangeItem{Type: corev1.LimitTypeContainer, DefaultRequest: list("memory", "1Gi")})
	atLeast := limitRange("shop", corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("cpu", "1")})
	for name, test := range map[string]struct {
		pod, whole *corev1.ResourceRequirements
		ranges     []corev1.LimitRange
		refusal    string
	}{
		"it states nothing as a whole": {},
		"it requests its limits": {
			pod:   &corev1.ResourceRequirements{Limits: list("cpu", "2", "memory", "1Gi")},
			whole: &corev1.ResourceRequirements{Limits: list("cpu", "2", "memory", "1Gi"), Requests: list("cpu", "2", "memory", "1Gi")},
		},
		"it requests what a LimitRange gives its containers": {
			pod: &corev1.ResourceRequirements{Limits: list("cpu", "2")}, ranges: []corev1.LimitRange{defaults},
			whole: &corev1.ResourceRequirements{Limits: list("cpu", "2"), Requests: list("cpu", "2", "memory", "1Gi")},
		},
		"it is more than may be": {
			pod: &corev1.ResourceRequirements{Limits: list("cpu", "2")}, ranges: []corev1.LimitRange{atLeast},
			whole:   &corev1.ResourceRequirements{Limits: list("cpu", "2"), Requests: list("cpu", "2")},
			refusal: "maximum cpu usage per Pod is 1, but limit is 2",
		},
		"its containers are given more than the whole": {
			pod: &corev1.ResourceRequirements{Limits: list("memory", "1Mi")}, ranges: []corev1.LimitRange{defaults},
			whole:   &corev1.ResourceRequirements{Limits: list("memory", "1Mi"), Requests: list("memory", "1Gi")},
			refusal: "with the defaults of LimitRange range: spec.resources.requests: Invalid value: \"1Gi\": must be less than or equal to memory limit of 1Mi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podWith(nil, nil)
			pod.Spec.Resources = test.pod
			completed, refusal := NewRules(NewTypes(), Surroundings{LimitRanges: test.ranges}).Complete(pod)
			if diff := cmp.Diff(test.whole, completed.(*corev1.Pod).Spec.Resources); diff != "" || refusal != test.refusal {
				t.Errorf("refused with %q (-want,+got):\n%s", refusal, diff)
			}
		})
	}
}

func TestPodsGetPriorityAndOverhead(t *testing.T) {
	rules := NewRules(NewTypes(), Surroundings{
		PriorityClasses: []schedulingv1.PriorityClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 5},
			{ObjectMeta: metav1.ObjectMeta{Name: "usual"}, Value: 9, GlobalDefault: true},
			{ObjectMeta: metav1.ObjectMeta{Name: "less"}, Value: 7, GlobalDefault: true},
		},
		RuntimeClasses: []nodev1.RuntimeClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "light"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Overhead: &nodev1.Overhead{PodFixed: list("cpu", "250m")}},
		},
	})
	pod := podWith(nil, nil)
	pod.Spec.RuntimeClassName = ptr.To("heavy")
	completed, _ := rules.Complete(pod)
	spec := completed.(*corev1.Pod).Spec
	if diff := cmp.Diff(list("cpu", "250m"), spec.Overhead); diff != "" || spec.PriorityClassName != "less" {
		t.Errorf("got priority class %q and overhead %v", spec.PriorityClassName, spec.Overhead)
	}
	pod.Spec.PriorityClassName, pod.Spec.RuntimeClassName = "high", ptr.To("light")
	completed, _ = rules.Complete(pod)
	if spec := completed.(*corev1.Pod).Spec; spec.PriorityClassName != "high" || len(spec.Overhead) > 0 {
		t.Errorf("got priority class %q and overhead %v", spec.PriorityClassName, spec.Overhead)
	}
}

func TestClaimsGetTheDefaultClass(t *testing.T) {
	class := func(name, annotation string, age time.Duration) storagev1.StorageClass {
		return storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{annotation: "true"}, CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(-age)),
		}}
	}
	rules := NewRules(NewTypes(), Surroundings{
		StorageClasses: []storagev1.StorageClass{
			class("older", isDefaultClass, 2*time.Hour), class("newer", isDefaultClassOlder, time.Hour), class("none", "other", 0),
		},
		LimitRanges: []corev1.LimitRange{limitRange("shop", corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Max: list("storage", "1Gi")})},
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	claim.Spec.Resources.Requests = list("storage", "2Gi")
	completed, refusal := rules.Complete(claim)
	if got := ptr.Deref(completed.(*corev1.PersistentVolumeClaim).Spec.StorageClassName, ""); got != "newer" {
		t.Errorf("got class %q", got)
	}
	if want := "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"; refusal != want {
		t.Errorf("refused with %q, want %q", refusal, want)
	}
	claim.Spec.StorageClassName = ptr.To("")
	completed, _ = rules.Complete(claim)
	if got := completed.(*corev1.PersistentVolumeClaim).Spec.StorageClassName; *got != "" {
		t.Errorf("who wants no class gets %q", *got)
	}
}

func TestClaimsOfDevicesAreReadInAnyVersion(t *testing.T) {
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceClaim",
		"metadata": map[string]any{"name": "gpu", "namespace": "shop"},
		"spec": map[string]any{"devices": map[string]any{"requests": []any{
			map[string]any{"name": "one", "deviceClassName": "gpu"},
		}}},
	}}
	object, err := NewTypes().Typed(raw)
	if err != nil {
		t.Fatal(err)
	}
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		t.Fatalf("got a %T", object)
	}
	want := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
	if diff := cmp.Diff(want, claim.Spec.Devices.Requests[0].Exactly); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
}

func TestAnObjectOfAnotherKindIsAnError(t *testing.T) {
	raw := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "shop"},
		"spec": map[string]any{"replicas": "three"},
	}}
	if _, err := NewTypes().Typed(raw); err == nil {
		t.Error("it was read")
	}
}

func TestTheAPIServerRefusesWhatIsInvalidOrNamesNoClass(t *testing.T) {
	rules := NewRules(NewTypes(), Surroundings{
		PriorityClasses: []schedulingv1.PriorityClass{{ObjectMeta: metav1.ObjectMeta{Name: "high"}}},
		RuntimeClasses:  []nodev1.RuntimeClass{{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}}},
	})
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"it is valid":      {func(pod *corev1.Pod) { pod.Spec.PriorityClassName, pod.Spec.RuntimeClassName = "high", ptr.To("heavy") }, ""},
		"no such priority": {func(pod *corev1.Pod) { pod.Spec.PriorityClassName = "none" }, "no PriorityClass with name none was found"},
		"no such runtime":  {func(pod *corev1.Pod) { pod.Spec.RuntimeClassName = ptr.To("none") }, `pod rejected: RuntimeClass "none" not found`},
		"no containers":    {func(pod *corev1.Pod) { pod.Spec.Containers = nil }, "spec.containers: Required value"},
		"a negative request": {func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = list("cpu", "-1")
		}, `spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		"a request above its limit": {func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
				Requests: list("cpu", "2"), Limits: list("cpu", "1"),
			}
		}, `spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podWith(nil, nil)
			test.change(pod)
			if _, got := rules.Admit(pod); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
	unread := NewRules(NewTypes(), Surroundings{})
	pod := podWith(nil, nil)
	pod.Spec.PriorityClassName = "none"
	if _, got := unread.Admit(pod); got != "" {
		t.Errorf("without the right to read classes: got %q", got)
	}
}
