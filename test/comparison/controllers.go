// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Kubernetes' controllers, as far as they create and delete objects. Each function does all that its controller can. The
// error is the refusal that the controller would meet for ever.

func apps(resource string) schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource(resource)
}

func coreV1(resource string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(resource)
}

// resourceOf returns the resource of a workload.
func resourceOf(object client.Object) schema.GroupVersionResource {
	kind := object.GetObjectKind().GroupVersionKind()
	return kind.GroupVersion().WithResource(map[string]string{
		"Deployment": "deployments", "StatefulSet": "statefulsets", "ReplicaSet": "replicasets", "DaemonSet": "daemonsets",
		"Job": "jobs", "CronJob": "cronjobs", "ReplicationController": "replicationcontrollers", "Pod": "pods",
		"PersistentVolumeClaim": "persistentvolumeclaims", "Service": "services", "ConfigMap": "configmaps",
	}[kind.Kind])
}

// Force applies the workload before, and lets as many of its pods come as the case says, whatever the quotas say.
func (c *Cluster) Force() {
	c.forced = true
	c.Apply(c.Before, nil)
	c.forced, c.started = false, 0
}

// Apply stores the object, and lets the controllers act. If the object itself is refused, nothing comes of it. They act
// nevertheless, because that is what preflight is asked about.
func (c *Cluster) Apply(object, before client.Object) Outcome {
	stored, _ := object.DeepCopyObject().(client.Object)
	var itself error
	if before == nil {
		_, itself = c.create(resourceOf(object), object.GetObjectKind().GroupVersionKind().Kind, stored)
	}
	made := c.control(stored, before)
	if c.started == 0 {
		c.started = len(c.pods)
	}
	return Outcome{Itself: asRefusal(itself), Made: asRefusal(made), Pods: c.started, Remarks: c.remarks}
}

func asRefusal(err error) *RefusalError {
	refusal, _ := errors.AsType[*RefusalError](err)
	return refusal
}

func (c *Cluster) control(object, before client.Object) error {
	switch object := object.(type) {
	case *appsv1.Deployment:
		live, _ := before.(*appsv1.Deployment)
		return c.deployment(object, live)
	case *appsv1.StatefulSet:
		live, _ := before.(*appsv1.StatefulSet)
		return c.statefulSet(object, live)
	case *appsv1.DaemonSet:
		live, _ := before.(*appsv1.DaemonSet)
		return c.daemonSet(object, live)
	case *appsv1.ReplicaSet:
		return c.copies(&object.Spec.Template, int(*object.Spec.Replicas))
	case *corev1.ReplicationController:
		return c.copies(object.Spec.Template, int(*object.Spec.Replicas))
	case *batchv1.Job:
		return c.job(&object.Spec)
	case *batchv1.CronJob:
		return c.cronJob(object)
	case *corev1.Pod:
		return c.claimsOf(&pod{Pod: object})
	}
	return nil
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: Namespace, Name: name} }

// pod makes a pod and the claims for it. A pod whose claims are refused waits for them, and isn't counted as one that came.
func (c *Cluster) pod(template *corev1.PodTemplateSpec, ordinal int) error {
	if c.forced && len(c.pods) >= c.Came {
		return &RefusalError{Kind: "Pod", Message: "no more came"}
	}
	made := &pod{template: template, ordinal: ordinal, Pod: &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}}
	made.Namespace, made.Name, made.UID = Namespace, fmt.Sprint(Name, "-", c.serial), types.UID(fmt.Sprint("pod-", c.serial))
	if ordinal >= 0 {
		made.Name = fmt.Sprint(Name, "-", ordinal)
	}
	key, err := c.create(coreV1("pods"), "Pod", made.Pod)
	if err != nil {
		return err
	}
	made.charged = append(made.charged, *key)
	if err := c.claimsOf(made); err != nil {
		c.free(made.charged)
		return err
	}
	c.pods = append(c.pods, made)
	return nil
}

