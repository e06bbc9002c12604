// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// shapes is how many different requests there are among the pods.
const shapes = 20

// milliCPU is what the pod of an index requests.
func milliCPU(index int) int64 { return 2 * containerMilliCPU(index) }

func containerMilliCPU(index int) int64 { return 50 + 10*int64(index%shapes) }

// aPod is a pod as a Deployment makes them: an application and a proxy, with
// requests, limits, environment, labels and annotations. The API server adds
// defaults and managed fields.
func aPod(namespace, name string, index int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				"app.kubernetes.io/name": "shop", "app.kubernetes.io/component": "checkout",
				"app.kubernetes.io/managed-by": "Helm", "pod-template-hash": "5d4f8c7b9d",
			},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
				"checksum/config": "0f343b0931126a20f133d67c2b018a3b5e1f4c2d7a9e8b6c5d4e3f2a1b0c9d8e",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "checkout-5d4f8c7b9d",
				UID: "8f14e45f-ceea-467f-a8d5-0d3c4a5b6c7d", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
			}},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{container("app", index), container("proxy", index)},
			// Nothing here runs that could end it.
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			NodeSelector:                  map[string]string{"kubernetes.io/os": "linux"},
		},
	}
}

func container(name string, index int) corev1.Container {
	milli := containerMilliCPU(index)
	return corev1.Container{
		Name: name, Image: "registry.example.com/shop/" + name + ":v1.27.3",
		Args:  []string{"--listen=:8080", "--log-level=info"},
		Ports: []corev1.ContainerPort{{Name: "http-" + name, ContainerPort: 8080}},
		Env: []corev1.EnvVar{
			{Name: "DATABASE_URL", Value: "postgres://checkout@db.shop.svc.cluster.local:5432/checkout"},
			{Name: "LOG_FORMAT", Value: "json"},
			{Name: "POD_NAME", ValueFrom: fieldRef("metadata.name")},
			{Name: "POD_NAMESPACE", ValueFrom: fieldRef("metadata.namespace")},
		},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"/bin/ready"}},
		}},
		Resources: corev1.ResourceRequirements{
			Requests: amounts(milli), Limits: amounts(2 * milli),
		},
	}
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
}

func amounts(milli int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", milli)),
	}
}
