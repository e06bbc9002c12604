// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// Path is where the endpoint is served.
const Path = "/admit-objects"

// Handler answers admission requests.
type Handler struct {
	Parts

	decoder decoder
}

// Parts are the dependencies and settings of a Handler.
type Parts struct {
	Clock      clock.Clock
	Evaluators *evaluation.Evaluators
	Coverage   *namespaces.Index
	Charger    Charger
	Outcomes   outcomes.Observer
	// Natives may be nil: then they are not consulted.
	Natives *Natives
	// Names may be nil: then the Handler doesn't look whether a name is taken.
	Names *Names
	// Replacements may be nil: then no object is known to replace another one, and none takes surge.
	Replacements *Replacements
	// Waits reports whether the owner that controls an object waits for room if the object is refused. It may be nil: then
	// none does.
	Waits   func(namespace string, controller *metav1.OwnerReference) bool
	Contact Contact
	// ReservationTTL is the life of a reservation: longer than any request can take.
	ReservationTTL time.Duration
	// AdmitByDefault: requests are admitted while they can't be decided, if the quota doesn't say otherwise.
	AdmitByDefault bool
	// MaxDoubtful is the amount that one namespace may hold for requests that seem to have failed, in percent of a limit.
	MaxDoubtful int64
}

// Charger charges quotas: all of them, or none.
type Charger interface {
	Reserve(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error)
	// Judge returns the answer that Reserve would give.
	Judge(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error)
	// Current returns a quota's ledger as it is known.
	Current(quota string) ledger.State
	// Check returns an error if a quota's ledger can't be read and written.
	Check(ctx context.Context, quota string) error
}

// Contact is the contact with the API server. Without it nothing can be decided.
type Contact interface {
	// Await returns nil once the known state is still true of the API server, or an error if there is no contact.
	Await(ctx context.Context) error
	// While returns a context that also ends, with that error as its cause, when
	// there is no contact any more.
	While(ctx context.Context) (while context.Context, stop func())
}

// NewHandler makes a Handler.
func NewHandler(parts Parts) *Handler { return &Handler{Parts: parts, decoder: newDecoder()} }

// Handle answers one request before its caller gives up. Without contact to the API server
// it answers at once.
func (h *Handler) Handle(ctx context.Context, call Call, request *admissionv1.AdmissionRequest) admission.Response {
	ctx, cancel := context.WithTimeout(ctx, call.Timeout-webhookconfig.AnswerMargin)
	defer cancel()
	ctx, stop := h.Contact.While(ctx)
	defer stop()
	outcome, response, barred := h.answer(ctx, call.Question, request)
	if outcome == outcomes.Failed && call.Question.Admits && !barred {
		outcome, response = outcomes.Unchecked, admitted(response)
	}
	h.Outcomes.Answered(outcome, h.Clock.Since(call.Start))
	if outcome == outcomes.Failed || outcome == outcomes.Undecodable {
		log.FromContext(ctx).Info("Refused a request that could not be decided",
			"resource", request.Resource, "namespace", request.Namespace, "name", request.Name,
			"reason", response.Result.Message)
	}
	return response
}
