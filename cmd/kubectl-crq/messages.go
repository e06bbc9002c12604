// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	hintNotInstalled = "the cluster doesn't serve ClusterResourceQuotas: is the shared quota operator installed here? " +
		"Its CRDs are in config/crd"
	hintForbidden = "; an administrator can grant this right with a ClusterRole. " +
		"Whoever may view a namespace can use kubectl crq explain -n NAMESPACE"
	hintNoViews = "; whoever has the role view, edit or admin in the namespace has this right, too, " +
		"where the operator's config/rbac is installed"
	hintTimeout     = "; try again, or give it longer with --request-timeout"
	hintUnreachable = "; does --kubeconfig, KUBECONFIG or --context name the cluster that you mean, and does it run?"
)

// viewResource is the API server's name of local views.
const viewResource = "localresourcequotas"

// message describes an error, and the remedy if it is known.
func message(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case notInstalled(err):
		return hintNotInstalled
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), viewResource):
		return err.Error() + hintNoViews
	case apierrors.IsForbidden(err):
		return err.Error() + hintForbidden
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err),
		errors.As(err, &timeout) && timeout.Timeout():
		return err.Error() + hintTimeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, new(*url.Error)):
		return err.Error() + hintUnreachable
	default:
		return err.Error()
	}
}

// notInstalled reports whether the API server has no such kind as ours.
func notInstalled(err error) bool {
	if failed := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &failed) {
		_, ours := failed.Groups[quotav1.GroupVersion]
		return ours && strings.Contains(err.Error(), "not found")
	}
	return meta.IsNoMatchError(err)
}
