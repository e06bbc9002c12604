// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
)

// kind is a resource of which Kubernetes' quota knows more than a count.
type kind struct {
	resource schema.GroupResource
	// object is a nil pointer of the type that the evaluator looks into; nil if it doesn't look at objects.
	object runtime.Object
	// requests returns the requests that can charge. If nil, only creating an object can.
	requests func() []Rule
	// evaluator is nil if it depends on the arguments of New.
	evaluator quota.Evaluator
}

// kinds are all of them. For any other resource, evaluators only count.
//
//nolint:gochecknoglobals // a table, which each request looks at
var kinds = []kind{
	{corev1.Resource("pods"), (*corev1.Pod)(nil), onChangeOrResize, nil},
	{corev1.Resource("services"), (*corev1.Service)(nil), onChange, core.NewServiceEvaluator(nil)},
	{corev1.Resource("persistentvolumeclaims"), (*corev1.PersistentVolumeClaim)(nil), onChange,
		core.NewPersistentVolumeClaimEvaluator(nil)},
	{resourceapi.Resource("resourceclaims"), (*resourceapi.ResourceClaim)(nil), onChange, nil},
	twice(corev1.ResourceConfigMaps),
	twice(corev1.ResourceReplicationControllers),
	twice(corev1.ResourceQuotas),
	twice(corev1.ResourceSecrets),
}

// twice is a core resource whose count has two names, as in "count/secrets" and "secrets".
func twice(name corev1.ResourceName) kind {
	resource := corev1.Resource(string(name))
	return kind{resource: resource, evaluator: generic.NewObjectCountEvaluator(resource, nil, name)}
}

// kindOf returns the row of a resource; the zero kind if there is none.
func kindOf(resource schema.GroupResource) kind {
	for i := range kinds {
		if kinds[i].resource == resource {
			return kinds[i]
		}
	}
	return kind{}
}
