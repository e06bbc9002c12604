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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// viewResource is the API server's name of local views.
const viewResource = "localresourcequotas"

// advised returns an error of a command with a next step.
func advised(err error, command string) error {
	var timeout interface{ Timeout() bool }
	switch {
	case notInstalled(err):
		return outcomes.NotInstalled.Err()
	case outcomes.IsAdvised(err), strings.Contains(err.Error(), "Did you mean this?"): // cobra's words
		return err
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), viewResource):
		return outcomes.MayNotSeeViews.Err(err)
	case apierrors.IsForbidden(err):
		return outcomes.MayNotSee.Err(err)
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err),
		errors.As(err, &timeout) && timeout.Timeout():
		return outcomes.TookTooLong.Err(err)
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, new(*url.Error)):
		return outcomes.NoAnswer.Err(err)
	case apierrors.IsNotFound(err):
		return outcomes.NotThere.Err(err)
	case apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		return outcomes.ServerSays.Err(err)
	default:
		return outcomes.Unexplained.Err(err, command)
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