// claimsOf makes the claims that go with a pod.
func (c *Cluster) claimsOf(made *pod) error {
	for _, volume := range made.Spec.Volumes {
		if volume.Ephemeral != nil {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta(made.Name + "-" + volume.Name), Spec: *volume.Ephemeral.VolumeClaimTemplate.Spec.DeepCopy()}
			key, err := c.create(coreV1("persistentvolumeclaims"), "PersistentVolumeClaim", claim)
			if err != nil {
				return err
			}
			made.charged = append(made.charged, *key)
		}
	}
	for _, claimed := range made.Spec.ResourceClaims {
		claim := &resourceapi.ResourceClaim{ObjectMeta: meta(made.Name + "-" + claimed.Name), Spec: ClaimTemplate(Namespace).Spec.Spec}
		key, err := c.create(resourceapi.SchemeGroupVersion.WithResource("resourceclaims"), "ResourceClaim", claim)
		if err != nil {
			return err
		}
		made.charged = append(made.charged, *key)
		made.Status.ResourceClaimStatuses = append(made.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: claimed.Name})
	}
	return nil
}

// replacing makes a pod beside an old one that it replaces; nil for none.
func (c *Cluster) replacing(old *pod, template *corev1.PodTemplateSpec) error {
	c.instead = old
	defer func() { c.instead = nil }()
	return c.pod(template, -1)
}

func (c *Cluster) delete(which *pod) {
	c.free(which.charged)
	c.pods = slices.DeleteFunc(c.pods, func(pod *pod) bool { return pod == which })
}

func same(a, b *corev1.PodTemplateSpec) bool { return apiequality.Semantic.DeepEqual(a, b) }

// with returns the pods of the template, and the others.
func (c *Cluster) with(template *corev1.PodTemplateSpec) (current, old []*pod) {
	for _, pod := range c.pods {
		if same(pod.template, template) {
			current = append(current, pod)
		} else {
			old = append(old, pod)
		}
	}
	return current, old
}

