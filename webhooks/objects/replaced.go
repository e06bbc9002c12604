// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	pod, err := r.Typed.CoreV1().Pods(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(pod, asked.owner.UID, err); err != nil {
		return ofPod{}, fmt.Errorf("reading pod %s: %w", asked.owner.Name, err)
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		owner = &metav1.OwnerReference{}
	}
	return ofPod{namespace: asked.namespace, owner: owner, pod: pod, there: true}, nil
}

// ofReplicaSet returns the Deployment of a pod, if it has pods of another ReplicaSet, and with this pod more than it asks for.
func (r *Replacements) ofReplicaSet(ctx context.Context, asked ofPod) (ledger.Surger, error) {
	set, err := r.Typed.AppsV1().ReplicaSets(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(set, asked.owner.UID, err); err != nil {
		return ledger.Surger{}, fmt.Errorf("reading ReplicaSet %s: %w", asked.owner.Name, err)
	}
	owner := metav1.GetControllerOfNoCopy(set)
	if owner == nil || kindOf(owner) != deployments || !asked.isAsIn(&set.Spec.Template) {
		return ledger.Surger{}, nil
	}
	deployment, err := r.Typed.AppsV1().Deployments(asked.namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err = is(deployment, owner.UID, err); err != nil {
		return ledger.Surger{}, fmt.Errorf("reading Deployment %s: %w", owner.Name, err)
	}
	fleet, err := r.fleetOf(ctx, deployment)
	if err != nil {
		return ledger.Surger{}, err
	}
	replicas := int64(ptr.Deref(deployment.Spec.Replicas, 1))
	all := fleet.pods() + asked.missing()
	switch others := fleet.pods() - fleet.of[set.UID]; {
	case fleet.planned > replicas+maxSurge(deployment, replicas): // a ReplicaSet was scaled by hand
		return ledger.Surger{}, nil
	case others == 0, int64(all) <= replicas:
		return ledger.Surger{}, nil
	default:
		return r.surger("Deployment", deployment), nil
	}
}

// fleet is the pods of a Deployment.
type fleet struct {
	// planned is how many pods its ReplicaSets ask for.
	planned int64
	// ReplicaSet -> how many pods it has
	of map[types.UID]int
}

func (f fleet) pods() (all int) {
	for _, number := range f.of {
		all += number
	}
	return all
}

func (r *Replacements) fleetOf(ctx context.Context, deployment *appsv1.Deployment) (fleet, error) {
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return fleet{}, fmt.Errorf("reading the selector of Deployment %s: %w", deployment.Name, err)
	}
	sets, err := r.Typed.AppsV1().ReplicaSets(deployment.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return fleet{}, fmt.Errorf("listing the ReplicaSets of Deployment %s: %w", deployment.Name, err)
	}
	found := fleet{of: map[types.UID]int{}}
	for i := range sets.Items {
		if one := &sets.Items[i]; metav1.IsControlledBy(one, deployment) {
			found.planned += int64(ptr.Deref(one.Spec.Replicas, 1))
			found.of[one.UID] = 0
		}
	}
	present, err := r.pods(ctx, deployment.Namespace, selector, fields.Everything())
	if err != nil {
		return fleet{}, err
	}
	for i := range present {
		controller := metav1.GetControllerOfNoCopy(&present[i])
		if controller == nil {
			continue
		}
		if _, owned := found.of[controller.UID]; owned {
			found.of[controller.UID]++
		}
	}
	return found, nil
}

// maxSurge is how many pods more than replicas a Deployment may have during a rollout.
func maxSurge(deployment *appsv1.Deployment, replicas int64) int64 {
	rolling := deployment.Spec.Strategy.RollingUpdate
	if rolling == nil {
		return 0
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, intstr.FromInt32(0)), int(replicas), true)
	if err != nil {
		return 0 // the API server stores no other text
	}
	return int64(surge)
}

