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

// Life identifies a reservation until it is renewed, a fence until the next edit, or the seal of one ledger. Two lives
// are equal only if they are the same one, even if the clock of the writer stood still.
type Life struct {
	Key
	// Name is of the reservation's object. That of an escrow is new in each renewal.
	Name string
	// Stamp is the time that is stored, in Unix seconds.
	Stamp int64
	// Holds: it holds something. A reservation that doesn't is a memory.
	Holds bool
}

// Life returns the life that a reservation is in.
func (r Reservation) Life() Life {
	return Life{Key: r.Key(), Name: r.Name, Stamp: r.Expiry.Unix(), Holds: !r.IsMemory()}
}

// Life returns the life of a fence, given the UID of the ledger's object.
func (f Fence) Life(object types.UID) Life {
	return Life{Key: Key{UID: object, Attempt: "fence"}, Stamp: f.Until.Unix()}
}

// Seal returns the life of the seal of a ledger, given the UID of the object.
func Seal(object types.UID) Life { return Life{Key: Key{UID: object, Attempt: "seal"}} }

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

// Lives are those of the reservations and the fence, given the UID of the ledger's object.
func (s State) Lives(object types.UID) []Life {
	lives := make([]Life, 0, len(s.Reservations)+1)
	for _, reservation := range s.Reservations {
		lives = append(lives, reservation.Life())
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

// Old returns the reservations of at least the age at which each is due, the oldest first, and how long it takes until
// the next one is; zero for none. Due returns false for a reservation that never is.
func (a Ages) Old(now time.Time, state State, due func(Reservation) (time.Duration, bool)) (old []Reservation, next time.Duration) {
	for _, reservation := range state.Reservations {
		age, ends := due(reservation)
		if !ends {
			continue
		}
		switch left := a.Left(now, reservation.Life(), age); {
		case left <= 0:
			old = append(old, reservation)
		case next == 0 || left < next:
			next = left
		}
	}
	slices.SortFunc(old, func(x, y Reservation) int {
		return cmp.Or(a[x.Life()].Compare(a[y.Life()]), cmp.Compare(x.UID, y.UID), cmp.Compare(x.Attempt, y.Attempt))
	})
	return old, next
}
