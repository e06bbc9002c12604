// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Index is a Memory that follows the API server, and replaces old knowledge by live reads. Its methods may be called
// concurrently.
type Index struct {
	*Memory

	clock clock.Clock
	live  client.Reader
	// Live reads are shared by all callers that need them at the same time, and
	// merged into memory.
	quotaReads, quotaLists *apiserver.Reads[struct{}]
	namespaceReads         *apiserver.Reads[*metav1.PartialObjectMetadata]
}

// NewIndex makes an Index that knows nothing until it follows the API server.
func NewIndex(clock clock.Clock, live client.Reader) *Index {
	index := &Index{Memory: NewMemory(definition.Salvage), clock: clock, live: live}
	index.quotaReads = apiserver.NewReads("quota", index.readQuota)
	index.quotaLists = apiserver.NewReads("the list of", index.listQuotas)
	index.namespaceReads = apiserver.NewReads("namespace", index.readNamespace)
	return index
}

// Follow begins to follow the API server's quotas and namespaces, until ctx ends. A watch that can't be had is tried
// again and again.
func (i *Index) Follow(ctx context.Context, from client.WithWatch) {
	quotas := reflector(from, &quotav1.ClusterResourceQuotaList{}, &quotav1.ClusterResourceQuota{}, i.Quotas())
	namespaces := reflector(from, emptyNamespaces(), emptyNamespace(), i.Namespaces())
	go quotas.RunWithContext(ctx)
	go namespaces.RunWithContext(ctx)
}

func reflector(
	from client.WithWatch, list client.ObjectList, expected client.Object, store toolscache.ReflectorStore,
) *toolscache.Reflector {
	empty := func() client.ObjectList {
		return list.DeepCopyObject().(client.ObjectList) //nolint:errcheck,forcetypeassert // its own copy
	}
	lister := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			listed := empty()
			err := from.List(ctx, listed, &client.ListOptions{Raw: &options, Limit: options.Limit, Continue: options.Continue})
			return listed, err //nolint:wrapcheck // the reflector looks at its status
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return from.Watch(ctx, empty(), &client.ListOptions{Raw: &options})
		},
	}
	return toolscache.NewReflectorWithOptions(lister, expected, store, toolscache.ReflectorOptions{Name: "coverage"})
}

// Covering returns the quotas that cover a namespace: see Memory.Cover.
func (i *Index) Covering(ctx context.Context, question webhookconfig.Question, namespace string, atLeast uint64) (Covered, error) {
	return i.find(ctx, i.Cover(question, namespace, atLeast))
}

// CoveringNow returns the quotas that cover a namespace after a live look, which callers at the same time share: see
// Memory.CoverNow.
func (i *Index) CoveringNow(ctx context.Context, question webhookconfig.Question, namespace string, look Look) (Covered, error) {
	return i.find(ctx, i.CoverNow(question, namespace, look))
}

// find makes the steps of a search.
func (i *Index) find(ctx context.Context, search Search) (Covered, error) {
	for {
		var err error
		switch search.Next(i.clock.Now()) {
		case Done:
			return search.Covered(), nil
		case WaitForQuotas:
			err = i.wait(ctx, &search)
		case ReadNamespace:
			var object *metav1.PartialObjectMetadata
			if object, err = i.namespaceReads.Get(ctx, search.namespace); err == nil && !search.Found(object) {
				err = apierrors.NewNotFound(corev1.Resource("namespaces"), search.namespace)
			}
		case ReadQuotas:
			for _, known := range search.Covered().Definitions {
				if _, err = i.quotaReads.Get(ctx, known.Limits.Name); err != nil {
					return Covered{}, err
				}
			}
		case ListQuotas:
			_, err = i.quotaLists.Get(ctx, "quotas")
		}
		if err != nil {
			return Covered{}, err
		}
	}
}

// wait waits for more to be known of quotas.
func (i *Index) wait(ctx context.Context, search *Search) error {
	grown := i.quotas.grown()
	if i.quotas.seen.Load() >= search.question.Epoch {
		return nil
	}
	timer := i.clock.NewTimer(search.Until().Sub(i.clock.Now()))
	defer timer.Stop()
	select {
	case <-grown:
	case <-timer.C():
	case <-ctx.Done():
		return fmt.Errorf("waiting for the specs of quotas: %w", context.Cause(ctx))
	}
	return nil
}

func emptyNamespace() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return object
}

func emptyNamespaces() *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	return list
}
