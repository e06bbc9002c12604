/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package counting

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// Source holds the records of one resource, in all namespaces. It must be fed
// in the order of the API server's watch.
type Source struct {
	count    *Count
	resource schema.GroupResource

	// What follows is guarded by count.mu.

	// dropped: no quota limits the resource any more. A watch that is still
	// ending must not move figures that it is no part of.
	dropped bool
	// listed: the records are complete.
	listed bool
	// version is the resourceVersion up to which the records are known.
	version uint64
	// namespace -> name -> record
	objects map[string]map[string]record
	// gone remembers deleted objects, whose reservations may go at once.
	// UID -> when it was seen to be gone
	gone map[types.UID]time.Time
	// aging are the records whose usage changes by time alone.
	aging map[types.NamespacedName]struct{}
}

// record is what is kept of an object.
type record struct {
	uid       types.UID
	version   uint64
	footprint evaluation.Footprint
	// asOf is the time that its usage was last evaluated for.
	asOf time.Time
}

// Source returns the records of a resource, and starts keeping them.
func (c *Count) Source(resource schema.GroupResource) *Source {
	c.mu.Lock()
	defer c.mu.Unlock()
	source, known := c.sources[resource]
	if !known {
		source = &Source{
			count: c, resource: resource,
			objects: map[string]map[string]record{},
			gone:    map[types.UID]time.Time{},
			aging:   map[types.NamespacedName]struct{}{},
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
	for namespace, objects := range source.objects {
		for name := range objects {
			source.lockedRemove(namespace, name)
		}
	}
	source.dropped = true
	delete(c.sources, resource)
}

// Set records an object that was created or changed.
func (s *Source) Set(object runtime.Object, now time.Time) error {
	key, record, err := s.measure(object, now)
	if err != nil {
		return err
	}
	s.update(key.Namespace, record.version, func() { s.lockedPut(key, record, now) })
	return nil
}

// Delete records that an object is gone.
func (s *Source) Delete(object runtime.Object, now time.Time) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("reading metadata of a deleted %s: %w", s.resource, err)
	}
	s.update(accessor.GetNamespace(), resourceversion.Parse(accessor.GetResourceVersion()), func() {
		s.lockedRemove(accessor.GetNamespace(), accessor.GetName())
		s.gone[accessor.GetUID()] = now
	})
	return nil
}

// update makes one change, and tells the quotas that cover the namespace: even
// where nothing more is used, a reservation may now be settled.
func (s *Source) update(namespace string, version uint64, change func()) {
	s.count.mu.Lock()
	defer s.count.unlock()
	if s.dropped {
		return
	}
	change()
	s.version = max(s.version, version)
	s.count.lockedTouch(s.count.covering[namespace]...)
}

// Replace takes a complete list as of a resourceVersion.
func (s *Source) Replace(list []runtime.Object, version uint64, now time.Time) error {
	measured := make(map[types.NamespacedName]record, len(list))
	for _, object := range list {
		key, record, err := s.measure(object, now)
		if err != nil {
			return err
		}
		measured[key] = record
	}
	s.count.mu.Lock()
	defer s.count.unlock()
	if s.dropped {
		return nil
	}
	s.lockedReplace(measured, now)
	s.listed = true
	s.version = max(s.version, version)
	s.count.lockedTouchAll()
	return nil
}

func (s *Source) lockedReplace(measured map[types.NamespacedName]record, now time.Time) {
	for namespace, objects := range s.objects {
		for name, old := range objects {
			if _, listed := measured[types.NamespacedName{Namespace: namespace, Name: name}]; !listed {
				s.lockedRemove(namespace, name)
				s.gone[old.uid] = now
			}
		}
	}
	for key, record := range measured {
		s.lockedPut(key, record, now)
	}
}

// At records that the objects are known up to a resourceVersion.
func (s *Source) At(version uint64) {
	s.count.mu.Lock()
	defer s.count.unlock()
	if version > s.version {
		// A settle may have waited for the count to come this far.
		s.version = version
		s.count.lockedTouchAll()
	}
}

func (s *Source) measure(object runtime.Object, now time.Time) (types.NamespacedName, record, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return types.NamespacedName{}, record{}, fmt.Errorf("reading metadata of a %s: %w", s.resource, err)
	}
	key := types.NamespacedName{Namespace: accessor.GetNamespace(), Name: accessor.GetName()}
	footprint, err := s.count.evaluators.Footprint(s.resource, object)
	if err != nil {
		return key, record{}, fmt.Errorf("evaluating %s %s: %w", s.resource, key, err)
	}
	return key, record{
		uid: accessor.GetUID(), version: resourceversion.Parse(accessor.GetResourceVersion()), footprint: footprint, asOf: now,
	}, nil
}

// lockedPut replaces a record and moves its namespace's slices by the
// difference. A record of another UID means that the one before it is gone.
func (s *Source) lockedPut(key types.NamespacedName, is record, now time.Time) {
	objects := s.objects[key.Namespace]
	if objects == nil {
		objects = map[string]record{}
		s.objects[key.Namespace] = objects
	}
	was, known := objects[key.Name]
	if known && was.uid != is.uid {
		s.gone[was.uid] = now
	}
	if known && was.footprint.Equal(is.footprint) && !aged(was, is) {
		objects[key.Name] = is // most events change nothing that counts
		return
	}
	for _, tally := range s.count.covering[key.Namespace] {
		if known {
			tally.lockedMove(key.Namespace, s.count.usage(s.resource, was, tally), quota.Subtract)
		}
		tally.lockedMove(key.Namespace, s.count.usage(s.resource, is, tally), quota.Add)
		s.count.lockedTouch(tally)
	}
	objects[key.Name] = is
	if _, ages := is.footprint.ChangesAt(); ages {
		s.aging[key] = struct{}{}
	} else {
		delete(s.aging, key)
	}
}

func (s *Source) lockedRemove(namespace, name string) {
	was, known := s.objects[namespace][name]
	if !known {
		return
	}
	for _, tally := range s.count.covering[namespace] {
		tally.lockedMove(namespace, s.count.usage(s.resource, was, tally), quota.Subtract)
		s.count.lockedTouch(tally)
	}
	delete(s.aging, types.NamespacedName{Namespace: namespace, Name: name})
	delete(s.objects[namespace], name)
	if len(s.objects[namespace]) == 0 {
		delete(s.objects, namespace)
	}
}

type arithmetic func(a, b corev1.ResourceList) corev1.ResourceList

func (t *tally) lockedMove(namespace string, by corev1.ResourceList, operation arithmetic) {
	if len(by) == 0 {
		return
	}
	t.slices[namespace] = operation(t.slices[namespace], by)
	t.total = operation(t.total, by)
}
