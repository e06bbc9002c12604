// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// grows reports whether a new pod takes more of anything than one of the old ones, or has other claims, or an old one isn't
// known. Such a pod gets no surge.
func (p *Pods) grows() bool {
	return !slices.ContainsFunc(p.New, isPod) || slices.ContainsFunc(p.Old, func(group Group) bool {
		return group.Count > 0 && !isInstead(p.New, group.Items)
	})
}

func isPod(item Item) bool { return item.Resource == podResource }

// isInstead reports whether a pod among the items may take surge while it replaces that of others.
func isInstead(fresh, old []Item) bool {
	newAt, oldAt := slices.IndexFunc(fresh, isPod), slices.IndexFunc(old, isPod)
	if newAt < 0 || oldAt < 0 {
		return false
	}
	after, isNew := fresh[newAt].Object.(*corev1.Pod)
	before, isOld := old[oldAt].Object.(*corev1.Pod)
	return isNew && isOld && TakesNoMore(after, before)
}

// TakesNoMore reports whether a pod takes no more than another one, and has the same claims, so that it may take surge while it
// replaces that.
func TakesNoMore(after, before *corev1.Pod) bool {
	most, err := evaluation.PodUsage(clock.RealClock{}, before)
	if err != nil {
		return false
	}
	takes, err := evaluation.PodUsage(clock.RealClock{}, after)
	if err != nil {
		return false
	}
	for name, amount := range takes {
		if amount.Cmp(most[name]) > 0 {
			return false
		}
	}
	return apiequality.Semantic.DeepEqual(claimed(before), claimed(after))
}

// claimed has the volumes and devices that claims are made for.
func claimed(pod *corev1.Pod) corev1.PodSpec {
	isOther := func(volume corev1.Volume) bool { return volume.Ephemeral == nil }
	return corev1.PodSpec{ResourceClaims: pod.Spec.ResourceClaims, Volumes: slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), isOther)}
}

// growing returns the moments without any pod that may take surge.
func (m moments) growing() moments {
	if m.created {
		m.grows = true
		m.plain.tell(m.most)
	}
	return m
}
