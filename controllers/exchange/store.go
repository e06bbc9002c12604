// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// watchInterface is what a client returns for a watch.
type watchInterface = watch.Interface

// partStore hands to the Exchange what a reflector sees, and keeps nothing of it. A ConfigMap that can't be read
// is logged: another replica of another release may have written it.
type partStore struct {
	exchange *Exchange
	logger   logr.Logger
}

// Add implements cache.ReflectorStore.
func (s *partStore) Add(object any) error {
	part, ok := object.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("%T: %w", object, errPart)
	}
	if err := s.exchange.saw(part); err != nil {
		s.logger.Error(err, "Ignored "+s.exchange.Topic.About+" by another replica")
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (s *partStore) Update(object any) error { return s.Add(object) }

// Delete implements cache.ReflectorStore.
func (s *partStore) Delete(object any) error {
	if part, ok := object.(*corev1.ConfigMap); ok {
		s.exchange.lost(part.Name)
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *partStore) Replace(objects []any, _ string) error {
	present := map[string]bool{}
	for _, object := range objects {
		if part, ok := object.(*corev1.ConfigMap); ok {
			present[part.Name] = true
		}
	}
	for _, name := range append(s.exchange.others(), s.exchange.name) {
		if !present[name] {
			s.exchange.lost(name)
		}
	}
	for _, object := range objects {
		if err := s.Add(object); err != nil {
			return err
		}
	}
	s.exchange.synced.Store(true)
	return nil
}

// Resync implements cache.ReflectorStore.
func (*partStore) Resync() error { return nil }

// saw takes what another replica published.
func (e *Exchange) saw(part *corev1.ConfigMap) error {
	if part.Name == e.name {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.seenOwn, e.hasOwn = resourceversion.Parse(part.ResourceVersion), part.BinaryData[e.Topic.Key]
		return nil
	}
	e.note(part)
	encoded := part.BinaryData[e.Topic.Key]
	if len(encoded) == 0 { // its replica is about to write it again
		return wrap(errEmpty, "decoding", part.Name)
	}
	err := e.Content.Receive(part.Name, encoded)
	if err != nil {
		e.noteUnreadable(part.Name)
	}
	return wrap(err, "decoding", part.Name)
}

func (e *Exchange) note(part *corev1.ConfigMap) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.seen[part.Name].version != part.ResourceVersion {
		now := e.Clock.Now()
		written, err := time.Parse(time.RFC3339Nano, part.Annotations[writtenAnnotation])
		if err != nil {
			written = now
		}
		e.seen[part.Name] = seen{uid: part.UID, version: part.ResourceVersion, at: now, written: written}
	}
}

func (e *Exchange) noteUnreadable(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.seen[name]
	last.unreadable = true
	e.seen[name] = last
}

// lost forgets what a replica published that has deleted it.
func (e *Exchange) lost(name string) {
	e.mu.Lock()
	_, known := e.seen[name]
	delete(e.seen, name)
	e.lostOwn = e.lostOwn || name == e.name
	e.mu.Unlock()
	if known {
		_ = e.Content.Receive(name, nil) // nothing can be read
	}
}

// others are the names of the ConfigMaps that are known.
func (e *Exchange) others() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := make([]string, 0, len(e.seen))
	for name := range e.seen {
		names = append(names, name)
	}
	return names
}

// gone returns the ConfigMaps that nobody has written for long, and the names of those that are kept from now on though
// nobody has, because this release can't decode them.
func (e *Exchange) gone(now time.Time) (gone map[string]seen, kept []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	gone = map[string]seen{}
	for name, last := range e.seen {
		switch {
		case now.Sub(last.at) <= goneAfter:
		case !last.unreadable || now.Sub(last.written) > keptFor:
			gone[name] = last
		case !last.kept:
			last.kept = true
			e.seen[name] = last
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return gone, kept
}
