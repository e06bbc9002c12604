// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Memory has all known quotas, compiled, and all known namespaces: from watches, and from live reads, which may be
// ahead of them. It makes no calls and knows no time. Its methods may be called concurrently.
type Memory struct {
	mu         sync.RWMutex // guards both
	quotas     *quotas
	namespaces *namespaces
}

// NewMemory returns an empty Memory that compiles quotas by a function.
func NewMemory(define func(*quotav1.ClusterResourceQuota) definition.Definition) *Memory {
	m := &Memory{}
	m.quotas = &quotas{mu: &m.mu, define: define, byName: map[string]quota{}}
	m.namespaces = &namespaces{
		mu: &m.mu, quotas: m.quotas, shown: map[string]*namespace{}, labelled: definition.NewLabelled(), looks: map[string]*look{},
	}
	m.quotas.newest = m.namespaces.lockedNewest
	return m
}

// Quotas returns the Store for a watch of quotas.
func (m *Memory) Quotas() Store[*quotav1.ClusterResourceQuota] {
	return Store[*quotav1.ClusterResourceQuota]{Set: m.quotas.show, Remove: m.quotas.hide, List: m.quotas.replace, At: m.quotas.see}
}

// Namespaces returns the Store for a watch of namespaces.
func (m *Memory) Namespaces() Store[*metav1.PartialObjectMetadata] {
	return Store[*metav1.PartialObjectMetadata]{
		Set: m.namespaces.show, Remove: m.namespaces.hide, List: m.namespaces.replace, At: m.namespaces.see,
	}
}

// Read takes a quota that was read live.
func (m *Memory) Read(object *quotav1.ClusterResourceQuota) { m.quotas.put(object) }

// Miss takes it that a live read didn't find a quota, which was known in this version when the read began.
func (m *Memory) Miss(name string, version uint64) { m.quotas.remove(name, version) }

// Listed takes the names and the resourceVersion of a live list of quotas, each of which has been Read.
func (m *Memory) Listed(names map[string]bool, version uint64) { m.quotas.list(names, version) }

// Synced reports whether all quotas and namespaces are known. Before that no request may be answered: a quota that
// isn't known would be passed by.
func (m *Memory) Synced() bool { return m.quotas.synced.Load() && m.namespaces.synced.Load() }

// Define returns a quota's definition, which callers must not change. All parts of a process share that of the spec
// that is known.
func (m *Memory) Define(object *quotav1.ClusterResourceQuota) definition.Definition {
	return m.quotas.compiled(object)
}

// Known returns the quotas that are known to cover a namespace, from memory alone: nothing may be granted by it.
// It reports whether the namespace is known.
func (m *Memory) Known(namespace string) (Covered, bool) {
	found := Search{memory: m, known: m.namespaces.state(namespace, webhookconfig.Question{})}
	if !m.Synced() || found.known.namespace == nil {
		return Covered{}, false
	}
	return found.Covered(), true
}

// covering returns the quotas that cover a version of a namespace. They are found
// again only if a quota's spec has changed.
func (m *Memory) covering(namespace *namespace) *covering {
	found := namespace.covered.Load()
	if found == nil || found.edition != m.quotas.edition.Load() {
		found = m.quotas.covering(namespace.labels, namespace.annotations)
		namespace.covered.Store(found)
	}
	return found
}

// Store takes objects from a reflector: each event in order, and a list at once. Client-go's informers show their
// handlers the objects of a list one by one: the first of them may be newer than changes that have yet to be shown.
type Store[T client.Object] struct {
	Set func(T)
	// Remove takes a deletion, at a resourceVersion.
	Remove func(name string, version uint64)
	// List takes all objects, as of a resourceVersion.
	List func(objects []T, version uint64)
	// At is called when all is known up to a resourceVersion.
	At func(version uint64)
}

var _ toolscache.ResourceVersionUpdater = Store[client.Object]{}

// Add implements cache.ReflectorStore.
func (s Store[T]) Add(object any) error { return s.Update(object) }

// Update implements cache.ReflectorStore.
func (s Store[T]) Update(object any) error {
	known, err := typed[T](object)
	if err == nil {
		s.Set(known)
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s Store[T]) Delete(object any) error {
	gone, err := typed[T](object)
	if err == nil {
		s.Remove(gone.GetName(), ledger.ParseVersion(gone.GetResourceVersion()))
	}
	return err
}

// Replace implements cache.ReflectorStore.
func (s Store[T]) Replace(list []any, version string) error {
	objects := make([]T, 0, len(list))
	for _, item := range list {
		object, err := typed[T](item)
		if err != nil {
			return err
		}
		objects = append(objects, object)
	}
	s.List(objects, ledger.ParseVersion(version))
	return nil
}

// Resync implements cache.ReflectorStore. There is nothing to do.
func (Store[T]) Resync() error { return nil }

// UpdateResourceVersion is told of each event's version, and of bookmarks'.
func (s Store[T]) UpdateResourceVersion(version string) { s.At(ledger.ParseVersion(version)) }

func typed[T client.Object](object any) (T, error) {
	known, ok := object.(T)
	if !ok {
		return known, fmt.Errorf("taking an event: %T is no %T", object, known)
	}
	return known, nil
}
