// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

const kubeVirt = "system:serviceaccount:kubevirt:kubevirt-controller"

// Only the controller that makes such objects is asked about, whatever an object says of its owner.
func TestOnlyControllersMakeReplacements(t *testing.T) {
	controller := func(name string) string { return "system:serviceaccount:kube-system:" + name }
	replacements := NewReplacements(ReplacementParts{KubeVirt: []string{kubeVirt}})
	claim := func(owned metav1.ObjectMeta) runtime.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: owned}
	}
	pod := func(owned metav1.ObjectMeta) runtime.Object { return &corev1.Pod{ObjectMeta: owned} }
	for name, test := range map[string]struct {
		user, owner, kind string
		resource          metav1.GroupVersionResource
		object            func(metav1.ObjectMeta) runtime.Object
		want              bool
	}{
		"a ReplicaSet's pod":              {user: controller("replicaset-controller"), owner: "apps/v1", kind: "ReplicaSet", want: true},
		"without accounts of their own":   {user: "system:kube-controller-manager", owner: "apps/v1", kind: "ReplicaSet", want: true},
		"made by hand":                    {user: "ivy", owner: "apps/v1", kind: "ReplicaSet"},
		"by a like-named account":         {user: "system:serviceaccount:shop:replicaset-controller", owner: "apps/v1", kind: "ReplicaSet"},
		"by another controller":           {user: controller("job-controller"), owner: "apps/v1", kind: "ReplicaSet"},
		"by an administrator":             {user: "kubernetes-admin", owner: "apps/v1", kind: "DaemonSet"},
		"of another group's ReplicaSet":   {user: controller("replicaset-controller"), owner: "example.com/v1", kind: "ReplicaSet"},
		"a StatefulSet's pod":             {user: controller("statefulset-controller"), owner: "apps/v1", kind: "StatefulSet"},
		"a DaemonSet's pod":               {user: controller("daemon-set-controller"), owner: "apps/v1", kind: "DaemonSet", want: true},
		"a Job's pod":                     {user: controller("job-controller"), owner: "batch/v1", kind: "Job", want: true},
		"a virtual machine's pod":         {user: kubeVirt, owner: "kubevirt.io/v1", kind: "VirtualMachineInstance", want: true},
		"of a machine, by the Job's":      {user: controller("job-controller"), owner: "kubevirt.io/v1", kind: "VirtualMachineInstance"},
		"a pod's claim":                   {user: controller("ephemeral-volume-controller"), owner: "v1", kind: "Pod", resource: claims, object: claim, want: true},
		"a claim made by hand":            {user: "ivy", owner: "v1", kind: "Pod", resource: claims, object: claim},
		"a StatefulSet's claim":           {user: controller("statefulset-controller"), owner: "apps/v1", kind: "StatefulSet", resource: claims, object: claim},
		"a claim of another group's Pod":  {user: controller("ephemeral-volume-controller"), owner: "example.com/v1", kind: "Pod", resource: claims, object: claim},
		"a pod that a pod owns":           {user: controller("ephemeral-volume-controller"), owner: "v1", kind: "Pod"},
		"another resource of the cluster": {user: controller("replicaset-controller"), owner: "apps/v1", kind: "ReplicaSet", resource: services, object: claim},
	} {
		t.Run(name, func(t *testing.T) {
			if test.object == nil {
				test.object, test.resource = pod, metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
			}
			object := test.object(metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
				APIVersion: test.owner, Kind: test.kind, Name: "owner", UID: "uid", Controller: ptr.To(true),
			}}})
			request := &admissionv1.AdmissionRequest{Namespace: "shop", Resource: test.resource}
			request.UserInfo.Username = test.user
			attributes := kubeadmission.NewAttributesRecord(object, nil, schema.GroupVersionKind{}, "shop", "", schema.GroupVersionResource(test.resource), "", kubeadmission.Create, nil, false, nil)
			if _, got := replacements.asked(request, attributes); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

var (
	claims   = metav1.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	services = metav1.GroupVersionResource{Version: "v1", Resource: "services"}
)

func TestHowManyMorePodsADeploymentMayHave(t *testing.T) {
	for name, test := range map[string]struct {
		surge *intstr.IntOrString
		want  int64
	}{
		"a number":             {surge: ptr.To(intstr.FromInt32(3)), want: 3},
		"a part is rounded up": {surge: ptr.To(intstr.FromString("25%")), want: 3},
		"none":                 {want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := builders.Deployment("shop", "web", 10)
			deployment.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: test.surge}
			if got := maxSurge(deployment, 10); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
	if got := maxSurge(builders.Deployment("shop", "web", 10), 10); got != 0 {
		t.Errorf("without rolling update: got %d, want none", got)
	}
}

// A pod that is there may be anybody's: its claims must be those of the workload's template.
func TestAPodThatIsThereHasTheClaimsOfItsTemplate(t *testing.T) {
	template := corev1.PodTemplateSpec{Spec: builders.Pod("", "").EphemeralVolume("data", "1Gi").Obj().Spec}
	for name, test := range map[string]struct {
		pod   *corev1.Pod
		there bool
		want  bool
	}{
		"the same":             {pod: builders.Pod("shop", "web").EphemeralVolume("data", "1Gi").Obj(), there: true, want: true},
		"a larger one":         {pod: builders.Pod("shop", "web").EphemeralVolume("data", "1Ti").Obj(), there: true},
		"one more":             {pod: builders.Pod("shop", "web").EphemeralVolume("data", "1Gi").EphemeralVolume("more", "1Gi").Obj(), there: true},
		"devices":              {pod: builders.Pod("shop", "web").EphemeralVolume("data", "1Gi").DevicesFrom("fpga").Obj(), there: true},
		"made by a controller": {pod: builders.Pod("shop", "web").Obj(), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (ofPod{pod: test.pod, there: test.there}).isAsIn(&template); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
