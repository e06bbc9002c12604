// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Version identifies a stored ledger: the object and how often it has been
// written. The zero Version is no ledger.
type Version struct {
	// ResourceVersion grows with every write of any object.
	ResourceVersion uint64
	// Generation grows by one with every write of this object's content.
	Generation int64
	// UID is the object's.
	UID types.UID
}

// IsZero reports whether there is no ledger.
func (v Version) IsZero() bool { return v == Version{} }

// After reports whether v was written after other.
func (v Version) After(other Version) bool { return v.ResourceVersion > other.ResourceVersion }

// Snapshot is a ledger as it was stored at one version.
type Snapshot struct {
	Version Version
	State   ledger.State
	// Edited: the ledger was written by a client other than the operator, so the
	// charges in flight aren't known. The State is zero.
	Edited bool
	// Spec is the quota's own version when the ledger was loaded; nil if it
	// wasn't read, as for a ledger that was seen in a watch.
	Spec *Spec
}

// void reports whether there is no usable ledger. By the zero State every charge
// is undecided, and nothing may be written over it: such a ledger would lack the
// charges in flight.
func (s Snapshot) void() bool { return s.Version.IsZero() || s.Edited }

// Spec is a version of a quota's spec; zero if the quota is gone.
type Spec struct {
	Quota      types.UID
	Generation int64
}
