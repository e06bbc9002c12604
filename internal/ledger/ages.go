// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Life belongs to each thing that one process writes and another process ends by its age. Its age is the time since
// the process that judges it first saw it, by that process's own monotonic clock, as in leader election. It is never
// older than that. The times in a ledger are for people. They decide nothing, even if the clock of their writer is
// wrong.

// Life identifies a reservation, an escrow until it is renewed, a suspicion, a fence until the next edit, or the seal of
// one ledger. A request that is charged again is in the same life, because its time runs from when it began.
type Life struct {
	of  lifeOf
	uid types.UID
	// attempt is of a request, and number of an escrow and its renewal, or of an edit.
	attempt         string
	number, renewal int64
}

type lifeOf int

const (
	reservations lifeOf = iota
	escrows
	suspicions
	fences
	seals
)

// Life returns the life of a reservation.
func (r Reservation) Life() Life { return Life{of: reservations, uid: r.UID, attempt: r.Attempt} }

// Life returns the life that an escrow is in.
func (e Escrow) Life() Life {
	return Life{of: escrows, uid: e.Process, number: int64(e.Number), renewal: int64(e.Renewal)}
}

// Life returns the life of a suspicion.
func (s Suspect) Life() Life { return Life{of: suspicions, uid: s.UID, attempt: s.Attempt} }

// Life returns the life of a fence, given the UID of the ledger's object.
func (f Fence) Life(object types.UID) Life {
	return Life{of: fences, uid: object, number: f.Until.Unix()}
}

// Seal returns the life of the seal of a ledger, given the UID of the object.
func Seal(object types.UID) Life { return Life{of: seals, uid: object} }

// Ages says since when one process has known each life. It has an entry for each that the process saw last.
type Ages map[Life]time.Time

// See notes the lives that there are now, and forgets all others.
func (a Ages) See(now time.Time, lives ...Life) {
	for _, life := range lives {
		if _, known := a[life]; !known {
			a[life] = now
		}
	}
	if len(a) == len(lives) {
		return
	}
	seen := make(map[Life]bool, len(lives))
	for _, life := range lives {
		seen[life] = true
	}
	for life := range a {
		if !seen[life] {
			delete(a, life)
		}
	}
}

// Lives are those of all that ends by its age, given the UID of the ledger's object.
func (s State) Lives(object types.UID) []Life {
	lives := make([]Life, 0, len(s.Reservations)+len(s.Escrows)+len(s.Suspects)+1)
	for _, reservation := range s.Reservations {
		lives = append(lives, reservation.Life())
	}
	for _, escrow := range s.Escrows {
		lives = append(lives, escrow.Life())
	}
	for _, suspect := range s.Suspects {
		lives = append(lives, suspect.Life())
	}
	if s.Fence.Generation != 0 {
		lives = append(lives, s.Fence.Life(object))
	}
	return lives
}

// Left returns how long it takes until a life is as old as that; zero or less if it is. A life that was never seen is
// new.
func (a Ages) Left(now time.Time, life Life, old time.Duration) time.Duration {
	since, known := a[life]
	if !known {
		since = now
	}
	return old - now.Sub(since)
}

// Old returns all that are at least of the age at which each is due, the oldest first, and how long it takes until
// the next one is; zero for none. Due returns false for what never is.
func Old[K comparable, T interface{ Life() Life }](
	ages Ages, now time.Time, all map[K]T, due func(T) (time.Duration, bool),
) (old []T, next time.Duration) {
	for _, one := range all {
		age, ends := due(one)
		if !ends {
			continue
		}
		switch left := ages.Left(now, one.Life(), age); {
		case left <= 0:
			old = append(old, one)
		case next == 0 || left < next:
			next = left
		}
	}
	slices.SortFunc(old, func(x, y T) int {
		a, b := x.Life(), y.Life()
		return cmp.Or(ages[a].Compare(ages[b]),
			cmp.Compare(a.uid, b.uid), cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.number, b.number))
	})
	return old, next
}
