// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// terms are the terms on which quotas are charged.
type terms struct {
	waivers admission.Waivers
	// replaces is the workload of an object that replaces another one; zero if it isn't known to.
	replaces ledger.Surger
	// asks: the ledgers are asked to count the namespaces that joined.
	asks bool
}

// charge evaluates the request for the quotas that cover its namespace, which
// may be none, and charges all of them or none.
func (h *Handler) charge(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, covered namespaces.Covered,
	terms terms,
) outcome {
	if terms.asks {
		covered.Ask()
	}
	quotas := make([]evaluation.Quota, 0, len(covered.Definitions))
	for i := range covered.Definitions {
		quotas = append(quotas, covered.Definitions[i].Quota)
	}
	amounts, err := h.Evaluators.Charges(attributes, quotas)
	if err != nil {
		return outcome{err: unjudged{err}, covered: covered}
	}
	if len(amounts) == 0 {
		return outcome{decision: ledger.Granted{}, covered: covered}
	}
	charged := outcome{covered: covered, amounts: amounts}
	fail, err := h.Natives.admit(ctx, h.Clock, h.Evaluators, attributes, nativePatience(covered))
	if charged.err = err; err != nil {
		return charged
	}
	if charged = h.reserve(ctx, request, attributes, charged, terms); !charged.granted() {
		fail()
	}
	return charged
}

// reserve charges the ledgers.
func (h *Handler) reserve(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, charged outcome, terms terms,
) outcome {
	charges, refused, err := h.chargesOf(request, attributes, charged, terms)
	if refused != nil || err != nil {
		charged.decision, charged.err = refused, err
		return charged
	}
	if len(charges) == 0 {
		charged.decision = ledger.Granted{}
		return charged
	}
	if attributes.IsDryRun() {
		charged.decision, charged.err = h.Charger.Judge(ctx, charges)
		return charged
	}
	fail, err := h.Names.admit(ctx, h.Clock.Now(), request, h.Charger, charges)
	if charged.err = err; err != nil {
		return charged
	}
	charged.decision, charged.err = h.Charger.Reserve(ctx, charges)
	if !charged.granted() {
		fail()
	}
	return charged
}

// chargesOf returns the charges of the ledgers, or the refusal of a quota that can't be charged.
func (h *Handler) chargesOf(
	request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, charged outcome, terms terms,
) ([]ledger.Charge, ledger.Decision, error) {
	held, err := reservation(request, attributes, h.Clock.Now().Add(h.ReservationTTL))
	if err != nil {
		return nil, nil, err
	}
	charges := make([]ledger.Charge, 0, len(charged.amounts))
	for _, charge := range charged.amounts {
		quota := named(charged.covered.Definitions, charge.Quota)
		waived := terms.waivers.Of(quota.Limits.Basis)
		if len(charge.Amounts) == 0 || waived == admission.Entirely {
			continue
		}
		if refused, isInvalid := invalid(quota, charge.Amounts); isInvalid {
			return nil, refused, nil
		}
		held.Amounts = charge.Amounts
		charges = append(charges, ledger.Charge{
			Limits: quota.Limits, Reservation: held, Knowledge: charged.covered.Of(charge.Quota), MaxDoubtful: h.MaxDoubtful,
			Replaces: terms.replaces,
			Admits:   quota.Enforcement.AdmitsUnavailable(h.AdmitByDefault),
			Unjudged: waived == admission.Judgement,
		})
	}
	return charges, nil, nil
}

// named returns the definition of the quota with this name, which is one of them.
func named(definitions []definition.Definition, name string) *definition.Definition {
	return &definitions[slices.IndexFunc(definitions, func(d definition.Definition) bool { return d.Quota.Name == name })]
}

// invalid refuses resources that a quota would limit if it could be charged.
func invalid(quota *definition.Definition, amounts corev1.ResourceList) (refused ledger.Undecided, isInvalid bool) {
	if !quota.IsInvalid() {
		return ledger.Undecided{}, false
	}
	return ledger.Undecided{
		Quota: quota.Limits.Name, Reason: ledger.InvalidSpec, Resources: slices.Sorted(maps.Keys(amounts)),
		Unenforced: quota.Limits.Advisory,
		Detail:     strings.TrimPrefix(quota.Invalid.Error(), "quota "+quota.Limits.Name+": "),
	}, true
}

// unjudged is the reason that the cost of a request isn't known.
type unjudged struct{ error }

func (u unjudged) Unwrap() error { return u.error }
