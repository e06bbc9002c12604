// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Lister lists and watches the objects of a resource in one namespace, or in all if it is empty. It also returns an
// empty object of their type. Objects are whole if evaluators look into them, and metadata alone otherwise.
func Lister(
	objects kubernetes.Interface, about metadata.Interface, version schema.GroupVersionResource, namespace string,
) (runtime.Object, *cache.ListWatch) {
	core := objects.CoreV1()
	switch version.GroupResource() {
	case corev1.Resource("pods"):
		return &corev1.Pod{}, typed(core.Pods(namespace))
	case corev1.Resource("services"):
		return &corev1.Service{}, typed(core.Services(namespace))
	case corev1.Resource("persistentvolumeclaims"):
		return &corev1.PersistentVolumeClaim{}, typed(core.PersistentVolumeClaims(namespace))
	case resourceapi.Resource("resourceclaims"):
		return &resourceapi.ResourceClaim{}, typed(objects.ResourceV1().ResourceClaims(namespace))
	}
	var here metadata.ResourceInterface = about.Resource(version)
	if namespace != "" {
		here = about.Resource(version).Namespace(namespace)
	}
	return &metav1.PartialObjectMetadata{}, typed(here)
}

// listWatcher has the methods that all typed clients have in common.
type listWatcher[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

func typed[L runtime.Object](client listWatcher[L]) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.List(ctx, options)
		},
		WatchFuncWithContext: client.Watch,
	}
}
