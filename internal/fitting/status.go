// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// there is what a workload has of pods, by its status: those that are as they must be, and
// those that must be replaced. A status says how many pods there are, and how many of them have
// the template of the live object. Which template others have, nobody knows.
type there struct {
	current int64
	old     []Group
	// made: what the controller makes once for each template is there.
	made bool
}

// byStatus reports whether the status of a live object says what is there. One that is older than
// the spec doesn't: then nothing is taken to be there.
func (d *Demand) byStatus(live client.Object, observed int64) bool {
	if observed < live.GetGeneration() {
		d.Outdated = true
	}
	return !d.Outdated
}

// oldPods returns the pods that must be replaced: first those with the live template, and the rest.
func (d *Demand) oldPods(m Manifest, template *corev1.PodTemplateSpec, known, all int64) []Group {
	var old []Group
	known = max(0, min(known, all))
	if known > 0 {
		old = append(old, Group{Items: d.ofTemplate(template, m.Present), Count: known, Templated: true})
	}
	if all > known {
		old = append(old, Group{Count: all - known})
	}
	return old
}

// deploymentByStatus returns what a Deployment has.
func (d *Demand) deploymentByStatus(m Manifest, deployment *appsv1.Deployment) there {
	live, _ := m.Live.(*appsv1.Deployment)
	if live == nil || !d.byStatus(live, live.Status.ObservedGeneration) {
		return there{}
	}
	all := max(0, int64(live.Status.Replicas))
	updated := max(0, min(int64(live.Status.UpdatedReplicas), all))
	if sameTemplate(&live.Spec.Template, &deployment.Spec.Template) {
		return there{current: updated, old: d.oldPods(m, nil, 0, all-updated), made: live.Status.ObservedGeneration > 0}
	}
	return there{old: d.oldPods(m, &live.Spec.Template, updated, all)}
}

// statefulSetByStatus returns what a StatefulSet has of the pods that are wanted. The highest ordinals
// are replaced first, and those below the partition not at all.
func (d *Demand) statefulSetByStatus(m Manifest, set *appsv1.StatefulSet, wanted int64) there {
	live, _ := m.Live.(*appsv1.StatefulSet)
	if live == nil || !d.byStatus(live, live.Status.ObservedGeneration) {
		return there{}
	}
	all := min(max(0, int64(live.Status.Replicas)), wanted)
	updated := min(max(0, int64(live.Status.UpdatedReplicas)), all)
	same := sameTemplate(&live.Spec.Template, &set.Spec.Template)
	stays := partition(set, all)
	if same {
		replaced := max(0, all-stays-updated)
		return there{current: all - replaced, old: d.oldPods(m, nil, 0, replaced), made: true}
	}
	replaced := max(0, all-stays)
	return there{current: all - replaced, old: d.oldPods(m, &live.Spec.Template, updated, replaced)}
}

// partition returns how many of so many pods a changed template doesn't come to by itself.
func partition(set *appsv1.StatefulSet, all int64) int64 {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	switch {
	case set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return all
	case rolling == nil:
		return 0
	default:
		return max(0, int64(ptr.Deref(rolling.Partition, 0)))
	}
}

// daemonSetByStatus returns what a DaemonSet has.
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
