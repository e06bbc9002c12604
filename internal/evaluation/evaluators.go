// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"errors"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"
)

// Quota is the part of a ClusterResourceQuota that evaluation needs.
type Quota struct {
	Name string
	Spec corev1.ResourceQuotaSpec
	// Advisory: no object is refused because it doesn't say how much it asks for.
	Advisory bool
}

// ClaimSources has the objects that the cost of a ResourceClaim depends on
// besides the claim. The zero value is for clusters without dynamic resource
// allocation: no device class offers an extended resource, and no claim is owned
// by a pod.
type ClaimSources struct {
	// DeviceClasses returns the map from the device classes of this moment to extended resources. It never changes: if
	// the classes do, another one is returned. May be nil, and may return nil.
	DeviceClasses func() *extendedresourcecache.ExtendedResourceCache
	// Pods finds the pod for which a claim was made, whose own usage already
	// covers the devices. Without it such a claim is charged in full. May be nil.
	Pods corev1listers.PodLister
	// ClaimsOfPod returns the claims in a namespace that a pod owns and that
	// were made for its extended resources. May be nil.
	ClaimsOfPod func(namespace string, podUID types.UID) ([]*resourceapi.ResourceClaim, error)
}

// ClaimsBy returns the sources by which claims are charged as the extended resources that these classes offer.
func ClaimsBy(classes []resourceapi.DeviceClass) ClaimSources {
	offers := extendedresourcecache.NewExtendedResourceCache(logr.Discard())
	for i := range classes {
		offers.OnAdd(&classes[i], true)
	}
	return ClaimSources{DeviceClasses: func() *extendedresourcecache.ExtendedResourceCache { return offers }}
}

// Evaluators measure objects. They are made by New and safe for concurrent use.
type Evaluators struct {
	// special evaluators know more than a count, or a second name for it.
	// Never written after New.
	special map[schema.GroupResource]quota.Evaluator // resource -> its evaluator
	// limited may be consumed only if a quota covers it. Never written after New.
	limited []resourcequotaapi.LimitedResource
	// claims are the evaluators of resource claims, which come and go with device classes.
	claims *claimEvaluators
	// lists are the usage lists of all footprints.
	lists *sharedLists
}

// New returns evaluators that judge by this clock whether a pod that is being
// deleted still counts in a request. Limited resources may be consumed only if a
// quota covers them.
func New(clock clock.Clock, claims ClaimSources, limited ...resourcequotaapi.LimitedResource) *Evaluators {
	if claims.ClaimsOfPod == nil {
		claims.ClaimsOfPod = noClaimsOfPod
	}
	special := map[schema.GroupResource]quota.Evaluator{}
	made := &Evaluators{special: special, limited: limited, lists: newSharedLists(), claims: &claimEvaluators{sources: claims}}
	for _, kind := range kinds {
		special[kind.resource] = kind.evaluator
	}
	for _, evaluator := range []quota.Evaluator{newPodEvaluator(clock), made.claims.now()} {
		special[evaluator.GroupResource()] = evaluator
	}
	return made
}

// noClaimsOfPod makes the upstream evaluator charge a claim in full: without the
// other claims of the pod it can't find the claim to exempt.
func noClaimsOfPod(string, types.UID) ([]*resourceapi.ResourceClaim, error) {
	return nil, errors.New("the claims of a pod are not known")
}

// claimEvaluator measures claims by the device classes of one moment. The use of a claim, and the limits that it
// matches, depend on them: a use that was counted by some classes is taken off by the same.
type claimEvaluator struct {
	quota.Evaluator
	classes *extendedresourcecache.ExtendedResourceCache
}

// claimEvaluators make one for each moment at which the classes are others.
type claimEvaluators struct {
	sources ClaimSources
	latest  atomic.Pointer[claimEvaluator]
}

// now returns the evaluator by the classes that there are.
func (c *claimEvaluators) now() *claimEvaluator {
	var classes *extendedresourcecache.ExtendedResourceCache
	if c.sources.DeviceClasses != nil {
		classes = c.sources.DeviceClasses()
	}
	latest := c.latest.Load()
	if latest == nil || latest.classes != classes {
		latest = &claimEvaluator{
			Evaluator: core.NewResourceClaimEvaluator(nil, classes, c.sources.Pods, c.sources.ClaimsOfPod), classes: classes,
		}
		c.latest.Store(latest)
	}
	return latest
}
