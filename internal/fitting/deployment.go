// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

// deployment makes a ReplicaSet for each template, and pods by it. Pods of older
// ones are replaced as the strategy says.
func (d *Demand) deployment(m Manifest, deployment *appsv1.Deployment) error {
	has := d.deploymentHas(m, deployment)
	wanted := int64(ptr.Deref(deployment.Spec.Replicas, 1))
	if deployment.Spec.Paused {
		d.paused(m, wanted, has)
		return nil
	}
	if !has.made {
		d.add(Item{
			Resource: replicaResource, Kind: "ReplicaSet", Object: d.replicaSet(deployment), Count: 1,
			Maybe: m.Present.Unlisted && m.Live != nil, // that of an earlier template may still be there
		})
	}
	surge, unavailable, err := fenceposts(deployment, wanted)
	if err != nil {
		return err
	}
	d.Pods = &Pods{
		New: d.ofTemplate(&deployment.Spec.Template, m.Present), Old: has.old,
		Wanted: wanted, Present: has.current, Surge: surge, Unavailable: unavailable,
	}
	if live, _ := m.Live.(*appsv1.Deployment); live != nil && deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		d.scaledFirst(wanted-int64(ptr.Deref(live.Spec.Replicas, 1)), !sameTemplate(&live.Spec.Template, &deployment.Spec.Template))
	}
	return nil
}

// scaledFirst is called for a rolling Deployment that gets so many pods more than before: if older ones are there,
// more of these are made first. Of one that recreates its pods, nothing waits for these: all older ones go.
func (d *Demand) scaledFirst(more int64, changed bool) {
	if more <= 0 {
		return
	}
	if len(d.Pods.Old) > 0 {
		d.Pods.Grows = more
	}
	unknown := slices.ContainsFunc(d.Pods.Old, func(group Group) bool { return group.Items == nil })
	if unknown || changed && d.Unsure {
		d.Unpriced = unknownTemplate
	}
}

// unknownTemplate says that a ReplicaSet makes pods, and its template isn't known.
const unknownTemplate = "more pods of an older template may be made, which isn't known"

// deploymentHas returns the pods and ReplicaSet of a Deployment.
func (d *Demand) deploymentHas(m Manifest, deployment *appsv1.Deployment) there {
	if m.Present.Unlisted {
		return d.deploymentByStatus(m, deployment)
	}
	replicaSets := ownedBy(m.Live, m.Present.ReplicaSets)
	current := currentReplicaSet(deployment, replicaSets)
	has, old := there{made: current != nil}, []*corev1.Pod(nil)
	for _, set := range replicaSets {
		of := controlledBy(set.UID, m.Present.Pods)
		if set == current {
			has.current = int64(len(of))
		} else {
			old = append(old, of...)
		}
	}
	has.old = d.replaced(old, m.Present)
	return has
}

// paused is scaled, and not rolled out. New pods have the template of the present ones. A new template stays without a
// ReplicaSet.
func (d *Demand) paused(m Manifest, wanted int64, has there) {
	d.note(pausedDeployment(d.Namespace, d.Name))
	live, _ := m.Live.(*appsv1.Deployment)
	present := has.current + (&Pods{Old: has.old}).Replaced()
	if live == nil || !scales(m, live, present) {
		return
	}
	d.Pods = &Pods{New: d.ofTemplate(&live.Spec.Template, m.Present), Wanted: wanted, Present: present}
	if m.Present.Unlisted && wanted > present && (present == 0 || live.Status.UpdatedReplicas < live.Status.Replicas) {
		d.Unpriced = unknownTemplate
	}
}

// scales reports whether a paused Deployment has a ReplicaSet. It has none if it was paused from the start.
func scales(m Manifest, live *appsv1.Deployment, present int64) bool {
	if m.Present.Unlisted {
		return present > 0 || live.Annotations[util.RevisionAnnotation] != ""
	}
	return len(ownedBy(m.Live, m.Present.ReplicaSets)) > 0
}

func currentReplicaSet(deployment *appsv1.Deployment, sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	for _, set := range sets {
		if util.EqualIgnoreHash(&deployment.Spec.Template, &set.Spec.Template) {
			return set
		}
	}
	return nil
}

func (d *Demand) replicaSet(deployment *appsv1.Deployment) *appsv1.ReplicaSet {
	set := &appsv1.ReplicaSet{}
	set.Namespace, set.Labels = d.Namespace, deployment.Spec.Template.Labels
	return set
}

// fenceposts returns how many pods more and how many fewer than wanted there may
// be while pods are replaced. Recreate does without all of them.
func fenceposts(deployment *appsv1.Deployment, wanted int64) (surge, unavailable int64, err error) {
	rolling := deployment.Spec.Strategy.RollingUpdate
	if deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0, wanted, nil
	}
	if rolling == nil {
		return 0, 1, nil
	}
	more, fewer, err := util.ResolveFenceposts(rolling.MaxSurge, rolling.MaxUnavailable, int32(wanted)) //nolint:gosec // it was an int32
	if err != nil {
		return 0, 0, fmt.Errorf("reading its strategy: %w", err)
	}
	return int64(more), int64(fewer), nil
}
