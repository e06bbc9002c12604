// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// noteRefusal remembers the owner of an object that doesn't fit, so that it is woken when there is room.
// Other refusals don't end with room in the quota, so the owner doesn't wait for it then.
//
// If the object is there already, its owner lacks nothing, and the API server's error for a name that is taken is
// returned in place of the refusal. By that error, the controller of CronJobs finds a Job that it made and, because
// another client changed the CronJob meanwhile, couldn't note in its status. By a refusal it would make no other one.
func (h *Handler) noteRefusal(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, charges []ledger.Charge,
	decision ledger.Decision,
) error {
	denied, isDenied := decision.(ledger.Denied)
	if h.Waiting == nil || !isDenied || !creates(request) {
		return nil
	}
	owner, ok := waiting.OwnerOf(request.Namespace, controllerOf(attributes))
	if !ok {
		return nil
	}
	if err := h.Names.taken(ctx, request); err != nil {
		return err
	}
	var requested corev1.ResourceList
	for i := range charges {
		if charges[i].Limits.Name == denied.Quota {
			requested = charges[i].Reservation.Amounts
		}
	}
	h.Waiting.Refused(h.Clock.Now(), waiting.Refusal{Owner: owner, Quota: denied.Quota, Requested: requested, Short: shortOf(denied)})
	return nil
}

// noteGrant remembers that the owner of an object that was granted waits no longer. It costs about a
// microsecond (BenchmarkGranted in internal/waiting).
func (h *Handler) noteGrant(request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, decision ledger.Decision) {
	if h.Waiting == nil || !ledger.IsGranted(decision) || !creates(request) || attributes.IsDryRun() {
		return
	}
	if owner, ok := waiting.OwnerOf(request.Namespace, controllerOf(attributes)); ok {
		h.Waiting.Granted(h.Clock.Now(), owner.Key())
	}
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

// shortOf returns the amounts that were missing for a charge to fit.
func shortOf(denied ledger.Denied) corev1.ResourceList {
	return quota.Subtract(quota.Add(denied.Requested, denied.Used), denied.Limited)
}
