// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// appetite is whether a workload has pods, or is going to.
type appetite string

const (
	// wants: it has pods, or its controller makes them by itself.
	wants appetite = "wants pods"
	// rests: it is scaled to nothing or suspended, and may have pods again.
	rests appetite = "rests"
	// isOver: it never has pods again.
	isOver appetite = "is over"
)

// workload makes pods by a template.
type workload struct {
	kind     schema.GroupKind
	object   client.Object
	template *corev1.PodTemplateSpec
	appetite appetite
}

// text is as in "Deployment web".
func (w *workload) text() string { return w.kind.Kind + " " + w.object.GetName() }

// templated are the resources of workloads.
func templated() []string {
	return []string{"deployments", "replicasets", "statefulsets", "daemonsets", "replicationcontrollers", "jobs", "cronjobs"}
}

func (f *finder) findWorkloads() {
	apps := func(kind string) schema.GroupKind { return appsv1.SchemeGroupVersion.WithKind(kind).GroupKind() }
	for i := range f.Deployments {
		one := &f.Deployments[i]
		f.addWorkload(workload{apps("Deployment"), one, &one.Spec.Template, scaledTo(one.Spec.Replicas)})
	}
	for i := range f.ReplicaSets {
		one := &f.ReplicaSets[i]
		f.addWorkload(workload{apps("ReplicaSet"), one, &one.Spec.Template, scaledTo(one.Spec.Replicas)})
	}
	for i := range f.StatefulSets {
		one := &f.StatefulSets[i]
		f.addWorkload(workload{apps("StatefulSet"), one, &one.Spec.Template, scaledTo(one.Spec.Replicas)})
	}
	for i := range f.DaemonSets {
		one := &f.DaemonSets[i]
		f.addWorkload(workload{apps("DaemonSet"), one, &one.Spec.Template, wants})
	}
	for i := range f.Controllers {
		if one := &f.Controllers[i]; one.Spec.Template != nil {
			kind := corev1.SchemeGroupVersion.WithKind("ReplicationController").GroupKind()
			f.addWorkload(workload{kind, one, one.Spec.Template, scaledTo(one.Spec.Replicas)})
		}
	}
	f.findBatches()
}

// findBatches takes a suspended Job for one that goes on: it has begun, or waits in a queue.
func (f *finder) findBatches() {
	batch := func(kind string) schema.GroupKind { return batchv1.SchemeGroupVersion.WithKind(kind).GroupKind() }
	for i := range f.Jobs {
		one, appetite := &f.Jobs[i], wants
		if ended, _ := endOf(one); !ended.IsZero() {
			appetite = isOver
		}
		f.addWorkload(workload{batch("Job"), one, &one.Spec.Template, appetite})
	}
	for i := range f.CronJobs {
		one, appetite := &f.CronJobs[i], wants
		if ptr.Deref(one.Spec.Suspend, false) {
			appetite = rests
		}
		f.addWorkload(workload{batch("CronJob"), one, &one.Spec.JobTemplate.Spec.Template, appetite})
	}
}

func (f *finder) addWorkload(one workload) {
	f.byUID[one.object.GetUID()] = len(f.workloads)
	f.workloads = append(f.workloads, one)
}

// replicas returns how many pods a workload is scaled to, if that is its to say.
func (w *workload) replicas() int {
	switch object := w.object.(type) {
	case *appsv1.Deployment:
		return int(ptr.Deref(object.Spec.Replicas, 1))
	case *appsv1.ReplicaSet:
		return int(ptr.Deref(object.Spec.Replicas, 1))
	case *corev1.ReplicationController:
		return int(ptr.Deref(object.Spec.Replicas, 1))
	}
	return 0
}

func scaledTo(replicas *int32) appetite {
	if ptr.Deref(replicas, 1) > 0 {
		return wants
	}
	return rests
}
