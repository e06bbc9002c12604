// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Room is what a state leaves of a quota's limits.
type Room struct {
	// Hard is the most that may be used: what the spec says, or a fence if that is lower.
	Hard corev1.ResourceList
	// Left is Hard without what is used and reserved, of each resource that is counted. What
	// replicas hold in escrow is left, because they return it if it is asked for. Left is
	// below zero if more is used than Hard.
	Left corev1.ResourceList
}

// Room returns what is left of the limits for a caller that knows so much of namespaces. The Reason
// isn't empty if nobody can tell.
func (s State) Room(limits Limits, caller Knowledge) (Room, Reason) {
	if reason := (&Draft{state: s}).unknown(limits, caller, nil); reason != "" {
		return Room{}, reason
	}
	hard := s.Fence.bind(limits).Hard
	held := s.held()
	counted := quota.Mask(hard, quota.ResourceNames(held))
	return Room{Hard: hard, Left: quota.Subtract(counted, quota.Mask(held, quota.ResourceNames(counted)))}, ""
}

func (s State) held() corev1.ResourceList {
	draft := &Draft{state: s, index: s.Indexed().index}
	held := make(corev1.ResourceList, len(s.Used))
	for name := range s.Used {
		held[name] = draft.heldOf(name)
	}
	return held
}
