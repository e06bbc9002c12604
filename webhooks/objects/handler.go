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

package objects

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/machine"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/coverage"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// Path is where the endpoint is served.
const Path = "/admit-objects"

const (
	// countWait is how long a request waits for a quota that is being counted.
	countWait = 3 * time.Second
	// countPoll is how often it looks.
	countPoll = 50 * time.Millisecond
)

var errStarting = errors.New("the operator is still starting: try again in a moment")

// Handler answers admission requests.
type Handler struct {
	clock      clock.Clock
	evaluators *evaluation.Evaluators
	coverage   *coverage.Index
	group      *driver.Group
	metrics    *metrics.Metrics
	refusals   *Refusals
	decoder    decoder
	// ttl is the life of a reservation: longer than any request can take, and
	// than two replicas' clocks may differ on top of that.
	ttl time.Duration
}

var _ admission.Handler = &Handler{}

// NewHandler makes a Handler.
func NewHandler(
	clock clock.Clock, evaluators *evaluation.Evaluators, coverage *coverage.Index,
	group *driver.Group, metrics *metrics.Metrics, refusals *Refusals, ttl time.Duration,
) *Handler {
	return &Handler{
		clock: clock, evaluators: evaluators, coverage: coverage, group: group, metrics: metrics,
		refusals: refusals, decoder: newDecoder(), ttl: ttl,
	}
}

// Handle answers one request within the deadline of its context.
func (h *Handler) Handle(ctx context.Context, request admission.Request) admission.Response {
	start := startOf(ctx, h.clock)
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	outcome, response := h.answer(ctx, &request.AdmissionRequest)
	h.metrics.Requested(outcome, h.clock.Since(start))
	if outcome == metrics.Failed || outcome == metrics.Undecodable {
		log.FromContext(ctx).Info("Refused a request that could not be decided",
			"resource", request.Resource, "namespace", request.Namespace, "name", request.Name,
			"reason", response.Result.Message)
	}
	return response
}

func (h *Handler) answer(ctx context.Context, request *admissionv1.AdmissionRequest) (metrics.Outcome, admission.Response) {
	if !h.coverage.Synced() {
		return metrics.Failed, admission.Errored(http.StatusServiceUnavailable, errStarting)
	}
	attributes, err := h.decoder.attributes(request)
	if err != nil {
		return metrics.Undecodable, admission.Errored(http.StatusBadRequest, err)
	}
	decision, err := h.decide(ctx, request, attributes)
	if refusal := (*evaluation.Refusal)(nil); errors.As(err, &refusal) {
		h.tellOf(request, attributes, incomplete(refusal), refusal.Message)
		return metrics.Denied, admission.Denied(refusal.Message)
	}
	if err != nil {
		return metrics.Failed, admission.Errored(status(err), err)
	}
	outcome, response := respond(decision)
	h.tellOf(request, attributes, refusalOf(decision), response.Result.Message)
	return outcome, response
}

func respond(decision ledger.Decision) (metrics.Outcome, admission.Response) {
	switch decision := decision.(type) {
	case ledger.Granted:
		return metrics.Allowed, admission.Allowed("")
	case ledger.Denied:
		return metrics.Denied, admission.Denied(exceededMessage(decision))
	case ledger.Undecided:
		return metrics.Unknown, admission.Denied(unknownMessage(decision))
	default:
		return metrics.Failed, admission.Errored(http.StatusInternalServerError, errors.New("no decision was made"))
	}
}

// decide charges the request. It looks first at what the caches know. An
// answer other than yes, which may rest on something outdated, is given only
// after another look at what the API server has now; and what is still being
// counted is waited for briefly.
func (h *Handler) decide(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
) (ledger.Decision, error) {
	definitions, err := h.coverage.Covering(ctx, request.Namespace)
	if err != nil {
		return nil, err
	}
	decision, err := h.charge(ctx, request, attributes, definitions)
	if err == nil && isGranted(decision) {
		return decision, nil
	}
	return h.decideAgain(ctx, request, attributes, definitions, decision)
}

