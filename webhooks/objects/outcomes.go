// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// outcome is a decision, or why there is none.
type outcome struct {
	decision ledger.Decision
	err      error
	// covered has the quotas that cover the namespace, and amounts are the charges.
	covered namespaces.Covered
	amounts []evaluation.Charge
	// proof is whether the object replaces another one; zero if that wasn't looked up.
	proof proof
	// passedOver says of quotas that they couldn't decide, let the request pass, and aren't charged.
	passedOver []ledger.Remark
}

// forAdmission returns the outcome as a fact.
func (o outcome) forAdmission() admission.Outcome {
	refusal, isRefusal := errors.AsType[*evaluation.Refusal](o.err)
	switch {
	case o.err == nil && o.decision != nil:
		return admission.Outcome{Decision: o.decision}
	case evaluation.IsNativeRefusal(o.err), isTaken(o.err):
		return admission.Outcome{Failure: admission.Final}
	case isRefusal && refusal.Uncovered:
		return admission.Outcome{Failure: admission.Uncovered}
	default:
		return admission.Outcome{Failure: admission.Failed}
	}
}

func (o outcome) granted() bool { return o.err == nil && ledger.IsGranted(o.decision) }

// concluded reports the decision on a new object that is about to be answered.
//
// If an object is denied whose owner would wait, and the object is there already, the owner lacks nothing: the API server's
// error for a name that is taken is returned in place of the refusal. By that error, the controller of CronJobs finds a Job
// that it made and, because another client changed the CronJob meanwhile, couldn't note in its status. By a refusal it would
// make no other one.
func (h *Handler) concluded(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, last outcome,
) outcome {
	decision := outcomes.Decision{Decision: last.decision}
	denied, isDenied := last.decision.(ledger.Denied)
	switch {
	case last.err != nil, !creates(request), !last.granted() && !isDenied:
		return last
	case isDenied && !attributes.IsDryRun() && h.Waits != nil && h.Waits(request.Namespace, controllerOf(attributes)):
		if last.err = h.Names.taken(ctx, request); last.err != nil {
			return last
		}
	}
	for _, charge := range last.amounts {
		if charge.Quota == denied.Quota && isDenied {
			decision.Requested = charge.Amounts
		}
	}
	h.decided(request, attributes, decision)
	return last
}

// decided reports a decision on a new object, unless it is a dry run. If the object is granted, that costs about a
// microsecond (BenchmarkGranted in internal/waiting).
func (h *Handler) decided(request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decision outcomes.Decision) {
	if !creates(request) || attributes.IsDryRun() {
		return
	}
	decision.At, decision.Namespace, decision.Controller = h.Clock.Now(), request.Namespace, controllerOf(attributes)
	h.Outcomes.Decided(decision)
}

// creates reports whether a request asks for a new object.
func creates(request *admissionv1.AdmissionRequest) bool {
	return request.Operation == admissionv1.Create && request.SubResource == ""
}

// controllerOf returns the owner that controls the object; nil if there is none. It must not be changed.
func controllerOf(attributes kubeadmission.Attributes) *metav1.OwnerReference {
	object, err := meta.Accessor(attributes.GetObject())
	if err != nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(object)
}

// refusalOf returns the quota that refuses, its reason and the resources; no quota for a request that is granted.
func refusalOf(decision ledger.Decision) outcomes.Refusal {
	switch decision := decision.(type) {
	case ledger.Denied:
		return outcomes.Refusal{Quota: decision.Quota, Reason: quotav1.ReasonQuotaExceeded, Resources: decision.Resources()}
	case ledger.Withheld:
		resources := slices.Sorted(maps.Keys(decision.Requested))
		return outcomes.Refusal{Quota: decision.Quota, Reason: quotav1.ReasonTooMuchInDoubt, Resources: resources}
	case ledger.Undecided:
		return outcomes.Refusal{Quota: decision.Quota, Reason: quotav1.ReasonUsageUnknown, Resources: decision.Resources}
	default:
		return outcomes.Refusal{}
	}
}

func incomplete(refusal *evaluation.Refusal) outcomes.Refusal {
	return outcomes.Refusal{Quota: refusal.Quota, Reason: quotav1.ReasonRequestIncomplete}
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
