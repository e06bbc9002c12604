// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// inContact lets a handler answer only while there is contact to the API server.
// Without it, and as soon as it is lost, requests are refused.
type inContact struct {
	handler admission.Handler
	contact *apiserver.Contact
}

// Handle implements admission.Handler.
func (c inContact) Handle(ctx context.Context, request admission.Request) admission.Response {
	ctx, stop := c.contact.While(ctx)
	defer stop()
	if err := c.contact.Await(ctx); err != nil {
		return admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(err))
	}
	response := c.handler.Handle(ctx, request)
	if lost, isLost := errors.AsType[*apiserver.LostError](context.Cause(ctx)); isLost && !response.Allowed {
		return admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(lost))
	}
	return response
}