// decideAgain makes sure of a decision other than yes, and waits for what is
// being counted. Without a decision, the object itself or the deciding failed. Of
// what is uncovered, all quotas are listed once the caches' ones were read live.
func (h *Handler) decideAgain(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
	definitions []definition.Definition, decision ledger.Decision,
) (ledger.Decision, error) {
	patience, uncovered := h.clock.Now().Add(countWait), false
	for {
		is, err := h.lookAgain(ctx, request.Namespace, decision, uncovered)
		if err != nil {
			return nil, err
		}
		if isDenied(decision) && sameLimits(definitions, is) {
			return decision, nil
		}
		definitions = is
		decision, err = h.charge(ctx, request, attributes, definitions)
		if isUncovered(err) && !uncovered {
			uncovered = true
			continue
		}
		if err != nil || isGranted(decision) || h.clock.Now().After(patience) {
			return decision, err
		}
		if !isDenied(decision) && !h.pause(ctx) {
			return decision, nil
		}
	}
}

// pause lets a count that is under way come further, unless ctx ends first.
func (h *Handler) pause(ctx context.Context) bool {
	select {
	case <-h.clock.After(countPoll):
		return true
	case <-ctx.Done():
		return false
	}
}

// lookAgain returns what covers the namespace now. A denial has been checked
// against the quota's spec already; whether the namespace is still the quota's has not.
// Who was uncovered may be covered by a quota that no cache has seen yet.
func (h *Handler) lookAgain(
	ctx context.Context, namespace string, decision ledger.Decision, uncovered bool,
) ([]definition.Definition, error) {
	switch {
	case uncovered:
		return h.coverage.CoveringListed(ctx, namespace)
	case isDenied(decision):
		return h.coverage.CoveringNow(ctx, namespace)
	default:
		return h.coverage.CoveringLive(ctx, namespace)
	}
}

// isUncovered tells whether a request failed for want of a quota.
func isUncovered(err error) bool {
	refusal, is := errors.AsType[*evaluation.Refusal](err)
	return is && refusal.Uncovered
}

func isDenied(decision ledger.Decision) bool {
	_, denied := decision.(ledger.Denied)
	return denied
}

// sameLimits tells whether two looks found the same versions of the same quotas.
func sameLimits(a, b []definition.Definition) bool {
	return slices.EqualFunc(a, b, func(x, y definition.Definition) bool { return x.Limits.Basis == y.Limits.Basis })
}

// charge evaluates the request for the quotas that cover its namespace, which
// may be none, and charges all of them or none.
func (h *Handler) charge(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
	definitions []definition.Definition,
) (ledger.Decision, error) {
	charges, err := h.charges(request, attributes, definitions)
	if err != nil || len(charges) == 0 {
		return ledger.Granted{}, err
	}
	if attributes.IsDryRun() {
		return h.group.Judge(ctx, charges)
	}
	return h.group.Reserve(ctx, charges)
}

func (h *Handler) charges(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, definitions []definition.Definition,
) ([]ledger.Charge, error) {
	quotas := make([]evaluation.Quota, 0, len(definitions))
	limits := map[string]ledger.Limits{}
	for _, covering := range definitions {
		quotas = append(quotas, covering.Quota)
		limits[covering.Quota.Name] = covering.Limits
	}
	amounts, err := h.evaluators.Charges(attributes, quotas)
	if err != nil || len(amounts) == 0 {
		return nil, err
	}
	held, err := reservation(request, attributes, h.clock.Now().Add(h.ttl))
	if err != nil {
		return nil, err
	}
	charges := make([]ledger.Charge, 0, len(amounts))
	for _, charge := range amounts {
		held.Amounts = charge.Amounts
		charges = append(charges, ledger.Charge{
			Limits: limits[charge.Quota], Reservation: held, Knowledge: ledger.Knowledge{Seen: math.MaxUint64},
		})
	}
	return charges, nil
}

func isGranted(decision ledger.Decision) bool {
	_, granted := decision.(ledger.Granted)
	return granted
}

// status is the HTTP status for a failure to decide.
func status(err error) int32 {
	switch {
	case errors.Is(err, machine.ErrBusy):
		return http.StatusTooManyRequests
	case errors.Is(err, context.DeadlineExceeded), apierrors.IsTimeout(err):
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
