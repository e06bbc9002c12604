// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Balance is a quota's figures at one moment.
//
// Invariant: no object is in both Used and Reserved.
type Balance struct {
	// Target is the target that the figures were counted for; zero if nothing is
	// counted for the quota.
	Target Target
	// Selection identifies the selected namespaces, as counting.View.Selection does.
	Selection uint64
	// Complete are the resources that are counted to the end.
	Complete []corev1.ResourceName
	// Slices are the amounts that each selected namespace uses. namespace name ->
	// used
	Slices map[string]corev1.ResourceList
	// Used is the sum of Slices. Don't change it.
	Used corev1.ResourceList
	// Reserved is the ledger's amount for objects that aren't in Used. Escrow of replicas isn't in it: replicas give it
	// back before any charge is refused.
	Reserved corev1.ResourceList
	// Doubtful is the part of Reserved that seems to be for failed requests.
	// namespace name -> doubts
	Doubtful map[string]ledger.Doubts
}

// BalanceOf returns the balance of the quota that has this name and this UID, from its
// count and from the newest ledger that the caller knows.
//
// The ledger is an argument, rather than a function that is called while the
// count is locked, because the owner of the ledgers may hold its own lock and ask
// the count. So the ledger is a moment older than the count. Charges that were
// reserved since then are missing from Reserved, and charges that were given back
// since then are still in it: see Torn.
func BalanceOf(count *Count, quota string, uid types.UID, known ledger.State) Balance {
	// Before the count is locked, because it copies the ledger.
	draft := ledger.EditWithoutEscrows(known)
	var balance Balance
	count.Read(quota, func(view View) {
		target := view.Target()
		if target.UID != uid {
			return // another quota's, which had the same name
		}
		balance = Balance{
			Target: target, Selection: view.Selection(), Complete: view.CompleteNames(),
			Slices: view.Slices(), Used: view.Total(),
		}
		if known.Quota == uid {
			draft.Settle(ObservationOf(view))
		}
	})
	if known.Quota == uid {
		state := draft.State()
		balance.Reserved, balance.Doubtful = state.Reserved(), state.Doubtful()
	}
	return balance
}

// Uncounted returns the limited resources that are not counted to the end, or of which the ledger has no count. Charges
// are judged by the ledger, so a quota is not ready before that.
func (b *Balance) Uncounted(known ledger.State) []corev1.ResourceName {
	isOpen := known.Sealed.IsZero() && known.Quota == b.Target.UID && known.Digest == b.Target.Digest
	var uncounted []corev1.ResourceName
	for name := range b.Target.Sources {
		if _, settled := known.Used[name]; !isOpen || !settled || !slices.Contains(b.Complete, name) {
			uncounted = append(uncounted, name)
		}
	}
	return uncounted
}

// Torn reports whether the figures can't be of one moment: used and reserved
// together are above hard, though used alone isn't. Nothing is admitted above
// hard, so a reservation that the ledger gave back meanwhile is still among the
// reserved, or an object that is gone is still among the used. It is over in a
// moment, unless hard has been lowered below the admitted amount.
func Torn(hard, used, reserved corev1.ResourceList) bool {
	for name, limit := range hard {
		amount, counted := used[name]
		if !counted || amount.Cmp(limit) > 0 {
			continue
		}
		sum := amount.DeepCopy()
		sum.Add(reserved[name])
		if sum.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// BasisOf returns the ledger's name for a target.
func BasisOf(target Target) ledger.Basis {
	return ledger.Basis{Quota: target.UID, Generation: target.Generation, Digest: target.Digest}
}

// ObservationOf returns the observation that a ledger settles by. It is valid as
// long as the view is.
func ObservationOf(view View) ledger.Observation {
	target := view.Target()
	return ledger.Observation{
		Basis:    BasisOf(target),
		Hard:     target.Quota.Spec.Hard,
		Advisory: target.Quota.Advisory,
		Used:     view.Total(),
		Sources:  target.Sources,
		Counted:  view.Counted(),
		Touched:  view.Touched(),
		Joined:   view.LastJoined(),
		Members:  view.Counted()[ledger.Namespaces],
		Seen: func(reservation ledger.Reservation) bool {
			return view.Includes(reservation.Resource.GroupResource(), reservation.Namespace, reservation.Name,
				reservation.UID, ledger.ParseVersion(reservation.From))
		},
	}
}

// SettlementOf returns the observation that a ledger may settle by now. If a namespace has joined, and it isn't proved
// yet that the count has all its objects, the observation is dated before that join. So requests in that namespace are
// not judged by less than it brought.
//
// It returns nil if the ledger must wait for the proof: at a first count, and if another namespace has left
// since that date, because the count has its use no longer. counting.Count ends that wait. The observation is
// valid as long as the view is.
func SettlementOf(view View, known ledger.State) *ledger.Observation {
	observation := ObservationOf(view)
	unproved := Unproved(view, known)
	if len(unproved) == 0 {
		return &observation
	}
	if known.Quota != observation.Quota || known.Digest != observation.Digest {
		return nil
	}
	before := slices.MinFunc(unproved, func(a, b Joined) int { return cmp.Compare(a.Before, b.Before) }).Before
	if view.LastLeft() > before {
		return nil
	}
	observation.Touched[ledger.Namespaces], observation.Joined, observation.Members = before, min(observation.Joined, before), before
	return &observation
}

// Awaits reports whether the reservation of an object that exists must stay: the object will be counted, or
// the ledger hasn't counted yet that its namespace left or that the quota no longer limits it. Until then,
// requests may be judged by the old state, which may come back.
func Awaits(view View, known ledger.State, reservation ledger.Reservation) bool {
	members, seen := known.Counted[ledger.Namespaces], view.Counted()[ledger.Namespaces]
	if members > seen || !known.HasCounted(BasisOf(view.Target()), view.Touched()[ledger.Namespaces]) {
		return true
	}
	return view.Limits(reservation.Resource.GroupResource()) && view.Selects(reservation.Namespace)
}

// Unproved returns the joins that a ledger waits for.
func Unproved(view View, known ledger.State) []Joined {
	basis := BasisOf(view.Target())
	return view.Unproved(func(version uint64) bool { return known.HasJoined(basis, version) })
}
