// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"sync/atomic"

	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
)

// claimEvaluator measures claims by the device classes of one moment. What a claim uses, and
// which limits that matches, depends on them: what was counted by some is taken off by the same.
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
