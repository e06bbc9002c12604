// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// Source holds the records of one resource, in all namespaces. It must be fed
// in the order of the API server's watch.
type Source struct {
	count    *Count
	resource schema.GroupResource

	// count.mu guards the fields below.

	// dropped: no quota limits the resource any more. A watch that is still
	// ending must not move figures that it is no part of.
	dropped bool
	// listed: the records are complete.
	listed bool
	// version is the resourceVersion up to which the records are known.
	version uint64
	// changing is the version of the event that is being taken; zero for changes
	// by time alone.
	changing uint64
	objects  records
	// gone remembers deleted objects, whose reservations may go at once.
	gone departures
	// aging are the records whose usage will change by time alone, and since when that is known.
	aging map[types.NamespacedName]time.Time
}

// Source returns the records of a resource, and starts keeping them.
func (c *Count) Source(resource schema.GroupResource) *Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	source, known := c.sources[resource]
	if !known {
		source = &Source{
			count: c, resource: resource,
			objects: records{}, gone: newDepartures(),
			aging: map[types.NamespacedName]time.Time{},
		}
		c.sources[resource] = source
	}
	return source
}

// DropSource forgets all records of a resource that no quota limits any more.
func (c *Count) DropSource(resource schema.GroupResource) {
	c.mu.Lock()
	defer c.unlock()
	source, known := c.sources[resource]
	if !known {
		return
	}
	source.lockedReplace(records{}, time.Time{})
	source.dropped = true
	delete(c.sources, resource)
	c.lockedBringNone(resource)
}

// Set records an object that was created or changed.
func (s *Source) Set(object runtime.Object, now time.Time) error {
	measured, err := s.measured(object)
	if err != nil {
		return err
	}
	s.update(measured.key.Namespace, measured.record.version, func() {
		s.lockedPut(measured.key, measured.record, now)
	})
	return nil
}

// Delete records that an object is gone.
func (s *Source) Delete(object runtime.Object, now time.Time) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("reading metadata of a deleted %s: %w", s.resource, err)
	}
	key := types.NamespacedName{Namespace: accessor.GetNamespace(), Name: evaluation.ShortName(accessor.GetName())}
	s.update(key.Namespace, ledger.ParseVersion(accessor.GetResourceVersion()), func() {
		s.lockedRemove(key)
		s.gone.add(accessor.GetUID(), now)
		s.count.lockedFree(s.count.covering[key.Namespace]...)
	})
	return nil
}

// update makes one change, and tells the quotas that cover the namespace, or did so a
// while ago: even where nothing more is used, a reservation may now be settled.
func (s *Source) update(namespace string, version uint64, change func()) {
	s.count.mu.Lock()
	defer s.count.unlock()
	if s.dropped {
		return
	}
	s.changing = version
	change()
	s.changing = 0
	s.version = max(s.version, version)
	s.count.lockedTouchIn(namespace)
}

// At records that the objects are known up to a resourceVersion.
func (s *Source) At(version uint64) {
	s.count.mu.Lock()
	defer s.count.unlock()
	switch before := s.version; {
	case version <= before:
		return
	case before == 0:
		s.lockedTouchCounting()
	default:
		// A settle may have waited for the count to come this far.
		for _, tally := range s.count.tallies {
			if tally.target.countedFrom(s.resource) {
				s.count.progressing[tally.target.Quota.Name] = true
			}
		}
	}
	s.version = version
}

// lockedTouchCounting touches the quotas that are counted from this source: the
// objects that they include may have changed though none of their figures did.
func (s *Source) lockedTouchCounting() {
	for _, tally := range s.count.tallies {
		if tally.target.countedFrom(s.resource) {
			s.count.lockedTouch(tally)
		}
	}
}

// lockedPut replaces a record and moves its namespace's slices by the
// difference.
func (s *Source) lockedPut(key types.NamespacedName, current record, now time.Time) {
	previous, known := s.objects.get(key)
	current = s.lockedAge(key, previous, current, now)
	s.objects.put(key, current)
	if !known {
		s.lockedUse(key.Namespace, current.used(), 1)
		return
	}
	s.lockedSucceed(key.Namespace, previous, current, now)
	if previous.used() != current.used() { // Most events change nothing that counts.
		s.lockedUse(key.Namespace, previous.used(), -1)
		s.lockedUse(key.Namespace, current.used(), 1)
	}
}

func (s *Source) lockedRemove(key types.NamespacedName) {
	previous, known := s.objects.get(key)
	if !known {
		return
	}
	s.objects.remove(key)
	delete(s.aging, key)
	s.lockedUse(key.Namespace, previous.used(), -1)
}
