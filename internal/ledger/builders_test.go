// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var expiry = time.Unix(2000, 0)

func basis() Basis { return Basis{Quota: "quota", Generation: 3, Digest: "digest"} }

// list takes names and quantities in turn.
func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limits(hard ...string) Limits {
	return Limits{Name: "team", Basis: basis(), Hard: list(hard...)}
}

// counted is a ledger of which so much is used.
func counted(used ...string) State {
	return State{Basis: basis(), Used: list(used...)}
}

func (s State) with(held ...Reservation) State {
	s.Reservations = cloned(s.Reservations)
	for _, reservation := range held {
		s.Reservations[reservation.Key()] = reservation
	}
	return s
}

func (s State) holding(escrows ...Escrow) State {
	s.Escrows = cloned(s.Escrows)
	for _, escrow := range escrows {
		s.Escrows[escrow.EscrowKey] = escrow
	}
	return s
}

func escrowOf(holder types.UID, amounts ...string) Escrow {
	return Escrow{EscrowKey: EscrowKey{Process: holder, Number: 1}, Holder: "replica", Amounts: list(amounts...), Expiry: expiry}
}

func (s State) upTo(source schema.GroupResource, version uint64) State {
	s.Counted = cloned(s.Counted)
	s.Counted[source] = version
	return s
}

// creation is a charge for a new pod.
func creation(uid types.UID, name string, amounts ...string) Reservation {
	return Reservation{
		Object:  Object{Resource: podResource, Namespace: "ns", Name: name, UID: uid},
		Amounts: list(amounts...), Expiry: expiry,
	}
}

// update is a charge for a change of a pod.
func update(uid types.UID, name, from, attempt string, amounts ...string) Reservation {
	held := creation(uid, name, amounts...)
	held.From, held.Attempt = from, attempt
	return held
}

func (r Reservation) expiring(at time.Time) Reservation {
	r.Expiry = at
	return r
}

// asking is a charge of a caller that has seen all namespaces there ever are.
func asking(limits Limits, reservation Reservation) Charge {
	return Charge{Limits: limits, Reservation: reservation, Knowledge: Knowledge{Seen: math.MaxUint64}}
}
