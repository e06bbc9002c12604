// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Fence is a spec that lowers a limit, from before it is stored. Its limits bind
// whoever judges by an older generation of the spec, so that no replica that has not
// seen the edit grants more than it allows.
type Fence struct {
	// Generation of the spec; zero for no fence.
	Generation int64
	// Hard is its limit for each resource.
	Hard corev1.ResourceList
	// Until is when the API server has certainly given up on the edit. If the spec is
	// not stored by then, it never will be.
	Until time.Time
}

// Raise makes the limits of a spec that is about to be stored bind. Another fence
// that stands already binds too: which of the two specs will be stored is not known.
func (d *Draft) Raise(fence Fence) {
	if standing := d.state.Fence; standing.Generation != 0 {
		fence.Hard = lower(fence.Hard, standing.Hard)
		fence.Generation = max(fence.Generation, standing.Generation)
		if standing.Until.After(fence.Until) {
			fence.Until = standing.Until
		}
	}
	d.state.Fence, d.changed = fence, true
}

// Stored tells which generation of the spec is stored. A fence for that one, or for one before
// it, is out of date: its limits have been stored, or never will be. What it limits, the
// stored spec limits.
func (d *Draft) Stored(generation int64, hard corev1.ResourceList) {
	standing := d.state.Fence
	if standing.Generation == 0 || standing.Generation > generation {
		return
	}
	standing.Hard = quota.Mask(hard, quota.ResourceNames(standing.Hard))
	d.state.Fence, d.changed = standing, true
}

// Lower removes the fence of a spec that was never stored, as the generation of the stored spec shows. One
// that was raised again since stays. So does one if used is not counted for the stored spec yet: its limits
// may be among those that the fence has, and bind whoever judges by a spec before it.
func (d *Draft) Lower(fence Fence, stored int64) {
	standing := d.state.Fence
	if standing.Generation == fence.Generation && standing.Until.Equal(fence.Until) && stored <= d.state.Generation {
		d.state.Fence, d.changed = Fence{}, true
	}
}

// bind returns what a charge by the limits may reach.
func (f Fence) bind(limits Limits) corev1.ResourceList {
	if f.Generation <= limits.Generation {
		return limits.Hard
	}
	return lower(limits.Hard, f.Hard)
}

// lower returns the smaller of two limits for each resource that is in either.
func lower(a, b corev1.ResourceList) corev1.ResourceList {
	least := a.DeepCopy()
	for name, limit := range b {
		if other, both := least[name]; !both || limit.Cmp(other) < 0 {
			least[name] = limit
		}
	}
	return least
}
