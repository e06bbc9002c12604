// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// ordinals are the numbers of a StatefulSet's pods.
type ordinals struct{ first, count int64 }

func (o ordinals) has(ordinal int64) bool { return ordinal >= o.first && ordinal < o.first+o.count }

// statefulSet makes claims that outlive its pods and are found again by name,
// and replaces one pod at a time, after it has gone.
func (d *Demand) statefulSet(m Manifest, set *appsv1.StatefulSet) {
	numbers := ordinals{count: int64(ptr.Deref(set.Spec.Replicas, 1))}
	if set.Spec.Ordinals != nil {
		numbers.first = int64(set.Spec.Ordinals.Start)
	}
	live, _ := m.Live.(*appsv1.StatefulSet)
	changed := live == nil || !sameTemplate(&live.Spec.Template, &set.Spec.Template)
	if changed {
		d.add(Item{Resource: revisionResource, Kind: "ControllerRevision", Object: d.revision(), Count: 1})
	}
	has := d.statefulSetHas(m, set, numbers, changed)
	d.claims(m, set, numbers, has)
	d.Pods = &Pods{
		New: d.ofTemplate(&set.Spec.Template, m.Present), Old: has.old,
		Wanted: numbers.count, Present: has.current, Unavailable: 1,
	}
}

// statefulSetHas returns what there is of a StatefulSet.
func (d *Demand) statefulSetHas(m Manifest, set *appsv1.StatefulSet, numbers ordinals, changed bool) there {
	if m.Present.Unlisted {
		return d.statefulSetByStatus(m, set, numbers.count)
	}
	live, _ := m.Live.(*appsv1.StatefulSet)
	pods, _ := split(ownedBy(m.Live, m.Present.Pods), func(pod *corev1.Pod) bool { return numbers.has(ordinalOf(pod)) })
	current, old := split(pods, func(pod *corev1.Pod) bool {
		return !isReplaced(set, pod) || !changed && pod.Labels[appsv1.ControllerRevisionHashLabelKey] == live.Status.UpdateRevision
	})
	return there{current: int64(len(current)), old: d.replaced(old, m.Present)}
}

// claims adds the claims that are not there yet. If they were not listed, the pods that are there
// have one each, and others that an earlier scale left are not known.
func (d *Demand) claims(m Manifest, set *appsv1.StatefulSet, numbers ordinals, has there) {
	for _, template := range set.Spec.VolumeClaimTemplates {
		item := d.volumeClaim(template.ObjectMeta, template.Spec)
		item.EachPod = true
		item.Count = numbers.count - presentClaims(m.Present, template.Name+"-"+set.Name, numbers)
		if m.Present.Unlisted {
			item.Count = numbers.count - has.current - (&Pods{Old: has.old}).Replaced()
		}
		item.Object.SetGenerateName(template.Name + "-" + set.Name + "-")
		item.Object.SetName("")
		d.add(item)
	}
}

// presentClaims goes through the claims that are there: there may be many more
// ordinals than claims.
func presentClaims(present Present, stem string, numbers ordinals) int64 {
	var count int64
	for name := range present.Claims {
		if suffix, ok := strings.CutPrefix(name, stem+"-"); ok && numbers.has(ordinal(suffix)) {
			count++
		}
	}
	return count
}

// isReplaced reports whether a changed template comes to this pod by itself.
func isReplaced(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return rolling == nil || ordinalOf(pod) >= int64(ptr.Deref(rolling.Partition, 0))
}

func ordinalOf(pod *corev1.Pod) int64 {
	return ordinal(pod.Name[strings.LastIndex(pod.Name, "-")+1:])
}

// ordinal returns -1 for what is no ordinal: "7", but not "07".
func ordinal(suffix string) int64 {
	number, err := strconv.ParseInt(suffix, 10, 32)
	if err != nil || fmt.Sprint(number) != suffix {
		return -1
	}
	return number
}

func (d *Demand) revision() *appsv1.ControllerRevision {
	revision := &appsv1.ControllerRevision{}
	revision.Namespace = d.Namespace
	return revision
}
