// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
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

// answer returns the answer to a request. A barred request isn't admitted though it can't be decided.
func (h *Handler) answer(
	ctx context.Context, question webhookconfig.Question, request *admissionv1.AdmissionRequest,
) (outcome outcomes.Outcome, response admission.Response, barred bool) {
	if !h.Coverage.Synced() {
		return outcomes.Failed, admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(outcomes.StillStarting.Err())), false
	}
	if err := h.Contact.Await(ctx); err != nil {
		return outcomes.Failed, admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(err)), false
	}
	attributes, err := h.decoder.attributes(request)
	if err != nil {
		return outcomes.Undecodable, admission.Errored(http.StatusBadRequest, outcomes.Advise(outcomes.UnreadRequest.Err(err))), false
	}
	decided := h.decide(ctx, question, request, attributes)
	decision, err := decided.decision, decided.err
	if lost, isLost := errors.AsType[*apiserver.LostError](context.Cause(ctx)); isLost && (err != nil || !ledger.IsGranted(decision)) {
		return outcomes.Failed, admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(lost)), false
	}
	if err != nil {
		return h.failed(request, attributes, decided)
	}
	if ledger.IsGranted(decision) {
		h.decided(request, attributes, outcomes.Decision{Decision: decision})
	}
	outcome, response = h.respond(request.Namespace, decision)
	h.refused(request, attributes, refusalOf(decision), response.Result.Message)
	if outcome == outcomes.Allowed {
		outcome, response = h.remarkOn(request, attributes, decided, response)
	}
	return outcome, response, false
}

// failed returns the answer to a request without a decision.
func (h *Handler) failed(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome,
) (outcome outcomes.Outcome, response admission.Response, barred bool) {
	err := decided.err
	if refusal := (*evaluation.Refusal)(nil); errors.As(err, &refusal) {
		h.refused(request, attributes, incomplete(refusal), refusal.Message)
		return outcomes.Denied, admission.Denied(refusal.Message), false
	}
	if isNative(err) {
		return outcomes.Denied, admission.Denied(err.Error()), false
	}
	if taken := (*apierrors.StatusError)(nil); isTaken(err) && errors.As(err, &taken) {
		return outcomes.Denied, admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &taken.ErrStatus}}, false
	}
	return outcomes.Failed, admission.Errored(status(err), outcomes.Advise(err)), decided.isBarred() || h.refuses(decided)
}

func (h *Handler) respond(namespace string, decision ledger.Decision) (outcomes.Outcome, admission.Response) {
	switch decision := decision.(type) {
	case ledger.Granted:
		return outcomes.Allowed, admission.Allowed("")
	case ledger.Denied:
		return outcomes.Denied, admission.Denied(exceededMessage(decision) + h.missing(namespace, decision))
	case ledger.Withheld:
		return outcomes.Denied, admission.Denied(withheldMessage(decision))
	case ledger.Undecided:
		return outcomes.Unknown, admission.Denied(unknownMessage(decision))
	default:
		return outcomes.Failed, admission.Errored(http.StatusInternalServerError, outcomes.Advise(errors.New("no decision was made")))
	}
}

// missing describes the part of a denied amount that the namespace holds for objects that have not appeared.
func (h *Handler) missing(namespace string, denied ledger.Denied) string {
	held, until := h.Charger.Current(denied.Quota).HeldBy(namespace)
	if held = quota.RemoveZeros(quota.Mask(held, denied.Resources())); len(held) == 0 {
		return ""
	}
	return missingMessage(held, until)
}

// refuses reports whether a quota that is known to cover the request refuses while the request can't be decided. The
// entry that the request met may be older than its spec.
func (h *Handler) refuses(decided outcome) bool {
	return slices.ContainsFunc(decided.covered.Definitions, func(d definition.Definition) bool {
		return !d.Enforcement.AdmitsUnavailable(h.AdmitByDefault)
	})
}

// isBarred reports whether a request that may be refused, or very many of them, are the reason that it can't be
// decided. Such a request isn't let past a limit.
func (o outcome) isBarred() bool {
	_, isUnjudged := errors.AsType[unjudged](o.err)
	own := isUnjudged || errors.Is(o.err, errTooLong) || errors.Is(o.err, machine.ErrBusy) || errors.Is(o.err, machine.ErrRejected)
	return own && slices.ContainsFunc(o.covered.Definitions, func(d definition.Definition) bool { return d.Enforcement.Refuses() })
}

// status is the HTTP status for a failure to decide.
func status(err error) int32 {
	switch {
	case errors.Is(err, errTooLong):
		return http.StatusBadRequest
	case errors.Is(err, machine.ErrBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, machine.ErrStore):
		return http.StatusServiceUnavailable
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err):
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
