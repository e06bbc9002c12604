// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRoom(t *testing.T) {
	pods := func(count string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(count)} }
	basis := Basis{Quota: "quota", Generation: 2, Digest: "digest"}
	limits := Limits{Basis: basis, Name: "team", Hard: corev1.ResourceList{"pods": resource.MustParse("10"), "services": resource.MustParse("3")}}
	held := func(name, count string) Reservation {
		return Reservation{Object: Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Name: name, UID: "uid"}, Attempt: name, Amounts: pods(count)}
	}
	escrow := escrowOf("process", "pods", "4")
	for name, test := range map[string]struct {
		state  State
		caller Knowledge
		left   corev1.ResourceList
		hard   string
		reason Reason
	}{
		"what is used and reserved is taken, and what isn't counted isn't known": {
			state: State{Basis: basis, Used: pods("5")}.with(held("a", "2")), left: pods("3"), hard: "10",
		},
		"what a replica holds in escrow is left": {state: State{Basis: basis, Used: pods("5")}.with(held("a", "2")).holding(escrow), left: pods("3"), hard: "10"},
		"more is used than allowed":              {state: State{Basis: basis, Used: pods("12")}, left: pods("-2"), hard: "10"},
		"a lowered limit binds": {
			state: State{Basis: basis, Used: pods("5"), Fence: Fence{Generation: 3, Hard: pods("6")}}, left: pods("1"), hard: "6",
		},
		"a ledger that is sealed":           {state: State{Basis: basis, Used: pods("5"), Sealed: time.Unix(1, 0)}, reason: Sealed},
		"no ledger":                         {reason: NotCounted},
		"a namespace that isn't joined yet": {state: State{Basis: basis, Used: pods("5")}, caller: Knowledge{Joined: 7, Seen: 7}, reason: NotJoined},
	} {
		t.Run(name, func(t *testing.T) {
			room, reason := test.state.Room(limits, test.caller)
			limit := room.Hard["pods"]
			if diff := cmp.Diff(test.left, room.Left); diff != "" || reason != test.reason || test.hard != "" && limit.String() != test.hard {
				t.Errorf("got %q and hard %s, left (-want,+got):\n%s", reason, limit.String(), diff)
			}
		})
	}
}
