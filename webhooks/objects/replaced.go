// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// indexAnnotation is on the pods of an Indexed Job.
	indexAnnotation = batchv1.JobCompletionIndexAnnotation
	// migrationLabel and migrationName are on the pod that a virtual machine migrates to: the UID and the name of its
	// VirtualMachineInstanceMigration. createdBy is on all pods of a machine: its UID. See kubevirt.io/api/core/v1.
	migrationLabel = "kubevirt.io/migrationJobUID"
	migrationName  = "kubevirt.io/migrationJobName"
	createdBy      = "kubevirt.io/created-by"
)

// podOf returns the pod that an object comes with.
func (r *Replacements) podOf(ctx context.Context, asked ofPod) (ofPod, error) {
	pod, err := r.pod(ctx, asked.namespace, asked.owner.Name, asked.owner.UID)
	if err != nil {
		return ofPod{}, err
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		owner = &metav1.OwnerReference{}
	}
	return ofPod{namespace: asked.namespace, owner: owner, pod: pod, there: true}, nil
}

func (r *Replacements) pod(ctx context.Context, namespace, name string, uid types.UID) (*corev1.Pod, error) {
	pod, err := r.Typed.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err = is(pod, uid, err); err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod, nil
}

// match is the result of a look. The zero value is that nothing is replaced.
type match struct {
	// surger is the workload, and old one of its pods that a new one replaces.
	surger ledger.Surger
	old    *corev1.Pod
	// with is the pod that the object comes with; nil if the object is a pod.
	with *corev1.Pod
}

// instead returns the match with a pod of a workload.
func (r *Replacements) instead(
	ctx context.Context, of *metav1.PartialObjectMetadata, kind string, workload metav1.Object,
) (match, error) {
	old, err := r.pod(ctx, of.Namespace, of.Name, of.UID)
	if err != nil {
		return match{}, err
	}
	return match{old: old, surger: ledger.Surger{
		UID: workload.GetUID(), Kind: kind, Namespace: workload.GetNamespace(), Name: workload.GetName(),
		Since: r.Clock.Now().Truncate(time.Second),
	}}, nil
}

// ofReplicaSet returns the Deployment of a pod, if it has pods of another ReplicaSet, and with this pod more than it asks for.
func (r *Replacements) ofReplicaSet(ctx context.Context, asked ofPod) (match, error) {
	set, err := r.Typed.AppsV1().ReplicaSets(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(set, asked.owner.UID, err); err != nil {
		return match{}, fmt.Errorf("reading ReplicaSet %s: %w", asked.owner.Name, err)
	}
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || kindOf(owner) != deployments {
		return match{}, nil
	}
	deployment, err := r.Typed.AppsV1().Deployments(asked.namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err = is(deployment, owner.UID, err); err != nil {
		return match{}, fmt.Errorf("reading Deployment %s: %w", owner.Name, err)
	}
	fleet, err := r.fleetOf(ctx, deployment, set.UID)
	if err != nil || !fleet.rolls(deployment, asked) {
		return match{}, err
	}
	return r.instead(ctx, fleet.other, deployments.Kind, deployment)
}

// fleet is the pods of a Deployment.
type fleet struct {
	// all are how many pods it has, and staying how many of them aren't terminating.
	all, staying int
	// other is a pod of another ReplicaSet than the one asked about; nil if there is none.
	other *metav1.PartialObjectMetadata
}

// rolls reports whether a Deployment replaces pods, and with one more has more than it asks for. It may have as many as its
// strategy says, and no more than twice as many as it asks for. A Deployment that is paused may never replace the rest.
func (f fleet) rolls(deployment *appsv1.Deployment, with ofPod) bool {
	replicas := int(ptr.Deref(deployment.Spec.Replicas, 1))
	most := replicas + min(maxSurge(deployment, replicas), replicas)
	return f.other != nil && !deployment.Spec.Paused && f.all+with.missing() > replicas && f.staying+with.missing() <= most
}

// fleetOf returns the pods of a Deployment. Other is of another ReplicaSet than this one.
func (r *Replacements) fleetOf(ctx context.Context, deployment *appsv1.Deployment, set types.UID) (found fleet, err error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return fleet{}, fmt.Errorf("reading the selector of Deployment %s: %w", deployment.Name, err)
	}
	owned := map[types.UID]bool{}
	sets := r.Metadata.Resource(appsv1.SchemeGroupVersion.WithResource("replicasets")).Namespace(deployment.Namespace)
	err = each(ctx, sets, metav1.ListOptions{LabelSelector: selector.String()}, func(one *metav1.PartialObjectMetadata) {
		if metav1.IsControlledBy(one, deployment) {
			owned[one.UID] = true
		}
	})
	if err != nil {
		return fleet{}, fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", deployment.Name, err)
	}
	err = r.pods(ctx, deployment.Namespace, selector, fields.Everything(), func(pod *metav1.PartialObjectMetadata) {
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller == nil || !owned[controller.UID] {
			return
		}
		found.all++
		if pod.DeletionTimestamp == nil {
			found.staying++
		}
		if controller.UID != set && (found.other == nil || found.other.DeletionTimestamp != nil) {
			found.other = pod
		}
	})
	return found, err
}

// maxSurge is how many pods more than replicas a Deployment may have during a rollout.
func maxSurge(deployment *appsv1.Deployment, replicas int) int {
	rolling := deployment.Spec.Strategy.RollingUpdate
	if rolling == nil {
		return 0
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, intstr.FromInt32(0)), replicas, true)
	if err != nil {
		return 0 // the API server stores no other text
	}
	return surge
}

