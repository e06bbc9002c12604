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

// Measured is the rest of an object once it was measured. It takes the object's
// place in a list that is still being read.
type Measured struct {
	key    types.NamespacedName
	record record
}

var _ runtime.Object = &Measured{}

// GetObjectKind implements runtime.Object: it is of no kind.
func (*Measured) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. Nothing of it ever changes.
func (m *Measured) DeepCopyObject() runtime.Object {
	same := *m
	return &same
}

// Measure makes an object small.
func (s *Source) Measure(object runtime.Object) (*Measured, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, fmt.Errorf("reading metadata of a %s: %w", s.resource, err)
	}
	key := types.NamespacedName{Namespace: accessor.GetNamespace(), Name: evaluation.ShortName(accessor.GetName())}
	footprint, err := s.count.evaluators.Footprint(s.resource, object)
	if err != nil {
		return nil, fmt.Errorf("evaluating %s %s: %w", s.resource, key, err)
	}
	current := record{uid: accessor.GetUID(), version: ledger.ParseVersion(accessor.GetResourceVersion()), footprint: footprint}
	return &Measured{key: key, record: current}, nil
}

// measured measures an object unless that was done before.
func (s *Source) measured(object runtime.Object) (*Measured, error) {
	if already, ok := object.(*Measured); ok {
		return already, nil
	}
	return s.Measure(object)
}

// Replace takes a complete list as of a resourceVersion, of objects or of the
// Measured that Measure made of them.
func (s *Source) Replace(list []runtime.Object, version uint64, now time.Time) error {
	listed := records{}
	for _, object := range list {
		measured, err := s.measured(object)
		if err != nil {
			return err
		}
		listed.put(measured.key, measured.record)
	}
	s.count.mu.Lock()
	defer s.count.unlock()
	if s.dropped {
		return nil
	}
	s.changing = version
	s.lockedReplace(listed, now)
	s.changing = 0
	s.listed = true
	s.version = max(s.version, version)
	s.lockedTouchCounting()
	return nil
}

// lockedReplace puts other records in the place of all that there are.
func (s *Source) lockedReplace(listed records, now time.Time) {
	previous := s.objects
	s.objects = listed
	for namespace, objects := range listed {
		s.lockedReplaceIn(namespace, previous[namespace], objects, now)
	}
	for namespace, objects := range previous {
		if _, still := listed[namespace]; !still {
			s.lockedReplaceIn(namespace, objects, nil, now)
		}
	}
}

// lockedReplaceIn moves a namespace's slices by the differences.
//
// All that differs is gathered first, for most objects of a namespace use the
// same as others there. With 50,000 pods a first list holds the lock for 72 ms,
// and one with nothing new for 48 ms; moving slices for one record after the
// other took 313 and 147 ms.
func (s *Source) lockedReplaceIn(namespace string, previous, current map[string]record, now time.Time) {
	moved := alike{}
	for name, listed := range current {
		old, known := previous[name]
		record := s.lockedAge(types.NamespacedName{Namespace: namespace, Name: name}, old, listed, now)
		if record != listed {
			current[name] = record
		}
		if !known {
			moved[record.used()]++
			continue
		}
		s.lockedSucceed(namespace, old, record, now)
		if old.used() != record.used() {
			moved[old.used()]--
			moved[record.used()]++
		}
	}
	for name, old := range previous {
		if _, still := current[name]; !still {
			delete(s.aging, types.NamespacedName{Namespace: namespace, Name: name})
			s.gone.add(old.uid, now)
			s.count.lockedFree(s.count.covering[namespace]...)
			moved[old.used()]--
		}
	}
	s.lockedUseAll(namespace, moved)
}

// lockedSucceed puts a record in the place of another: of another UID, it means
// that the one before it is gone.
func (s *Source) lockedSucceed(namespace string, previous, current record, now time.Time) {
	if previous.uid == current.uid {
		return
	}
	s.gone.add(previous.uid, now)
	for _, tally := range s.count.covering[namespace] {
		tally.touch(s.resource, s.changing)
	}
}

// lockedUseAll moves slices. A footprint that moves both up and down stays as it
// is, and yet the counted objects are others.
func (s *Source) lockedUseAll(namespace string, moved alike) {
	if len(moved) > 0 {
		for _, tally := range s.count.covering[namespace] {
			tally.touch(s.resource, s.changing)
		}
	}
	for used, by := range moved {
		if by != 0 {
			s.lockedUse(namespace, used, by)
		}
	}
}
