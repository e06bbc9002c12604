// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Fence is a spec that lowers a limit, or begins to enforce one, from before it is stored. Its limits bind each charge
// that is judged by an older generation of the spec. So no replica that has not seen the edit grants more than it
// allows.
type Fence struct {
	// Generation of the spec; zero for no fence.
	Generation int64
	// Hard is its limit for each resource that it lowers, and Surge the room above that for replacements.
	Hard, Surge corev1.ResourceList
	// Until is for people: when the API server has certainly given up on the edit, by the clock of the fence's writer. It is
	// later than that of every fence before, which tells two fences apart: see Life. It stays if the fence is removed.
	Until time.Time
}

// SetFence makes the limits of a spec bind before the spec is stored. If there is a fence already, both bind, because
// either spec may be stored.
func (d *Draft) SetFence(fence Fence) {
	standing := d.state.Fence
	if standing.Generation != 0 {
		fence.Hard, fence.Surge = tighter(fence.Hard, fence.Surge, standing.Hard, standing.Surge)
		fence.Generation = max(fence.Generation, standing.Generation)
	}
	if !standing.Until.IsZero() && fence.Until.Unix() <= standing.Until.Unix() {
		fence.Until = standing.Until.Add(time.Second)
	}
	d.state.Fence, d.changed = fence, true
}

// UpdateFence is called with the stored spec. If the fence is for that generation or an earlier one, the fenced spec
// was stored or never will be: the fence takes the stored spec's limits for the resources that it limits.
func (d *Draft) UpdateFence(generation int64, limits Limits) {
	standing := d.state.Fence
	if standing.Generation == 0 || standing.Generation > generation {
		return
	}
	limits = limits.Of(quota.ResourceNames(standing.Hard))
	standing.Hard, standing.Surge = limits.Hard, limits.Surge
	d.state.Fence, d.changed = standing, true
}

// RemoveFence removes the fence of a spec that was never stored, as the generation of the stored spec shows.
// It keeps a fence that was set again since. It also keeps the fence until used is counted for the stored
// spec, because the fence may include that spec's limits, and replicas may still judge by an older spec.
func (d *Draft) RemoveFence(fence Fence, stored int64) {
	standing := d.state.Fence
	if standing.Generation == fence.Generation && standing.Until.Equal(fence.Until) && stored <= d.state.Generation {
		d.state.Fence, d.changed = Fence{Until: standing.Until}, true
	}
}

// bind returns the limits that bind a charge by the given ones. If those only advise, the fence's limits are enforced in
// their place.
func (f Fence) bind(limits Limits) Limits {
	switch {
	case f.Generation <= limits.Generation || len(f.Hard) == 0:
	case limits.Advisory:
		limits.Hard, limits.Surge, limits.Advisory = f.Hard, f.Surge, false
	default:
		limits.Hard, limits.Surge = tighter(limits.Hard, limits.Surge, f.Hard, f.Surge)
	}
	return limits
}

// Supersedes reports whether the ledger knows of a newer spec of the quota than that of the limits.
func (s State) Supersedes(limits Limits) bool {
	return s.Quota == limits.Quota && max(s.Generation, s.Fence.Generation) > limits.Generation
}

// tighter returns the limits by which a charge fits only if it fits in both, also if its object replaces others.
func tighter(hard, surge, otherHard, otherSurge corev1.ResourceList) (bothHard, bothSurge corev1.ResourceList) {
	bothHard = smaller(hard, otherHard)
	if len(surge) == 0 && len(otherSurge) == 0 {
		return bothHard, nil
	}
	return bothHard, quota.RemoveZeros(quota.Subtract(smaller(most(hard, surge), most(otherHard, otherSurge)), bothHard))
}

// smaller returns the smaller of two limits for each resource that is in either.
func smaller(a, b corev1.ResourceList) corev1.ResourceList {
	least := a.DeepCopy()
	for name, limit := range b {
		if other, both := least[name]; !both || limit.Cmp(other) < 0 {
			least[name] = limit
		}
	}
	return least
}
