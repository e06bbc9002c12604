// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// generationLabel is on a DaemonSet's pods, and on the set as an annotation.
const generationLabel = "pod-template-generation"

// daemonSet makes a pod on each node that fits.
func (d *Demand) daemonSet(m Manifest, set *appsv1.DaemonSet) error {
	live, _ := m.Live.(*appsv1.DaemonSet)
	changed := live == nil || !sameTemplate(&live.Spec.Template, &set.Spec.Template)
	nodes, known := nodesOf(m.Present, set, live)
	if !known {
		return &UnknownNodesError{Namespace: d.Namespace, Name: d.Name}
	}
	has := d.daemonSetHas(m, set, live, changed)
	if changed {
		d.add(d.revision(m))
	}
	surge, err := surgeOf(set, nodes)
	if err != nil {
		return err
	}
	unavailable := int64(0)
	if surge == 0 {
		unavailable = 1
	}
	d.Pods = &Pods{
		New: d.ofTemplate(&set.Spec.Template, m.Present), Old: has.old,
		Wanted: nodes, Present: has.current, Surge: surge, Unavailable: unavailable,
	}
	return nil
}

// daemonSetHas returns the pods of a DaemonSet.
func (d *Demand) daemonSetHas(m Manifest, set, live *appsv1.DaemonSet, changed bool) there {
	if m.Present.Unlisted {
		return d.daemonSetByStatus(m, set)
	}
	current, old := split(ownedBy(m.Live, m.Present.Pods), func(pod *corev1.Pod) bool {
		return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType ||
			!changed && pod.Labels[generationLabel] == live.Annotations[appsv1.DeprecatedTemplateGeneration]
	})
	return there{current: int64(len(current)), old: d.replaced(old, m.Present)}
}

// nodesOf returns how many nodes the set runs on. Kubernetes has counted them for
// a set that is there, and as long as its pods go where they went.
func nodesOf(present Present, set, live *appsv1.DaemonSet) (int64, bool) {
	if present.Nodes != nil {
		if nodes, known := present.Nodes(set); known {
			return nodes, true
		}
	}
	if live == nil || live.Status.ObservedGeneration == 0 || !samePlaces(&live.Spec.Template.Spec, &set.Spec.Template.Spec) {
		return 0, false
	}
	return int64(live.Status.DesiredNumberScheduled), true
}

func samePlaces(a, b *corev1.PodSpec) bool {
	places := func(spec *corev1.PodSpec) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Affinity: spec.Affinity,
			Tolerations: spec.Tolerations, HostNetwork: spec.HostNetwork,
		}}
	}
	return sameTemplate(places(a), places(b))
}

func surgeOf(set *appsv1.DaemonSet, nodes int64) (int64, error) {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if rolling == nil || rolling.MaxSurge == nil {
		return 0, nil
	}
	surge, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(nodes), true)
	if err != nil {
		return 0, fmt.Errorf("reading its strategy: %w", err)
	}
	return int64(surge), nil
}
