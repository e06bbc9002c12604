// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Room is the part of a quota's limits that a state leaves free.
type Room struct {
	// Hard is the most that may be used: the spec's limit, or a fence if that is
	// lower.
	Hard corev1.ResourceList
	// Left is Hard minus used and reserved amounts, for each resource that is counted. Amounts that replicas hold in
	// escrow are left, because replicas return them on request. Left is below zero if more is used than Hard.
	Left corev1.ResourceList
}

// Room returns the room of the limits for a caller with this knowledge of namespaces. The Reason isn't empty if the
// room is unknown.
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
