// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
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
