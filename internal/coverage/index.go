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

package coverage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// Index holds all quotas, compiled. Its methods may be called concurrently.
type Index struct {
	// cached answers from memory, live from the API server.
	clock        clock.PassiveClock
	cached, live client.Reader
	synced       func() bool
	// quotas and namespaces are read live, and all quotas listed.
	quotas     *shared[*definition.Definition]
	listed     *shared[map[string]definition.Definition]
	namespaces *shared[*metav1.PartialObjectMetadata]
	verified   *verified

	// mu guards definitions.
	mu sync.RWMutex
	// quota name -> definition. An invalid quota is missing.
	definitions map[string]definition.Definition
}

// NewIndex makes an Index that follows the caches' ClusterResourceQuotas and
// namespaces. It is empty until they have synced: see Synced.
func NewIndex(ctx context.Context, clock clock.PassiveClock, caches cache.Cache, live client.Reader) (*Index, error) {
	index := &Index{clock: clock, cached: caches, live: live, definitions: map[string]definition.Definition{}, verified: newVerified()}
	index.quotas = newShared(index.readQuota)
	index.listed = newShared(func(ctx context.Context, _ string) (map[string]definition.Definition, error) {
		return index.listQuotas(ctx)
	})
	index.namespaces = newShared(func(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
		return index.namespace(ctx, live, name)
	})
	quotas, err := caches.GetInformer(ctx, &quotav1.ClusterResourceQuota{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following quotas: %w", err)
	}
	namespaces, err := caches.GetInformer(ctx, emptyNamespace(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following namespaces: %w", err)
	}
	registration, err := quotas.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { index.set(object) },
		UpdateFunc: func(_, object any) { index.set(object) },
		DeleteFunc: func(object any) { index.remove(object) },
	})
	if err != nil {
		return nil, fmt.Errorf("following quotas: %w", err)
	}
	index.synced = func() bool { return registration.HasSynced() && namespaces.HasSynced() }
	return index, nil
}

// Synced tells whether the Index knows all quotas and namespaces. Before that
// it must not be asked: a quota that it doesn't know would be passed by.
func (i *Index) Synced() bool { return i.synced() }

func (i *Index) set(object any) {
	quota, ok := object.(*quotav1.ClusterResourceQuota)
	if !ok {
		return
	}
	compiled, err := definition.Compile(quota)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil || !quota.DeletionTimestamp.IsZero() {
		delete(i.definitions, quota.Name)
		return
	}
	i.definitions[quota.Name] = compiled
}

func (i *Index) remove(object any) {
	key, err := toolscache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.definitions, key)
}

// Covering returns the quotas that cover a namespace, sorted by name. A
// namespace that the cache doesn't know is read live.
func (i *Index) Covering(ctx context.Context, namespace string) ([]definition.Definition, error) {
	object, err := i.namespace(ctx, i.cached, namespace)
	if apierrors.IsNotFound(err) {
		object, err = i.namespace(ctx, i.live, namespace)
	}
	if err != nil {
		return nil, err
	}
	return i.matching(object), nil
}

// CoveringNow is Covering with the namespace read from the API server, unless
// that was done a moment ago.
func (i *Index) CoveringNow(ctx context.Context, namespace string) ([]definition.Definition, error) {
	object, err := i.namespaceLive(ctx, namespace)
	if err != nil {
		return nil, err
	}
	return i.matching(object), nil
}

// CoveringLive is CoveringNow with the quotas read from the API server too. Its
// answer is at least as new as the call but for a quota that no cache has seen
// yet. Whoever asks at the same time shares the reads.
func (i *Index) CoveringLive(ctx context.Context, namespace string) ([]definition.Definition, error) {
	object, err := i.namespaceLive(ctx, namespace)
	if err != nil {
		return nil, err
	}
	var covering []definition.Definition
	for _, known := range i.matching(object) {
		live, err := i.quotas.get(ctx, known.Limits.Name)
		if err != nil {
			return nil, err
		}
		if live != nil && live.Selector.Matches(object.Labels, object.Annotations) {
			covering = append(covering, *live)
		}
	}
	return covering, nil
}

