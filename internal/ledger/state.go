// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Namespaces is the source on which all that is counted depends.
var Namespaces = schema.GroupResource{Resource: "namespaces"}

const (
	// MaxReservations bounds the reservations, escrows and suspects in one ledger.
	MaxReservations = 5000
	// MaxBytes bounds their size as stored. With the other fields of a ledger,
	// the object stays below 1 MiB; etcd takes 1.5 MiB.
	MaxBytes = 900 << 10
)

// Object identifies an object and where to look it up.
type Object struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Name      string
	UID       types.UID
}

// Reservation is a charge held for one object from its admission until it is
// observed, or found never to come.
type Reservation struct {
	Object
	// From is the resourceVersion that an update started from; empty for a creation. Only a later version of
	// the object settles the reservation.
	From string
	// Attempt is the UID of the AdmissionRequest. Only the attempt itself changes
	// or releases its reservation, even if another attempt claims the object's
	// UID.
	Attempt string
	// Amounts are the amounts that admission charged.
	Amounts corev1.ResourceList
	// Expiry is for people: when the reservation ends by the clock of its writer. It decides nothing.
	Expiry time.Time
	// Doubtful: long after such requests end, a live look didn't find the object.
	Doubtful bool
}

// Key identifies a reservation within a ledger.
type Key struct {
	UID     types.UID
	Attempt string
}

// Key returns the reservation's identity.
func (r Reservation) Key() Key {
	return Key{UID: r.UID, Attempt: r.Attempt}
}

// slot identifies attempts of which at most one can win: a name that can be
// created once, or a version of an object that can be updated once. The attempts
// in a slot are charged as the largest of them.
type slot struct {
	resource        schema.GroupResource
	namespace, name string
	from            string
	// uid is of an object that shares its slot with none of another UID.
	uid types.UID
}

func (r Reservation) slot() slot {
	made := slot{resource: r.Resource.GroupResource(), namespace: r.Namespace, name: r.Name, from: r.From}
	if !isUnmistakable(r.Name) {
		made.uid = r.UID
	}
	return made
}

// isUnmistakable reports whether a name is of the characters of a DNS subdomain.
// The API server stores some objects, such as Roles, under other names too. Names
// that aren't valid UTF-8 become equal once they are JSON.
func isUnmistakable(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}

// Suspect is a namespace that held more in doubt than it may. Until this is over, it may hold less. One doubtful
// reservation that ended made it so, and Object and Attempt are of that.
type Suspect struct {
	Object
	Attempt string
	// Expiry is for people: when it is over by the clock of its writer.
	Expiry time.Time
}

// Forgotten says that Used was forgotten, because objects may have been stored without a request to the operator. It is a
// number below 1 << 63 that is used once, which tells this time from another one; zero if Used is not forgotten.
type Forgotten uint64

// State is a ledger at one instant. It is immutable: change it through a Draft.
type State struct {
	// Basis is the quota and the spec that Used was counted for; zero before the
	// first count.
	Basis
	// Used has the counted amounts. A resource that is missing here has not been
	// counted.
	Used corev1.ResourceList
	// Counted is how far Used includes each resource. For Namespaces it is the newest version at which a
	// namespace joined or left. A charge is judged only if its caller and the ledger know the same of that.
	//
	// resource -> resourceVersion up to which it is included
	Counted map[schema.GroupResource]uint64
	// Unlisted are the resources that can't be listed. Nothing that is counted from them is granted; all else is.
	Unlisted sets.Set[schema.GroupResource]
	// Forgotten: no count is settled until Require says how far it must have come.
	Forgotten Forgotten
	// Joined is the resourceVersion up to which Used has every namespace that joined. It is raised in writes that
	// happen anyway, by each replica that has seen that no namespace joined since. See Members.
	Joined uint64
	// Asked is the version to which a caller has asked to raise Joined; zero if
	// no caller waits for that.
	Asked uint64
	// Reservations are the charges in flight.
	// Key -> reservation
	Reservations map[Key]Reservation
	// Escrows are the amounts that replicas hold.
	// EscrowKey -> escrow
	Escrows map[EscrowKey]Escrow
	// Suspects are the namespaces that may hold less in doubt than others.
	// namespace -> suspect
	Suspects map[string]Suspect
	// Surgers are the workloads that took surge, which hasn't ended since.
	// UID -> workload
	Surgers map[types.UID]Surger
	// Fence has the lowered limits of a spec that is about to be stored; zero for none.
	Fence Fence
	// Sealed isn't zero if nothing is granted, because the ledger may lack requests that were in flight when it was
	// made. It shows people since when that is so, by the clock of its writer.
	Sealed time.Time
	// index is of Reservations and Escrows; nil if it has to be made first.
	index *index
}

// index has the sums of all reservations and escrows, which every batch needs. Made again for
// each batch, it took most of the batch's time.
//
// Invariant: it agrees with the State that it belongs to.
type index struct {
	// slot -> the reservations in it
	slots map[slot][]Key
	// reserved is the sum over all slots and escrows, and escrowed that over the escrows.
	reserved, escrowed corev1.ResourceList
	// bytes is the sum of all sizes.
	bytes int
	// doubtful is how many reservations are so.
	doubtful int
}

// Members is the resourceVersion up to which Used has every namespace that joined.
func (s State) Members() uint64 { return max(s.Joined, s.Counted[Namespaces]) }

// Sources are the resources that the ledger is counted from, whether or not they can be listed.
func (s State) Sources() sets.Set[schema.GroupResource] {
	return sets.KeySet(s.Counted).Union(s.Unlisted)
}

// Indexed returns the same state with its reservations and escrows added up, which saves later readers that work.
func (s State) Indexed() State {
	if s.index == nil {
		return Edit(s).State()
	}
	return s
}

// Reserved returns the sum of all reservations and escrows.
func (s State) Reserved() corev1.ResourceList {
	if s.index != nil {
		return s.index.reserved.DeepCopy()
	}
	return Edit(s).index.reserved
}