// ofDaemonSet returns the DaemonSet of a pod, if another pod of it is on the same node.
func (r *Replacements) ofDaemonSet(ctx context.Context, asked ofPod) (ledger.Surger, error) {
	set, err := r.Typed.AppsV1().DaemonSets(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(set, asked.owner.UID, err); err != nil {
		return ledger.Surger{}, fmt.Errorf("reading DaemonSet %s: %w", asked.owner.Name, err)
	}
	node := nodeOf(asked.pod)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil || node == "" || !asked.isAsIn(&set.Spec.Template) {
		return ledger.Surger{}, err //nolint:wrapcheck // the API server stores no other selector
	}
	present, err := r.pods(ctx, asked.namespace, selector, fields.OneTermEqualSelector("spec.nodeName", node))
	if err != nil {
		return ledger.Surger{}, err
	}
	for _, pod := range present {
		if metav1.IsControlledBy(&pod, set) && pod.UID != asked.pod.UID {
			return r.surger("DaemonSet", set), nil
		}
	}
	return ledger.Surger{}, nil
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
func (r *Replacements) ofJob(ctx context.Context, asked ofPod) (ledger.Surger, error) {
	job, err := r.Typed.BatchV1().Jobs(asked.namespace).Get(ctx, asked.owner.Name, metav1.GetOptions{})
	if err = is(job, asked.owner.UID, err); err != nil {
		return ledger.Surger{}, fmt.Errorf("reading Job %s: %w", asked.owner.Name, err)
	}
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.Selector)
	if err != nil || !asked.isAsIn(&job.Spec.Template) {
		return ledger.Surger{}, err //nolint:wrapcheck // the API server stores no other selector
	}
	present, err := r.pods(ctx, asked.namespace, selector, fields.Everything())
	if err != nil {
		return ledger.Surger{}, err
	}
	all, terminating := asked.missing(), 0
	for _, pod := range present {
		if !metav1.IsControlledBy(&pod, job) {
			continue
		}
		all++
		if pod.DeletionTimestamp != nil && pod.Annotations[indexAnnotation] == asked.pod.Annotations[indexAnnotation] {
			terminating++
		}
	}
	if terminating == 0 || all <= int(ptr.Deref(job.Spec.Parallelism, 1)) {
		return ledger.Surger{}, nil
	}
	return r.surger("Job", job), nil
}

// ofMachine returns the virtual machine of a pod, if the pod is the target of a migration that isn't over, and the machine runs
// in another pod.
func (r *Replacements) ofMachine(ctx context.Context, asked ofPod) (ledger.Surger, error) {
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
		return ledger.Surger{}, nil
	}
	machine, err := read("virtualmachineinstances", asked.owner.Name, asked.owner.UID)
	if err != nil {
		return ledger.Surger{}, err
	}
	migration, err := read("virtualmachineinstancemigrations", name, uid)
	if err != nil || !migrates(migration, machine) {
		return ledger.Surger{}, err
	}
	present, err := r.pods(ctx, asked.namespace, labels.SelectorFromSet(podsOf(machine.GetUID())), fields.Everything())
	if err != nil || !lacksTarget(present, machine, uid) {
		return ledger.Surger{}, err
	}
	return r.surger(machines.Kind, machine), nil
}

// podsOf are the labels of all pods of a machine.
func podsOf(machine types.UID) labels.Set { return labels.Set{createdBy: string(machine)} }

// migrates reports whether a migration is of a machine, and isn't over.
func migrates(migration, machine *unstructured.Unstructured) bool {
	of, _, _ := unstructured.NestedString(migration.Object, "spec", "vmiName")
	phase, _, _ := unstructured.NestedString(migration.Object, "status", "phase")
	return of == machine.GetName() && phase != "Succeeded" && phase != "Failed"
}

// lacksTarget reports whether the machine has a pod, and none for the migration.
func lacksTarget(present []metav1.PartialObjectMetadata, machine metav1.Object, migration types.UID) bool {
	sources := 0
	for i := range present {
		pod := &present[i]
		switch {
		case !metav1.IsControlledBy(pod, machine):
		case pod.Labels[migrationLabel] == string(migration):
			return false
		default:
			sources++
		}
	}
	return sources > 0
}

// pods lists the metadata of pods that have not ended, as a quota counts them.
func (r *Replacements) pods(
	ctx context.Context, namespace string, selector labels.Selector, of fields.Selector,
) ([]metav1.PartialObjectMetadata, error) {
	of = fields.AndSelectors(of,
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)))
	list, err := r.Metadata.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).
		List(ctx, metav1.ListOptions{LabelSelector: selector.String(), FieldSelector: of.String()})
	if err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	return list.Items, nil
}

func (r *Replacements) surger(kind string, workload metav1.Object) ledger.Surger {
	return ledger.Surger{
		UID: workload.GetUID(), Kind: kind, Namespace: workload.GetNamespace(), Name: workload.GetName(), Since: r.Clock.Now(),
	}
}

// missing is one if the pod isn't there yet, and so not among the listed ones.
func (p ofPod) missing() int {
	if p.there {
		return 0
	}
	return 1
}

// isAsIn reports whether a pod that is there has claims as its workload's template says. Anybody may have created it.
func (p ofPod) isAsIn(template *corev1.PodTemplateSpec) bool {
	return !p.there || equality.Semantic.DeepEqual(ephemeral(p.pod.Spec.Volumes), ephemeral(template.Spec.Volumes)) &&
		equality.Semantic.DeepEqual(p.pod.Spec.ResourceClaims, template.Spec.ResourceClaims)
}

// ephemeral returns the volumes that claims are made for.
func ephemeral(volumes []corev1.Volume) (claimed []corev1.Volume) {
	for i := range volumes {
		if volumes[i].Ephemeral != nil {
			claimed = append(claimed, volumes[i])
		}
	}
	return claimed
}

// is returns an error if an object couldn't be read, or if another one has its name by now.
func is(object metav1.Object, uid types.UID, err error) error {
	if err == nil && object.GetUID() != uid {
		return apierrors.NewNotFound(schema.GroupResource{}, object.GetName())
	}
	return err
}
