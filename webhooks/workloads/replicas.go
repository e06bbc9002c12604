// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replicas returns where an object says how many pods it asks for at once; nil for a kind that
// doesn't.
func replicas(object client.Object) **int32 {
	switch object := object.(type) {
	case *appsv1.Deployment:
		return &object.Spec.Replicas
	case *appsv1.StatefulSet:
		return &object.Spec.Replicas
	case *appsv1.ReplicaSet:
		return &object.Spec.Replicas
	case *corev1.ReplicationController:
		return &object.Spec.Replicas
	case *batchv1.Job:
		return &object.Spec.Parallelism
	case *batchv1.CronJob:
		return &object.Spec.JobTemplate.Spec.Parallelism
	}
	return nil
}

func replicasOf(object client.Object) int32 {
	if field := replicas(object); field != nil {
		return ptr.Deref(*field, 0)
	}
	return 0
}

func withReplicas(object client.Object, count int32) client.Object {
	scaled, _ := object.DeepCopyObject().(client.Object)
	if field := replicas(scaled); field != nil {
		*field = &count
	}
	return scaled
}
