// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// there has the pods of a workload: the pods that are as they must be, and the pods that must be replaced. It is made of
// the listed pods, or else of the workload's status. A status says how many pods there are, and how many of them have the
// template of the live object. The template of the other pods is unknown.
type there struct {
	current int64
	old     []Group
	// made: the objects that the controller makes once for each template are
	// there.
	made bool
	// below is how many of a StatefulSet's pods are there that a changed template doesn't come to.
	below int64
	// leaving are pods of a StatefulSet that a status counts, and that may not be wanted any more.
	leaving int64
}

// byStatus reports whether the status of a live object describes the present pods. A status that is older than the spec
// doesn't: then nothing is taken to be there.
func (d *Demand) byStatus(live client.Object, observed int64) bool {
	if observed < live.GetGeneration() {
		d.Unsure = true
		return false
	}
	return true
}

// oldPods returns the pods that must be replaced: first those with the live template, and the rest.
// The rest is counted as freeing nothing.
func (d *Demand) oldPods(m Manifest, template *corev1.PodTemplateSpec, known, all int64) []Group {
	var old []Group
	known = max(0, min(known, all))
	if known > 0 {
		old = append(old, Group{Items: d.ofTemplate(template, m.Present), Count: known, Templated: true})
	}
	if all > known {
		d.Unsure = true
		old = append(old, Group{Count: all - known})
	}
	return old
}

// deploymentByStatus returns the pods of a Deployment. A paused one makes no ReplicaSet for its template.
func (d *Demand) deploymentByStatus(m Manifest, deployment *appsv1.Deployment) there {
	live, _ := m.Live.(*appsv1.Deployment)
	if live == nil || !d.byStatus(live, live.Status.ObservedGeneration) {
		return there{}
	}
	all := max(0, int64(live.Status.Replicas))
	updated := max(0, min(int64(live.Status.UpdatedReplicas), all))
	if sameTemplate(&live.Spec.Template, &deployment.Spec.Template) {
		made := live.Status.ObservedGeneration > 0 && (!live.Spec.Paused || updated > 0)
		return there{current: updated, old: d.oldPods(m, nil, 0, all-updated), made: made}
	}
	return there{old: d.oldPods(m, &live.Spec.Template, updated, all)}
}

// daemonSetByStatus returns the pods of a DaemonSet.
func (d *Demand) daemonSetByStatus(m Manifest, set *appsv1.DaemonSet) there {
	live, _ := m.Live.(*appsv1.DaemonSet)
	if live == nil || !d.byStatus(live, live.Status.ObservedGeneration) {
		return there{}
	}
	all := max(0, int64(live.Status.CurrentNumberScheduled))
	updated := min(max(0, int64(live.Status.UpdatedNumberScheduled)), all)
	same := sameTemplate(&live.Spec.Template, &set.Spec.Template)
	switch {
	case set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return there{current: all, made: same}
	case same:
		return there{current: updated, old: d.oldPods(m, nil, 0, all-updated), made: true}
	default:
		return there{old: d.oldPods(m, &live.Spec.Template, updated, all)}
	}
}

// podsByStatus returns how many pods a workload has that replaces none.
func (d *Demand) podsByStatus(live client.Object) int64 {
	switch live := live.(type) {
	case *appsv1.ReplicaSet:
		if live != nil && d.byStatus(live, live.Status.ObservedGeneration) {
			return max(0, int64(live.Status.Replicas))
		}
	case *corev1.ReplicationController:
		if live != nil && d.byStatus(live, live.Status.ObservedGeneration) {
			return max(0, int64(live.Status.Replicas))
		}
	}
	return 0
}
