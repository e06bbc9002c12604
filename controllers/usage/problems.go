// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// All text of the condition ResourceUnavailable that this package knows is built
// here. It has the advice.

func clusterScoped(resource schema.GroupResource) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotLimitable,
		Message: fmt.Sprintf("%s doesn't live in namespaces, so a quota over namespaces can't limit it: "+
			"remove it from spec.quota.hard", resource),
	}
}

func notServed(resource schema.GroupResource) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotServed,
		Message: fmt.Sprintf("the cluster doesn't serve %s; it is counted once it does: "+
			"install what defines it, or remove it from spec.quota.hard", resource),
	}
}

func unknown(resource schema.GroupResource, err error) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotWatchable,
		Message: fmt.Sprintf("%s can't be looked up; it is tried again, and what isn't counted yet is refused meanwhile: "+
			"see what the API server says: %v", resource, err),
	}
}

// An administrator may have left out the right to read it on purpose: docs/security.md.
func notWatchable(resource schema.GroupResource, err error) *Problem {
	next := "see what the API server says"
	if apierrors.IsForbidden(err) {
		next = "give the operator the right to list and watch it, such as by config/rbac/reader_all_role.yaml, " +
			"or remove it from spec.quota.hard; the API server says"
	}
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotWatchable,
		Message: fmt.Sprintf("%s can't be listed or watched; it is tried again, and what isn't counted yet is refused meanwhile: "+
			"%s: %v", resource, next, err),
	}
}