// copies makes and deletes pods until there are so many.
func (c *Cluster) copies(template *corev1.PodTemplateSpec, wanted int) error {
	for len(c.pods) > wanted {
		c.delete(c.pods[len(c.pods)-1])
	}
	for len(c.pods) < wanted {
		if err := c.pod(template, -1); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) replicaSet(template *corev1.PodTemplateSpec) error {
	if slices.ContainsFunc(c.sets, func(set *appsv1.ReplicaSet) bool { return same(&set.Spec.Template, template) }) {
		return nil
	}
	set := &appsv1.ReplicaSet{ObjectMeta: meta(fmt.Sprint(Name, "-", len(c.sets))), Spec: appsv1.ReplicaSetSpec{Template: *template}}
	set.UID = types.UID(set.Name)
	if _, err := c.create(apps("replicasets"), "ReplicaSet", set.DeepCopy()); err != nil {
		return err
	}
	c.sets = append(c.sets, set)
	return nil
}

func (c *Cluster) deployment(object, before *appsv1.Deployment) error {
	template, wanted := &object.Spec.Template, int(*object.Spec.Replicas)
	if object.Spec.Paused { // It is only scaled.
		if len(c.sets) == 0 {
			return nil
		}
		return c.copies(&c.sets[len(c.sets)-1].Spec.Template, wanted)
	}
	if before != nil && len(c.pods) > 0 { // It is scaled before the template changes.
		if more := wanted - int(*before.Spec.Replicas); more > 0 {
			_ = c.copies(c.pods[0].template, len(c.pods)+more)
		}
	}
	if err := c.replicaSet(template); err != nil {
		return err
	}
	surge, unavailable := 0, wanted // Recreate
	if rolling := object.Spec.Strategy.RollingUpdate; rolling != nil {
		surge, unavailable = rolling.MaxSurge.IntValue(), rolling.MaxUnavailable.IntValue()
	}
	for {
		current, old := c.with(template)
		switch {
		case len(current) > wanted:
			c.delete(current[0])
		case len(old) > 0 && len(c.pods) > wanted-unavailable:
			c.delete(old[0])
		case len(current) == wanted:
			return nil
		case len(c.pods) >= wanted+surge:
			panic("a rollout that can neither create nor delete")
		default:
			var instead *pod
			if len(old) > 0 && len(c.pods) >= wanted {
				instead = old[0]
			}
			if err := c.replacing(instead, template); err != nil {
				return err
			}
		}
	}
}

func (c *Cluster) statefulSet(object, before *appsv1.StatefulSet) error {
	template, wanted, older := &object.Spec.Template, int(*object.Spec.Replicas), &object.Spec.Template
	byHand, partition := object.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType, 0
	if rolling := object.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = int(ptr.Deref(rolling.Partition, 0))
	}
	if before != nil {
		older = &before.Spec.Template
	}
	if before == nil || !same(older, template) {
		if _, err := c.create(apps("controllerrevisions"), "ControllerRevision", &appsv1.ControllerRevision{ObjectMeta: meta("revision")}); err != nil {
			return err
		}
	}
	at := func(ordinal int) *pod {
		if i := slices.IndexFunc(c.pods, func(pod *pod) bool { return pod.ordinal == ordinal }); i >= 0 {
			return c.pods[i]
		}
		return nil
	}
	fill := func(ordinal int) error {
		of := template
		if ordinal < partition {
			of = older
		}
		for i := range object.Spec.VolumeClaimTemplates {
			claim := object.Spec.VolumeClaimTemplates[i].DeepCopy()
			claim.Name, claim.Namespace = fmt.Sprint(claim.Name, "-", Name, "-", ordinal), Namespace
			if c.claims[claim.Name] {
				continue
			}
			if _, err := c.create(coreV1("persistentvolumeclaims"), "PersistentVolumeClaim", claim); err != nil {
				return err
			}
			c.claims[claim.Name] = true
		}
		return c.pod(of, ordinal)
	}
	for _, pod := range slices.Clone(c.pods) {
		if pod.ordinal >= wanted {
			c.delete(pod)
		}
	}
	for ordinal := range wanted {
		if at(ordinal) == nil {
			if err := fill(ordinal); err != nil {
				return err
			}
		}
	}
	for ordinal := wanted - 1; ordinal >= partition && !byHand; ordinal-- {
		if pod := at(ordinal); !same(pod.template, template) {
			c.delete(pod)
			if err := fill(ordinal); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) daemonSet(object, before *appsv1.DaemonSet) error {
	template := &object.Spec.Template
	if before == nil || !same(&before.Spec.Template, template) {
		if _, err := c.create(apps("controllerrevisions"), "ControllerRevision", &appsv1.ControllerRevision{ObjectMeta: meta("revision")}); err != nil {
			return err
		}
	}
	surges := object.Spec.UpdateStrategy.RollingUpdate != nil && object.Spec.UpdateStrategy.RollingUpdate.MaxSurge.IntValue() > 0
	if err := c.copies(template, c.Nodes); err != nil {
		return err
	}
	_, old := c.with(template)
	for _, pod := range old {
		if !surges {
			c.delete(pod)
		}
		instead := pod
		if !surges {
			instead = nil
		}
		if err := c.replacing(instead, template); err != nil {
			return err
		}
		if surges {
			c.delete(pod)
		}
	}
	return nil
}

func (c *Cluster) cronJob(object *batchv1.CronJob) error {
	if *object.Spec.Suspend {
		return nil
	}
	if _, err := c.create(batchv1.SchemeGroupVersion.WithResource("jobs"), "Job", &batchv1.Job{ObjectMeta: meta("run")}); err != nil {
		return err
	}
	return c.job(&object.Spec.JobTemplate.Spec)
}

// job runs to its end: each pod that ends makes room for the next, and stays.
func (c *Cluster) job(spec *batchv1.JobSpec) error {
	if *spec.Suspend {
		return nil
	}
	atOnce, all := int(*spec.Parallelism), int(*spec.Parallelism)
	if spec.Completions != nil {
		all = int(*spec.Completions)
		atOnce = min(atOnce, all)
	}
	err := c.copies(&spec.Template, atOnce)
	c.started = len(c.pods)
	for ended := 0; err == nil && atOnce > 0 && len(c.pods) < all; ended++ {
		c.end(c.pods[ended])
		err = c.pod(&spec.Template, -1)
	}
	return err
}

// end is called for a pod that succeeded. What is left of it can't be refused.
func (c *Cluster) end(ended *pod) {
	c.free(ended.charged)
	ended.Status.Phase = corev1.PodSucceeded
	forced := c.forced
	c.forced = true
	key, err := c.charge(coreV1("pods"), "Pod", ended.Pod, nil)
	must(err)
	c.forced = forced
	ended.charged = []ledger.Key{*key}
}
