// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Inventory has the objects of one namespace, or of all of them, that may do nothing.
type Inventory struct {
	Pods         []corev1.Pod
	Claims       []corev1.PersistentVolumeClaim
	Services     []corev1.Service
	Slices       []discoveryv1.EndpointSlice
	Deployments  []appsv1.Deployment
	ReplicaSets  []appsv1.ReplicaSet
	StatefulSets []appsv1.StatefulSet
	DaemonSets   []appsv1.DaemonSet
	// Controllers are ReplicationControllers.
	Controllers []corev1.ReplicationController
	Jobs        []batchv1.Job
	CronJobs    []batchv1.CronJob
	Limits      Limits
	// Forbidden are the resources that the user may not read, sorted.
	Forbidden []string
}

// Inventory reads a namespace in one round of calls; all namespaces if it is empty. The error is a
// *MissingNamespaceError if the namespace doesn't exist.
func (r *Reader) Inventory(ctx context.Context, namespace string) (*Inventory, error) {
	in := client.InNamespace(namespace)
	found := &Inventory{}
	round := r.newRound()
	list(round, "pods", &corev1.PodList{}, itemsTo(&found.Pods), in)
	list(round, "persistentvolumeclaims", &corev1.PersistentVolumeClaimList{}, itemsTo(&found.Claims), in)
	list(round, "services", &corev1.ServiceList{}, itemsTo(&found.Services), in)
	list(round, "endpointslices", &discoveryv1.EndpointSliceList{}, itemsTo(&found.Slices), in)
	list(round, "deployments", &appsv1.DeploymentList{}, itemsTo(&found.Deployments), in)
	list(round, "replicasets", &appsv1.ReplicaSetList{}, itemsTo(&found.ReplicaSets), in)
	list(round, "statefulsets", &appsv1.StatefulSetList{}, itemsTo(&found.StatefulSets), in)
	list(round, "daemonsets", &appsv1.DaemonSetList{}, itemsTo(&found.DaemonSets), in)
	list(round, "replicationcontrollers", &corev1.ReplicationControllerList{}, itemsTo(&found.Controllers), in)
	list(round, "jobs", &batchv1.JobList{}, itemsTo(&found.Jobs), in)
	list(round, "cronjobs", &batchv1.CronJobList{}, itemsTo(&found.CronJobs), in)
	limits := round.limits(in)
	if err := round.wait(ctx); err != nil {
		return nil, err
	}
	found.Limits, found.Forbidden = limits(), round.forbidden()
	if slices.Contains(found.Forbidden, "localresourcequotas") && slices.Contains(found.Forbidden, "resourcequotas") {
		if namespace == "" {
			return nil, outcomes.MayReadNowhere.Err()
		}
		return nil, outcomes.MayNotReadHere.Err(namespace)
	}
	if namespace == "" {
		return found, nil
	}
	return found, r.complete(ctx, &found.Limits, []string{namespace})
}

// ByNamespace returns the inventory of each namespace.
func (i *Inventory) ByNamespace() map[string]*Inventory {
	parts := map[string]*Inventory{}
	part := func(namespace string) *Inventory {
		if parts[namespace] == nil {
			parts[namespace] = &Inventory{Forbidden: i.Forbidden}
		}
		return parts[namespace]
	}
	share(i.Pods, func(namespace string) *[]corev1.Pod { return &part(namespace).Pods })
	share(i.Claims, func(namespace string) *[]corev1.PersistentVolumeClaim { return &part(namespace).Claims })
	share(i.Services, func(namespace string) *[]corev1.Service { return &part(namespace).Services })
	share(i.Slices, func(namespace string) *[]discoveryv1.EndpointSlice { return &part(namespace).Slices })
	share(i.Deployments, func(namespace string) *[]appsv1.Deployment { return &part(namespace).Deployments })
	share(i.ReplicaSets, func(namespace string) *[]appsv1.ReplicaSet { return &part(namespace).ReplicaSets })
	share(i.StatefulSets, func(namespace string) *[]appsv1.StatefulSet { return &part(namespace).StatefulSets })
	share(i.DaemonSets, func(namespace string) *[]appsv1.DaemonSet { return &part(namespace).DaemonSets })
	share(i.Controllers, func(namespace string) *[]corev1.ReplicationController { return &part(namespace).Controllers })
	share(i.Jobs, func(namespace string) *[]batchv1.Job { return &part(namespace).Jobs })
	share(i.CronJobs, func(namespace string) *[]batchv1.CronJob { return &part(namespace).CronJobs })
	share(i.Limits.Views, func(namespace string) *[]quotav1.LocalResourceQuota { return &part(namespace).Limits.Views })
	share(i.Limits.Quotas, func(namespace string) *[]corev1.ResourceQuota { return &part(namespace).Limits.Quotas })
	return parts
}

// share adds each object to the list of its namespace.
func share[T any, P interface {
	*T
	client.Object
}](objects []T, into func(namespace string) *[]T) {
	for i := range objects {
		list := into(P(&objects[i]).GetNamespace())
		*list = append(*list, objects[i])
	}
}