// CoveringListed is CoveringLive with a quota that no cache has seen yet too: it
// lists them all. It is for who is refused for want of a quota, which the next
// quota that is created may lift.
func (i *Index) CoveringListed(ctx context.Context, namespace string) ([]definition.Definition, error) {
	object, err := i.namespaceLive(ctx, namespace)
	if err != nil {
		return nil, err
	}
	all, err := i.listed.get(ctx, "")
	if err != nil {
		return nil, err
	}
	return matching(all, object), nil
}

// listQuotas returns all valid quotas by name, as the API server has them. It
// reads whole only those whose version is not the one that is known.
func (i *Index) listQuotas(ctx context.Context) (map[string]definition.Definition, error) {
	versions := &metav1.PartialObjectMetadataList{}
	versions.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuotaList"))
	if err := i.live.List(ctx, versions); err != nil {
		return nil, fmt.Errorf("listing quotas: %w", err)
	}
	all := map[string]definition.Definition{}
	for _, version := range versions.Items {
		if known, is := i.definition(version.Name); is && isVersion(known, &version) {
			all[version.Name] = known
			continue
		}
		quota := &quotav1.ClusterResourceQuota{}
		if err := i.live.Get(ctx, client.ObjectKey{Name: version.Name}, quota); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading quota %s: %w", version.Name, err)
		}
		if compiled, err := definition.Compile(quota); err == nil && quota.DeletionTimestamp.IsZero() {
			all[version.Name] = compiled
		}
	}
	return all, nil
}

// isVersion tells whether a definition is of this version of its quota's spec.
func isVersion(known definition.Definition, version *metav1.PartialObjectMetadata) bool {
	return known.Limits.Quota == version.UID && known.Limits.Generation == version.Generation
}

// readQuota returns the quota as the API server has it; nil without one. Its
// generation tells whether the one that is known still holds: the whole object,
// with what every namespace uses, would be most of a refusal's cost.
func (i *Index) readQuota(ctx context.Context, name string) (*definition.Definition, error) {
	version := &metav1.PartialObjectMetadata{}
	version.SetGroupVersionKind(quotav1.GroupVersion.WithKind("ClusterResourceQuota"))
	if err := i.live.Get(ctx, client.ObjectKey{Name: name}, version); err != nil {
		return nil, ignoreNotFound(name, err)
	}
	if known, is := i.definition(name); is && isVersion(known, version) {
		return &known, nil
	}
	quota := &quotav1.ClusterResourceQuota{}
	if err := i.live.Get(ctx, client.ObjectKey{Name: name}, quota); err != nil {
		return nil, ignoreNotFound(name, err)
	}
	compiled, err := definition.Compile(quota)
	if err != nil {
		return nil, err
	}
	return &compiled, nil
}

// ignoreNotFound is nil for a quota that is gone: it limits nothing.
func ignoreNotFound(name string, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("reading quota %s: %w", name, err)
}

func (i *Index) definition(name string) (definition.Definition, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	known, is := i.definitions[name]
	return known, is
}

// namespaceLive reads the namespace from the API server, unless a read of a moment
// ago found the cache up to date and it still has that version. Under a storm of
// refusals, reading each time would be most of their cost.
func (i *Index) namespaceLive(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	cached, err := i.namespace(ctx, i.cached, name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && i.verified.holds(name, cached.ResourceVersion, i.clock.Now()) {
		return cached, nil
	}
	began := i.clock.Now()
	live, err := i.namespaces.get(ctx, name)
	if err == nil {
		i.verified.note(name, live.ResourceVersion, began)
	}
	return live, err
}

func (i *Index) namespace(ctx context.Context, reader client.Reader, name string) (*metav1.PartialObjectMetadata, error) {
	object := emptyNamespace()
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	return object, nil
}

func (i *Index) matching(namespace *metav1.PartialObjectMetadata) []definition.Definition {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return matching(i.definitions, namespace)
}

func matching(definitions map[string]definition.Definition, namespace *metav1.PartialObjectMetadata) []definition.Definition {
	var matching []definition.Definition
	for _, known := range definitions {
		if known.Selector.Matches(namespace.Labels, namespace.Annotations) {
			matching = append(matching, known)
		}
	}
	slices.SortFunc(matching, func(a, b definition.Definition) int { return cmp.Compare(a.Limits.Name, b.Limits.Name) })
	return matching
}

func emptyNamespace() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return object
}
