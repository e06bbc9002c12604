// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Call is how an admission request arrived.
type Call struct {
	// Start is when it arrived.
	Start time.Time
	// Timeout is how long its caller waits from then on.
	Timeout time.Duration
	// Question is the path's account of the quotas that the entry was made for.
	Question webhookconfig.Question
}

// NewEndpoint serves a Handler over HTTP. A review that can't be decoded is refused before it
// reaches the Handler, and counted. A request's context must end when its caller goes, and not when
// the server is told to stop: then requests that are under way are still answered, and the
// reservation of a caller that has gone is released.
func NewEndpoint(handler *Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		call := Call{Start: handler.Clock.Now(), Timeout: timeoutOf(request), Question: questionIn(request.URL.Path)}
		decoded := false
		direct{&admission.Webhook{
			Handler: admission.HandlerFunc(func(ctx context.Context, request admission.Request) admission.Response {
				decoded = true
				return handler.Handle(ctx, call, &request.AdmissionRequest)
			}),
			// The Handler adds the subject of a line.
			LogConstructor: func(base logr.Logger, _ *admission.Request) logr.Logger { return base },
		}}.ServeHTTP(writer, request)
		if !decoded {
			handler.Outcomes.Answered(outcomes.Undecodable, handler.Clock.Since(call.Start))
		}
	})
}

// timeoutOf reads how long the API server waits: it says so in the URL. No answer takes longer than
// the default, even if an old configuration allows more.
func timeoutOf(request *http.Request) time.Duration {
	timeout, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || timeout <= webhookconfig.AnswerMargin {
		return webhookconfig.Timeout
	}
	return min(timeout, webhookconfig.Timeout)
}

// questionIn reads the question from the path that an entry asks at. A path that
// says nothing readable tells nothing of quotas: such an entry is no witness.
func questionIn(path string) webhookconfig.Question {
	question, err := webhookconfig.ParseQuestion(strings.TrimPrefix(path, Path+"/"))
	if err != nil {
		return webhookconfig.Question{Witness: webhookconfig.WitnessNone}
	}
	return question
}
