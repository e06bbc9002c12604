// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

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

// denied reports the denial of a new object.
//
// If its owner would wait, and the object is there already, the owner lacks nothing: the API server's error for a name
// that is taken is returned in place of the refusal. By that error, the controller of CronJobs finds a Job that it made
// and, because another client changed the CronJob meanwhile, couldn't note in its status. By a refusal it would make no
// other one.
func (h *Handler) denied(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, charges []ledger.Charge,
	decision ledger.Decision,
) error {
	denied, isDenied := decision.(ledger.Denied)
	if !isDenied || !creates(request) {
		return nil
	}
	if h.Waits != nil && h.Waits(request.Namespace, controllerOf(attributes)) {
		if err := h.Names.taken(ctx, request); err != nil {
			return err
		}
	}
	var requested corev1.ResourceList
	for i := range charges {
		if charges[i].Limits.Name == denied.Quota {
			requested = charges[i].Reservation.Amounts
		}
	}
	h.decided(request, attributes, outcomes.Decision{Decision: decision, Requested: requested})
	return nil
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
