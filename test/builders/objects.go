// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What is only ever counted needs no builder: each function returns the
// smallest object that the API server accepts. Workloads want no replicas.

// ConfigMap returns an empty config map.
func ConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: Meta(namespace, name)}
}

// Secret returns an empty secret.
func Secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: Meta(namespace, name)}
}

// ResourceQuota returns a ResourceQuota of Kubernetes that limits nothing.
func ResourceQuota(namespace, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: Meta(namespace, name)}
}

// ReplicationController returns one that wants no replicas.
func ReplicationController(namespace, name string) *corev1.ReplicationController {
	template := podTemplate()
	return &corev1.ReplicationController{
		ObjectMeta: Meta(namespace, name),
		Spec:       corev1.ReplicationControllerSpec{Replicas: ptr.To[int32](0), Selector: appLabels(), Template: &template},
	}
}

// PodTemplate returns a template of a pod.
func PodTemplate(namespace, name string) *corev1.PodTemplate {
	return &corev1.PodTemplate{ObjectMeta: Meta(namespace, name), Template: podTemplate()}
}

// Deployment returns one that wants this many replicas.
func Deployment(namespace, name string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: Meta(namespace, name),
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas, Selector: appSelector(), Template: podTemplate()},
	}
}

// ReplicaSet returns one that wants no replicas.
func ReplicaSet(namespace, name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: Meta(namespace, name),
		Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: appSelector(), Template: podTemplate()},
	}
}

// StatefulSet returns one that wants no replicas.
func StatefulSet(namespace, name string) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: Meta(namespace, name),
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: appSelector(), Template: podTemplate()},
	}
}

// Job returns one that is suspended.
func Job(namespace, name string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: Meta(namespace, name), Spec: jobSpec()}
}

// CronJob returns one whose jobs are suspended.
func CronJob(namespace, name string) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: Meta(namespace, name),
		Spec:       batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: jobSpec()}},
	}
}

// Lease returns a lease that nobody holds.
func Lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: Meta(namespace, name)}
}

// NetworkPolicy returns a policy for all pods.
func NetworkPolicy(namespace, name string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{ObjectMeta: Meta(namespace, name)}
}

// Role returns a role that allows nothing.
func Role(namespace, name string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: Meta(namespace, name)}
}

// HorizontalPodAutoscaler returns one of a deployment that doesn't exist.
func HorizontalPodAutoscaler(namespace, name string) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: Meta(namespace, name),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "app"},
			MaxReplicas:    1,
		},
	}
}

// LimitRange returns one that lets every container request this by default.
func LimitRange(namespace, name string, requests corev1.ResourceList) *corev1.LimitRange {
	return &corev1.LimitRange{
		ObjectMeta: Meta(namespace, name),
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: requests,
		}}},
	}
}

// RuntimeClass returns a runtime class whose pods take this on top.
func RuntimeClass(name string, overhead corev1.ResourceList) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: name, Overhead: &nodev1.Overhead{PodFixed: overhead},
	}
}

// PriorityClass returns a priority class.
func PriorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// Meta returns the metadata of an object in a namespace.
func Meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels()}, Spec: Pod("", "").Obj().Spec}
}

func jobSpec() batchv1.JobSpec {
	spec := batchv1.JobSpec{Suspend: ptr.To(true), Template: podTemplate()}
	spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return spec
}

func appSelector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: appLabels()}
}

func appLabels() map[string]string {
	return map[string]string{"app": "app"}
}

func portName(port int32) string {
	return "port-" + strconv.Itoa(int(port))
}
