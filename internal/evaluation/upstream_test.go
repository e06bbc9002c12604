// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
)

// upstream is the quota system of Kubernetes over the objects of one
// namespace, put together as its quota controller does it.
func upstream(clock clock.Clock, sources ClaimSources, objects []typedObject) quota.Registry {
	lister := listerOf(objects)
	getter := sources.ClaimsOfPod
	if getter == nil {
		getter = func(string, types.UID) ([]*resourceapi.ResourceClaim, error) { return nil, errors.New("no claims") }
	}
	evaluators := []quota.Evaluator{
		core.NewPodEvaluator(lister, clock),
		core.NewServiceEvaluator(lister),
		core.NewPersistentVolumeClaimEvaluator(lister),
		core.NewResourceClaimEvaluator(lister, (&claimEvaluators{sources: sources}).now().classes, sources.Pods, getter),
	}
	aliases := map[schema.GroupVersionResource]corev1.ResourceName{
		{Version: "v1", Resource: "secrets"}:                       corev1.ResourceSecrets,
		{Version: "v1", Resource: "configmaps"}:                    corev1.ResourceConfigMaps,
		{Group: "example.com", Version: "v1", Resource: "widgets"}: "",
	}
	for resource, alias := range aliases {
		evaluators = append(evaluators, generic.NewObjectCountEvaluator(resource.GroupResource(),
			generic.ListResourceUsingListerFunc(lister, resource), alias))
	}
	return generic.NewRegistry(evaluators)
}

// listerOf lists copies of objects of all resources from memory: measuring may
// change them.
func listerOf(objects []typedObject) quota.ListerForResourceFunc {
	return func(resource schema.GroupVersionResource) (cache.GenericLister, error) {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		for _, typed := range objects {
			if typed.resource == resource.GroupResource() {
				if err := indexer.Add(upToDate(typed.object)); err != nil {
					return nil, err
				}
			}
		}
		return cache.NewGenericLister(indexer, resource.GroupResource()), nil
	}
}

// anySources draws a cluster without dynamic resource allocation, or one where
// a class offers an extended resource and a pod owns claims.
func anySources() *rapid.Generator[ClaimSources] {
	return rapid.Custom(func(t *rapid.T) ClaimSources {
		sources := ClaimSources{}
		if rapid.Bool().Draw(t, "with device classes") {
			sources.DeviceClasses = deviceClasses("gpu", "vndr.example/gpu")
		}
		if rapid.Bool().Draw(t, "with owners") {
			owner := podOf(container("app", amountsOf("vndr.example/gpu", "1"), nil))
			owner.Name, owner.UID = "owner", "owner-uid"
			if rapid.Bool().Draw(t, "names its claim") {
				owner.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "object-1"}
			}
			sources.Pods = podLister(owner)
		}
		if rapid.Bool().Draw(t, "with claims of owners") {
			sources.ClaimsOfPod = func(string, types.UID) ([]*resourceapi.ResourceClaim, error) {
				return []*resourceapi.ResourceClaim{{ObjectMeta: inTeamA("object-2")}}, nil
			}
		}
		return sources
	})
}

// deviceClasses returns a class of this name that offers an extended resource.
func deviceClasses(class, extendedResource string) func() *extendedresourcecache.ExtendedResourceCache {
	classes := extendedresourcecache.NewExtendedResourceCache(klog.Logger{})
	classes.OnAdd(&resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec:       resourceapi.DeviceClassSpec{ExtendedResourceName: ptr.To(extendedResource)},
	}, true)
	return func() *extendedresourcecache.ExtendedResourceCache { return classes }
}

func podLister(pods ...*corev1.Pod) corev1listers.PodLister {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, pod := range pods {
		if err := indexer.Add(pod); err != nil {
			panic(err)
		}
	}
	return corev1listers.NewPodLister(indexer)
}