// ofDaemonSet returns the DaemonSet of a pod, if another pod of it is on the same node.
func (r *Replacements) ofDaemonSet(ctx context.Context, asked ofPod) (match, error) {
	set, err := r.Typed.AppsV1().DaemonSets(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(set, asked.owner.UID, err); err != nil {
		return match{}, fmt.Errorf("reading DaemonSet %s: %w", asked.owner.Name, err)
	}
	node := nodeOf(asked.pod)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || node == "" {
		return match{}, err //nolint:wrapcheck // the API server stores no other selector
	}
	var other *metav1.PartialObjectMetadata
	there := fields.OneTermEqualSelector("spec.nodeName", node)
	err = r.pods(ctx, asked.namespace, selector, there, func(pod *metav1.PartialObjectMetadata) {
		if metav1.IsControlledBy(pod, set) && pod.UID != asked.pod.UID {
			other = pod
		}
	})
	if err != nil || other == nil {
		return match{}, err
	}
	return r.instead(ctx, other, daemonSets.Kind, set)
}

// nodeOf is the node that a DaemonSet's pod is for; empty if there is none.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// ofJob returns the Job of a pod, if another pod of it terminates, of the same index if it has indexes, and if it has more pods
// than it asks for at once.
func (r *Replacements) ofJob(ctx context.Context, asked ofPod) (match, error) {
	job, err := r.Typed.BatchV1().Jobs(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(job, asked.owner.UID, err); err != nil {
		return match{}, fmt.Errorf("reading Job %s: %w", asked.owner.Name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil {
		return match{}, err //nolint:wrapcheck // the API server stores no other selector
	}
	all, terminating := asked.missing(), (*metav1.PartialObjectMetadata)(nil)
	err = r.pods(ctx, asked.namespace, selector, fields.Everything(), func(pod *metav1.PartialObjectMetadata) {
		if !metav1.IsControlledBy(pod, job) {
			return
		}
		all++
		if pod.DeletionTimestamp != nil && pod.Annotations[indexAnnotation] == asked.pod.Annotations[indexAnnotation] {
			terminating = pod
		}
	})
	if err != nil || terminating == nil || all <= atOnce(job) {
		return match{}, err
	}
	return r.instead(ctx, terminating, jobs.Kind, job)
}

// atOnce is how many pods a Job asks for.
func atOnce(job *batchv1.Job) int {
	most := ptr.Deref(job.Spec.Parallelism, 1)
	if job.Spec.Completions != nil {
		most = min(most, *job.Spec.Completions-job.Status.Succeeded)
	}
	return int(most)
}

// ofMachine returns the virtual machine of a pod, if the pod is the target of a migration that isn't over, and the machine runs
// in another pod.
func (r *Replacements) ofMachine(ctx context.Context, asked ofPod) (match, error) {
	read := func(resource, name string, uid types.UID) (*unstructured.Unstructured, error) {
		in := r.Untyped.Resource(schema.GroupVersionResource{Group: machines.Group, Version: "v1", Resource: resource})
		object, err := in.Namespace(asked.namespace).Get(ctx, name, metav1.GetOptions{})
		if err = is(object, uid, err); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", resource, name, err)
		}
		return object, nil
	}
	name, uid := asked.pod.Annotations[migrationName], types.UID(asked.pod.Labels[migrationLabel])
	if name == "" || uid == "" || asked.there {
		return match{}, nil
	}
	machine, err := read("virtualmachineinstances", asked.owner.Name, asked.owner.UID)
	if err != nil {
		return match{}, err
	}
	migration, err := read("virtualmachineinstancemigrations", name, uid)
	if err != nil || !migrates(migration, machine) {
		return match{}, err
	}
	source, err := r.sourceOf(ctx, machine, uid)
	if err != nil || source == nil {
		return match{}, err
	}
	return r.instead(ctx, source, machines.Kind, machine)
}

// sourceOf returns the pod that a machine runs in; nil if there is none, or if its migration has a target already.
func (r *Replacements) sourceOf(
	ctx context.Context, machine metav1.Object, migration types.UID,
) (source *metav1.PartialObjectMetadata, err error) {
	hasTarget := false
	of := labels.SelectorFromSet(podsOf(machine.GetUID()))
	err = r.pods(ctx, machine.GetNamespace(), of, fields.Everything(), func(pod *metav1.PartialObjectMetadata) {
		switch {
		case !metav1.IsControlledBy(pod, machine):
		case pod.Labels[migrationLabel] == string(migration):
			hasTarget = true
		default:
			source = pod
		}
	})
	if hasTarget {
		source = nil
	}
	return source, err
}

// podsOf are the labels of all pods of a machine.
func podsOf(machine types.UID) labels.Set { return labels.Set{createdBy: string(machine)} }

// migrates reports whether a migration is of a machine, and isn't over.
func migrates(migration, machine *unstructured.Unstructured) bool {
	of, _, _ := unstructured.NestedString(migration.Object, "spec", "vmiName")
	phase, _, _ := unstructured.NestedString(migration.Object, "status", "phase")
	return of == machine.GetName() && phase != "Succeeded" && phase != "Failed"
}

// pods calls visit with the metadata of pods that a quota counts.
func (r *Replacements) pods(
	ctx context.Context, namespace string, selector labels.Selector, of fields.Selector, visit func(*metav1.PartialObjectMetadata),
) error {
	of = fields.AndSelectors(of,
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	pods := r.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace)
	now := r.Clock.Now()
	err := each(ctx, pods, metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: of.String()},
		func(pod *metav1.PartialObjectMetadata) {
			if !isOverdue(pod, now) {
				visit(pod)
			}
		})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	return nil
}

// isOverdue reports whether a pod should have ended already. Then Kubernetes' evaluator counts it no more (QuotaV1Pod).
func isOverdue(pod *metav1.PartialObjectMetadata, now time.Time) bool {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return false
	}
	return now.After(pod.DeletionTimestamp.Add(time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second))
}

// page is how many objects are listed at a time: their metadata may be large.
const page = 100

// each calls visit with the metadata of objects.
func each(
	ctx context.Context, in metadata.ResourceInterface, options metav1.ListOptions, visit func(*metav1.PartialObjectMetadata),
) error {
	options.Limit = page
	for {
		list, err := in.List(ctx, options)
		if err != nil {
			return err //nolint:wrapcheck // the caller names the list
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// missing is one if the pod isn't there yet, and so not among the listed ones.
func (p ofPod) missing() int {
	if p.there {
		return 0
	}
	return 1
}

// is returns an error if an object couldn't be read, or if another one has its name by now.
func is(object metav1.Object, uid types.UID, err error) error {
	if err == nil && object.GetUID() != uid {
		return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
	}
	return err
}
