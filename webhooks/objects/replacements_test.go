// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

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

// Only the controller that makes such objects is asked about, though anybody may write an owner into an object.
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
		want  int
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

func TestWhenADeploymentRolls(t *testing.T) {
	pod := &metav1.PartialObjectMetadata{}
	deployment := func(paused bool, surge int32) *appsv1.Deployment {
		made := builders.Deployment("shop", "web", 3)
		made.Spec.Paused = paused
		made.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(surge))}
		return made
	}
	for name, test := range map[string]struct {
		fleet      fleet
		deployment *appsv1.Deployment
		there      bool
		want       bool
	}{
		"one pod more, and old ones":        {fleet: fleet{all: 3, staying: 3, other: pod}, deployment: deployment(false, 1), want: true},
		"as many as it asks for":            {fleet: fleet{all: 2, staying: 2, other: pod}, deployment: deployment(false, 1)},
		"no old ones":                       {fleet: fleet{all: 3, staying: 3}, deployment: deployment(false, 1)},
		"instead of one that terminates":    {fleet: fleet{all: 3, staying: 2, other: pod}, deployment: deployment(false, 0), want: true},
		"more than the strategy says":       {fleet: fleet{all: 4, staying: 4, other: pod}, deployment: deployment(false, 1)},
		"more than twice what it asks for":  {fleet: fleet{all: 6, staying: 6, other: pod}, deployment: deployment(false, 100)},
		"paused":                            {fleet: fleet{all: 3, staying: 3, other: pod}, deployment: deployment(true, 1)},
		"a pod that is there, one too many": {fleet: fleet{all: 4, staying: 4, other: pod}, deployment: deployment(false, 1), there: true, want: true},
		"a pod that is there":               {fleet: fleet{all: 3, staying: 3, other: pod}, deployment: deployment(false, 1), there: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.fleet.rolls(test.deployment, ofPod{there: test.there}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// The pod on a node that should have ended long ago isn't counted any more: see footprint_test.go in internal/evaluation.
func TestAPodThatShouldHaveEndedIsntReplaced(t *testing.T) {
	now := time.Unix(1000, 0)
	at := func(seconds int64) *metav1.Time { return ptr.To(metav1.NewTime(time.Unix(seconds, 0))) }
	for name, test := range map[string]struct {
		pod  metav1.ObjectMeta
		want bool
	}{
		"a pod that stays":            {},
		"one that may terminate yet":  {pod: metav1.ObjectMeta{DeletionTimestamp: at(990), DeletionGracePeriodSeconds: ptr.To[int64](30)}},
		"one that is over":            {pod: metav1.ObjectMeta{DeletionTimestamp: at(990), DeletionGracePeriodSeconds: ptr.To[int64](0)}, want: true},
		"one without a grace period":  {pod: metav1.ObjectMeta{DeletionTimestamp: at(1)}},
		"one that ends at the moment": {pod: metav1.ObjectMeta{DeletionTimestamp: at(990), DeletionGracePeriodSeconds: ptr.To[int64](10)}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOverdue(&metav1.PartialObjectMetadata{ObjectMeta: test.pod}, now); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// One namespace's looks don't take the turns of others.
func TestANamespaceHasABoundedNumberOfLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replacements := NewReplacements(ReplacementParts{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var ends []func()
		for range looksOfNamespace {
			begun, end := replacements.begin(ctx, "busy")
			if !begun {
				t.Fatal("want a turn")
			}
			ends = append(ends, end)
		}
		if begun, end := replacements.begin(ctx, "quiet"); !begun {
			t.Error("another namespace has no turn")
		} else {
			end()
		}
		begun, end := replacements.begin(ctx, "busy")
		if begun {
			t.Error("want no turn within a second")
		}
		end()
		for _, end := range ends {
			end()
		}
		if len(replacements.own) != 0 || len(replacements.turns) != 0 {
			t.Errorf("%d namespaces and %d turns are left", len(replacements.own), len(replacements.turns))
		}
	})
}
