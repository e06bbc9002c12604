// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func clusterScoped(resource schema.GroupResource) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotLimitable,
		Message: outcomes.ClusterScoped.Text(resource),
	}
}

func notServed(resource schema.GroupResource) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotServed,
		Message: outcomes.NotServedHere.Text(resource),
	}
}

func unknown(resource schema.GroupResource, err error) *Problem {
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotWatchable,
		Message: outcomes.LookupFails.Text(resource, err),
	}
}

// An administrator may have left out the right to read it on purpose: docs/security.md.
func notWatchable(resource schema.GroupResource, err error) *Problem {
	message := outcomes.WatchFails
	if apierrors.IsForbidden(err) {
		message = outcomes.WatchForbidden
	}
	return &Problem{
		Resource: resource, Reason: quotav1.ReasonNotWatchable,
		Message: message.Text(resource, err),
	}
}
