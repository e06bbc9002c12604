// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trail

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// Trail holds what was last seen of each ledger. Its methods may be called
// concurrently.
type Trail struct {
	// intact reports whether a ledger is as the operator wrote it.
	intact func(*quotav1.QuotaLedger) bool

	mu sync.Mutex // guards what follows
	// quota name -> what was seen of its ledger
	sights map[string]sight
}

// sight is what was seen of a quota's ledger. The ledgers in it are a cache's and
// are never changed.
type sight struct {
	// version is of the newest event, of whichever ledger.
	version uint64
	// gone: that event was a deletion.
	gone bool
	// last is the newest that was intact and open.
	last *quotav1.QuotaLedger
	// generation is that of the newest version seen of the same ledger.
	generation int64
	// exact: no operator has written that ledger since last.
	exact bool
	// deleted: that ledger is gone.
	deleted bool
}

// New makes an empty Trail.
func New(intact func(*quotav1.QuotaLedger) bool) *Trail {
	return &Trail{intact: intact, sights: map[string]sight{}}
}

// Saw takes a ledger that a watch has shown, each version in its turn.
func (t *Trail) Saw(ledger *quotav1.QuotaLedger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lockedSaw(ledger)
}

// Deleted takes the last that a watch has shown of a ledger; not final where the
// watch missed the deletion itself, and with it, maybe, changes before.
func (t *Trail) Deleted(ledger *quotav1.QuotaLedger, final bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if final {
		t.lockedSaw(ledger)
	}
	current := t.sights[ledger.Name]
	current.gone = true
	if current.last != nil && current.last.UID == ledger.UID {
		current.deleted, current.exact = true, current.exact && final
	}
	t.sights[ledger.Name] = current
}

func (t *Trail) lockedSaw(ledger *quotav1.QuotaLedger) {
	current := t.sights[ledger.Name]
	current.version, current.gone = resourceversion.Parse(ledger.ResourceVersion), false
	switch intact, same := t.intact(ledger), current.last != nil && current.last.UID == ledger.UID; {
	case intact && ledger.Entries.Sealed == nil:
		current.last, current.exact, current.deleted = ledger, true, false
		current.generation = ledger.Generation
	case !intact && same:
		current.exact = current.exact && current.precedes(ledger)
		current.generation = ledger.Generation
	}
	t.sights[ledger.Name] = current
}

// precedes reports whether no operator has written between what was seen last and
// this edit. Had one, the generation would be higher by one, and with the edit of
// an entry by two. With that of the owner alone it would not, which is why the owner
// must still be the same.
func (s sight) precedes(edited *quotav1.QuotaLedger) bool {
	current, previous := metav1.GetControllerOfNoCopy(edited), metav1.GetControllerOfNoCopy(s.last)
	return edited.Generation == s.generation ||
		edited.Generation == s.generation+1 && current != nil && previous != nil && current.UID == previous.UID
}

// BeforeEdit returns what the ledger said before the edit that made it this one;
// nil if that isn't known. Seen is false while the edit's event is still to come.
func (t *Trail) BeforeEdit(edited *quotav1.QuotaLedger) (last *quotav1.QuotaLedger, seen bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	current := t.sights[edited.Name]
	if current.version < resourceversion.Parse(edited.ResourceVersion) {
		return nil, false
	}
	if current.last == nil || current.last.UID != edited.UID || !current.exact || current.generation != edited.Generation {
		return nil, true
	}
	return current.last, true
}

// BeforeDeletion returns the last that the ledger of this UID said before it was
// deleted; nil if that isn't known, or not yet.
func (t *Trail) BeforeDeletion(quota string, uid types.UID) *quotav1.QuotaLedger {
	t.mu.Lock()
	defer t.mu.Unlock()
	if current := t.sights[quota]; current.last != nil && current.last.UID == uid && current.exact && current.deleted {
		return current.last
	}
	return nil
}

// Forget drops what is known of a quota that is gone, unless there is a ledger
// again, of a quota that has the same name.
func (t *Trail) Forget(quota string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sights[quota].gone {
		delete(t.sights, quota)
	}
}
