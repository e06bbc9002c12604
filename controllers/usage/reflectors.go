// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

var customResourceDefinition = schema.GroupVersionKind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}

// EventSource is where events come from: whole objects where the evaluator
// needs them, metadata alone elsewhere.
type EventSource struct {
	Objects  kubernetes.Interface
	Metadata metadata.Interface
}

// pageSize is how many whole objects are held at a time, where the API server
// doesn't stream a list.
const pageSize = 500

// objectReflector feeds the store with a resource's objects, and reports how
// each attempt to list or watch them went.
func objectReflector(
	events EventSource, version schema.GroupVersionResource, store *objectStore, report func(error),
) *cache.Reflector {
	expected, lister := apiserver.Lister(events.Objects, events.Metadata, version, metav1.NamespaceAll)
	return objectReflectorOf(version, expected, reporting(lister, report), store)
}

func objectReflectorOf(
	version schema.GroupVersionResource, expected runtime.Object, lister *cache.ListWatch, store *objectStore,
) *cache.Reflector {
	reflector := newReflector(version, shrinking(lister, store.shrink), expected, store)
	reflector.WatchListPageSize = pageSize
	return reflector
}

func namespaceReflector(events EventSource, store cache.ReflectorStore) *cache.Reflector {
	expected, lister := apiserver.Lister(events.Objects, events.Metadata, namespacesResource(), metav1.NamespaceAll)
	return newReflector(namespacesResource(), lister, expected, store)
}

func newReflector(
	version schema.GroupVersionResource, lister *cache.ListWatch, expected runtime.Object, store cache.ReflectorStore,
) *cache.Reflector {
	return cache.NewReflectorWithOptions(lister, expected, store, cache.ReflectorOptions{
		Name: "usage", TypeDescription: version.String(),
	})
}

// shrinking wraps a lister so that of a page only the results of shrink are kept.
// It is for API servers that don't stream a list: the others hand over one object
// after the other, to the store's Transformer.
//
// The list is asked for as of now. For one as of an earlier version, which a
// reflector would be content with, an API server may ignore the limit, and send
// all in one page. So listing 50,000 pods takes no more memory than streaming
// them, 111 MB at the peak; each page is a read of etcd for the API server.
func shrinking(lister *cache.ListWatch, shrink func(runtime.Object) runtime.Object) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			if options.Limit > 0 {
				options.ResourceVersion = ""
			}
			page, err := lister.ListWithContextFunc(ctx, options)
			if err != nil {
				return nil, err
			}
			return shrunk(page, shrink)
		},
		WatchFuncWithContext: lister.WatchFuncWithContext,
	}
}

func shrunk(page runtime.Object, shrink func(runtime.Object) runtime.Object) (runtime.Object, error) {
	about, err := meta.ListAccessor(page)
	if err != nil {
		return nil, fmt.Errorf("reading metadata of a list: %w", err)
	}
	small := &internalversion.List{Items: make([]runtime.Object, 0, meta.LenList(page))}
	small.SetResourceVersion(about.GetResourceVersion())
	small.SetContinue(about.GetContinue())
	err = meta.EachListItem(page, func(object runtime.Object) error {
		small.Items = append(small.Items, shrink(object))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}
	return small, nil
}

// reporting wraps a lister so that the outcome of each call is known, unless it
// was ended on purpose. An API server that doesn't stream lists says so, and is
// asked for a list then.
func reporting(lister *cache.ListWatch, report func(error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := lister.ListWithContextFunc(ctx, options)
			if ctx.Err() == nil {
				report(err)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := lister.WatchFuncWithContext(ctx, options)
			notStreamed := options.SendInitialEvents != nil && apierrors.IsInvalid(err)
			if ctx.Err() == nil && !notStreamed {
				report(err)
			}
			return events, err
		},
	}
}
