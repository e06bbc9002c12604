// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"net/http"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

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
	err = decided.err
	if lost, isLost := errors.AsType[*apiserver.LostError](context.Cause(ctx)); isLost && !decided.granted() {
		return outcomes.Failed, admission.Errored(http.StatusServiceUnavailable, outcomes.Advise(lost)), false
	}
	if err != nil {
		return h.failed(request, attributes, decided)
	}
	outcome, response = h.respond(request.Namespace, decided)
	h.refused(request, attributes, refusalOf(decided.decision), response.Result.Message)
	if outcome == outcomes.Allowed {
		outcome, response = h.remarkOn(ctx, request, attributes, decided, response)
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
	if evaluation.IsNativeRefusal(err) {
		return outcomes.Denied, admission.Denied(err.Error()), false
	}
	if taken := (*apierrors.StatusError)(nil); isTaken(err) && errors.As(err, &taken) {
		return outcomes.Denied, admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &taken.ErrStatus}}, false
	}
	return outcomes.Failed, admission.Errored(status(err), outcomes.Advise(err)), decided.isBarred() || h.refuses(decided)
}

func (h *Handler) respond(namespace string, decided outcome) (outcomes.Outcome, admission.Response) {
	switch decision := decided.decision.(type) {
	case ledger.Granted:
		return outcomes.Allowed, admission.Allowed("")
	case ledger.Denied:
		message := exceededMessage(decision) + h.missing(namespace, decision) + surgeMessage(decision, decided.proof)
		return outcomes.Denied, admission.Denied(message)
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

// refused reports the refusal of a request, unless no quota refuses it or it is a dry run.
func (h *Handler) refused(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, refusal outcomes.Refusal, message string,
) {
	if refusal.Quota == "" || attributes.IsDryRun() {
		return
	}
	refusal.Namespace, refusal.Kind, refusal.Name, refusal.Message = request.Namespace, request.Resource.Resource, request.Name, message
	// A name that the API server made up stands only in the object.
	if object, err := meta.Accessor(attributes.GetObject()); err == nil && refusal.Name == "" {
		refusal.Name = object.GetName()
	}
	h.Outcomes.Refused(refusal)
}

// remarkOn adds the quotas' remarks to the answer for a request that is admitted, in the way that their modes ask for.
func (h *Handler) remarkOn(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome,
	response admission.Response,
) (outcomes.Outcome, admission.Response) {
	var said comments
	granted, _ := decided.decision.(ledger.Granted)
	replaces := sync.OnceValue(func() bool {
		return decided.proof.replaces() || h.Replacements.prove(ctx, request, attributes).replaces()
	})
	for _, remark := range granted.Remarks {
		if refusal, _ := remark.Refusal.(ledger.Denied); refusal.Provable && replaces() {
			continue // it takes surge
		}
		h.comment(&said, request, attributes, decided, remark)
	}
	for _, remark := range decided.passedOver {
		h.comment(&said, request, attributes, decided, remark)
	}
	for _, charge := range decided.amounts {
		if charge.Incomplete != "" {
			quota := named(decided.covered.Definitions, charge.Quota)
			h.wouldRefuse(&said, request, attributes, quota, charge.Missing, charge.Incomplete)
		}
	}
	response.Warnings = append(response.Warnings, bounded(said.warnings)...)
	annotate(&response, auditWouldRefuse, said.audited)
	annotate(&response, auditUnchecked, said.unchecked)
	if len(said.unchecked) > 0 {
		return outcomes.Unchecked, response
	}
	return outcomes.Allowed, response
}

func (h *Handler) comment(
	said *comments, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decided outcome, remark ledger.Remark,
) {
	quota := named(decided.covered.Definitions, remark.Quota)
	switch refusal := remark.Refusal.(type) {
	case ledger.Denied:
		h.wouldRefuse(said, request, attributes, quota, refusal.Resources(), exceededMessage(refusal))
	case ledger.Undecided:
		if remark.Unchecked {
			unchecked := outcomes.NotChecked.Text(refusal.Quota, refusal.Detail)
			said.unchecked, said.warnings = append(said.unchecked, unchecked), append(said.warnings, unchecked)
			return
		}
		cause, _ := explanation(refusal) // there is nothing to send again
		message := outcomes.UnknownUse.Text(refusal.Quota, names(refusal.Resources), cause)
		said.add(quota.Enforcement.Mode, message, outcomes.OnlyWarnsUnknown)
	}
}

// wouldRefuse tells that a quota in the mode Warn or Audit would have refused the request for the sake of these resources.
func (h *Handler) wouldRefuse(
	said *comments, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
	quota *definition.Definition, resources []corev1.ResourceName, message string,
) {
	said.add(quota.Enforcement.Mode, message, outcomes.OnlyWarns)
	h.refused(request, attributes, outcomes.Refusal{
		Quota: quota.Quota.Name, Reason: quotav1.ReasonWouldExceed, Mode: quota.Enforcement.Mode, Resources: resources,
	}, message)
}
