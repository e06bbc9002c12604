// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// call is what the HTTP layer knows of a request.
type call struct {
	timeout time.Duration
	// start is when the request arrived.
	start time.Time
	// question is what the path says of the quotas that the entry was made for.
	question reach.Question
	// handled: the AdmissionReview was decoded and reached the Handler.
	handled bool
}

type callKey struct{}

// NewEndpoint serves a Handler over HTTP. A review that can't be decoded is
// refused before it reaches the Handler, and counted. A request's context must end
// when its caller goes, and not when the server is told to stop: then what is under
// way is still answered, and what a caller who has gone was admitted is released.
func NewEndpoint(handler *Handler, counters *metrics.Metrics) http.Handler {
	webhook := direct{&admission.Webhook{
		Handler: handler,
		// The Handler says what a line is about: no logger is made for each request.
		LogConstructor: func(base logr.Logger, _ *admission.Request) logr.Logger { return base },
	}}
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		state := &call{timeout: timeoutOf(request), start: handler.Clock.Now(), question: questionIn(request.URL.Path)}
		webhook.ServeHTTP(writer, request.WithContext(context.WithValue(request.Context(), callKey{}, state)))
		if !state.handled {
			counters.Requested(metrics.Undecodable, handler.Clock.Since(state.start))
		}
	})
}

// timeoutOf reads how long the API server waits: it says so in the URL. No answer
// takes longer than the default, whatever an old configuration says.
func timeoutOf(request *http.Request) time.Duration {
	timeout, err := time.ParseDuration(request.URL.Query().Get("timeout"))
	if err != nil || timeout <= reach.AnswerMargin {
		return reach.Timeout
	}
	return min(timeout, reach.Timeout)
}

// questionIn reads the question from the path that an entry asks at. A path that
// says nothing readable tells nothing of quotas: such an entry is no witness.
func questionIn(path string) reach.Question {
	question, err := reach.ParseQuestion(strings.TrimPrefix(path, Path+"/"))
	if err != nil {
		return reach.Question{Witness: reach.WitnessNone}
	}
	return question
}

// questionOf returns the request's question; one of no witness if nobody noted it.
func questionOf(ctx context.Context) reach.Question {
	if state, ok := ctx.Value(callKey{}).(*call); ok {
		return state.question
	}
	return reach.Question{Witness: reach.WitnessNone}
}

// startOf returns when the request arrived, which is now where nobody noted it.
func startOf(ctx context.Context, clock clock.PassiveClock) time.Time {
	if state, ok := ctx.Value(callKey{}).(*call); ok {
		return state.start
	}
	return clock.Now()
}

// withDeadline bounds the work on a request by its caller's patience.
func withDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := reach.Timeout
	if state, ok := ctx.Value(callKey{}).(*call); ok {
		state.handled = true
		timeout = state.timeout
	}
	return context.WithTimeout(ctx, timeout-reach.AnswerMargin)
}
