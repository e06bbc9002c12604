// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// statefulSet makes claims that outlive its pods and are found again by name,
// and replaces one pod at a time, after it has gone.
func (d *Demand) statefulSet(m Manifest, set *appsv1.StatefulSet) {
	numbers := ordinalsOf(set)
	live, _ := m.Live.(*appsv1.StatefulSet)
	changed := live == nil || !sameTemplate(&live.Spec.Template, &set.Spec.Template)
	if changed {
		d.add(d.revision(m))
	}
	has := d.statefulSetHas(m, set, numbers, changed)
	d.claims(m, set, numbers, has)
	if !changed && len(has.old) == 0 && ordinalsOf(live).common(numbers) == numbers {
		// Fewer are wanted of the same template. Pods are made in order, so the missing ones are the last ones.
		has.current = min(numbers.count, has.current+has.leaving)
	}
	d.Pods = &Pods{
		New: d.ofTemplate(&set.Spec.Template, m.Present), Old: has.old,
		Wanted: numbers.count, Present: has.current, Unavailable: 1,
	}
	if live != nil && has.below < numbers.kept(set).count {
		d.madeOfTheTemplateBefore(m, live, changed)
	}
}

// madeOfTheTemplateBefore is called for a set that lacks pods below its partition. Their template is the live one, unless
// a rollout of that is under way.
func (d *Demand) madeOfTheTemplateBefore(m Manifest, live *appsv1.StatefulSet, changed bool) {
	if changed {
		d.Pods.Either = d.ofTemplate(&live.Spec.Template, m.Present)
		d.Unsure = true
	}
	status := &live.Status
	if m.Present.Unlisted && (status.CurrentRevision != status.UpdateRevision || status.ObservedGeneration < live.Generation) {
		d.Unpriced = "pods below its partition are made of an older template, which isn't known"
	}
}

// statefulSetHas returns the pods of a StatefulSet. The pods that aren't wanted any more go before others are replaced,
// unless a wanted one is missing: that is made first.
func (d *Demand) statefulSetHas(m Manifest, set *appsv1.StatefulSet, numbers ordinals, changed bool) there {
	if m.Present.Unlisted {
		return d.statefulSetByStatus(m, set, numbers)
	}
	live, _ := m.Live.(*appsv1.StatefulSet)
	kept := numbers.kept(set)
	pods, leaving := split(ownedBy(m.Live, m.Present.Pods), func(pod *corev1.Pod) bool { return numbers.has(ordinalOf(pod)) })
	current, old := split(pods, func(pod *corev1.Pod) bool {
		return deletedByHand(set) || kept.has(ordinalOf(pod)) ||
			!changed && pod.Labels[appsv1.ControllerRevisionHashLabelKey] == live.Status.UpdateRevision
	})
	below, _ := split(pods, func(pod *corev1.Pod) bool { return kept.has(ordinalOf(pod)) })
	if len(old) > 0 && int64(len(pods)) == numbers.count {
		old = append(old, leaving...)
	}
	return there{current: int64(len(current)), old: d.replaced(old, m.Present), below: int64(len(below))}
}

// statefulSetByStatus returns the wanted pods that a StatefulSet has. The highest ordinals are replaced first, and
// those below the partition not at all. If pods are missing, and not all of its earlier pods are wanted, the missing
// ones are taken to be among the wanted ones.
func (d *Demand) statefulSetByStatus(m Manifest, set *appsv1.StatefulSet, numbers ordinals) there {
	live, _ := m.Live.(*appsv1.StatefulSet)
	if live == nil || !d.byStatus(live, live.Status.ObservedGeneration) {
		return there{}
	}
	had := ordinalsOf(live)
	count := max(0, int64(live.Status.Replicas))
	missing := max(0, had.count-count)
	had.count = max(had.count, count)
	common := numbers.common(had)
	if missing > 0 && common != had {
		d.Unsure = true
	}
	all := max(0, common.count-missing)
	updated := min(numbers.common(had.last(int64(live.Status.UpdatedReplicas))).count, all)
	has := there{below: max(0, common.common(numbers.kept(set)).count-missing), leaving: count - all}
	stays := min(common.common(numbers.kept(set)).count, all)
	if deletedByHand(set) {
		stays = all
	}
	if sameTemplate(&live.Spec.Template, &set.Spec.Template) {
		replaced := max(0, all-stays-updated)
		has.current, has.old = all-replaced, d.oldPods(m, nil, 0, replaced)
	} else {
		has.current, has.old = stays, d.oldPods(m, &live.Spec.Template, updated, all-stays)
	}
	if len(has.old) > 0 && all == numbers.count {
		has.old = append(has.old, d.oldPods(m, &live.Spec.Template, int64(live.Status.UpdatedReplicas)-updated, has.leaving)...)
	}
	return has
}

// deletedByHand: the controller replaces no pod.
func deletedByHand(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
}

// claims adds the claims that are not there yet. If they were not listed, the pods that are there
// have one each, and others that an earlier scale left are not known.
func (d *Demand) claims(m Manifest, set *appsv1.StatefulSet, numbers ordinals, has there) {
	for _, template := range set.Spec.VolumeClaimTemplates {
		item := d.volumeClaim(template.ObjectMeta, template.Spec)
		item.EachPod = true
		item.Count = numbers.count - presentClaims(m.Present, template.Name+"-"+set.Name, numbers)
		if m.Present.Unlisted {
			item.Maybe = true
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

// revision is the ControllerRevision of a template. If the set is there already, it may be one that an earlier template
// left.
func (d *Demand) revision(m Manifest) Item {
	revision := &appsv1.ControllerRevision{}
	revision.Namespace = d.Namespace
	return Item{
		Resource: revisionResource, Kind: "ControllerRevision", Object: revision, Count: 1,
		Maybe: m.Present.Unlisted && m.Live != nil,
	}
}
