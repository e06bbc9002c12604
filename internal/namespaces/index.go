// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
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
