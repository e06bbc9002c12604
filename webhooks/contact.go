/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package webhooks

import (
	"context"
	"errors"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/contact"
)

// inContact lets a handler answer only while there is contact to the API server.
// Without it, and as soon as it is lost, requests are refused.
type inContact struct {
	handler admission.Handler
	contact *contact.Contact
}

// Handle implements admission.Handler.
func (c inContact) Handle(ctx context.Context, request admission.Request) admission.Response {
	if err := c.contact.Err(); err != nil {
		return admission.Errored(http.StatusServiceUnavailable, err)
	}
	ctx, stop := c.contact.While(ctx)
	defer stop()
	response := c.handler.Handle(ctx, request)
	if lost, isLost := errors.AsType[*contact.LostError](context.Cause(ctx)); isLost && !response.Allowed {
		return admission.Errored(http.StatusServiceUnavailable, lost)
	}
	return response
}
