// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

type waivers admission.Waivers

func (w waivers) of(limits ledger.Limits) admission.Waived {
	return admission.Waivers(w).Of(limits.Basis)
}

// admit takes the actions of package admission until it answers.
func (h *Handler) admit(
	ctx context.Context, question webhookconfig.Question, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
) outcome {
	var facts admission.Facts
	var covered namespaces.Covered
	var last outcome
	for {
		facts.Now, facts.Over = h.Clock.Now(), ctx.Err() != nil
		facts.Lenient = question.Admits && h.refusesNothing(request.Namespace)
		action := admission.Next(facts)
		if action.Do == admission.Answer {
			return last.answered(action, facts)
		}
		ctx, cancel := h.until(ctx, action)
		switch action.Do {
		case admission.Look:
			var err error
			if covered, err = h.look(ctx, question, request.Namespace, action); err != nil {
				last = outcome{err: err}
			}
			facts.Looked(action, h.quotas(covered, attributes), err)
		case admission.Charge:
			if action.Asks {
				covered.Ask()
			}
			last = h.charge(ctx, request, attributes, covered, waivers(action.Waivers))
			facts.Charged(action, last.outcome(), h.Clock.Now())
		case admission.Check:
			facts.Last, facts.Unwritten = action, h.unwritten(ctx, action.Quota)
		default:
			<-ctx.Done()
			facts.Last = action
		}
		cancel()
	}
}

// until returns a context that ends with an action.
func (h *Handler) until(ctx context.Context, action admission.Action) (context.Context, context.CancelFunc) {
	if action.Until.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, action.Until.Sub(h.Clock.Now()))
}

// look returns the quotas that cover a namespace.
func (h *Handler) look(
	ctx context.Context, question webhookconfig.Question, namespace string, look admission.Action,
) (namespaces.Covered, error) {
	switch look.Look {
	case admission.Namespace:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookNamespace)
	case admission.Quotas, admission.Specs:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookQuotas)
	case admission.Everywhere:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookEverywhere)
	default:
		return h.Coverage.Covering(ctx, question, namespace, look.AtLeast)
	}
}

// quotas returns what admission has to know of quotas. A dry run writes nothing, whether or not a ledger can be written.
func (h *Handler) quotas(covered namespaces.Covered, attributes kubeadmission.Attributes) []admission.Quota {
	quotas := make([]admission.Quota, 0, len(covered.Definitions))
	for _, d := range covered.Definitions {
		quotas = append(quotas, admission.Quota{
			Name: d.Limits.Name, Basis: d.Limits.Basis, Advisory: d.Limits.Advisory,
			AdmitsUnwritten: d.Enforcement.AdmitsUnavailable(h.AdmitByDefault) && !attributes.IsDryRun(),
		})
	}
	return quotas
}

// unwritten returns why a ledger can't be read or written; empty if it can.
func (h *Handler) unwritten(ctx context.Context, quota string) string {
	if err := h.Charger.Check(ctx, quota); errors.Is(err, machine.ErrStore) || errors.Is(err, machine.ErrUnreadable) {
		return err.Error()
	}
	return ""
}

// outcome returns what admission has to know of it.
func (o outcome) outcome() admission.Outcome {
	switch {
	case o.err == nil:
		return admission.Outcome{Decision: o.decision}
	case isNative(o.err), isTaken(o.err):
		return admission.Outcome{Failure: admission.Final}
	case isUncovered(o.err):
		return admission.Outcome{Failure: admission.Uncovered}
	default:
		return admission.Outcome{Failure: admission.Failed}
	}
}

// answered returns the outcome that an action answers with.
func (o outcome) answered(answer admission.Action, facts admission.Facts) outcome {
	if undecided, _ := o.decision.(ledger.Undecided); answer.Late && o.err == nil {
		o.err = fmt.Errorf("waiting for quota %s: %w", undecided.Quota, context.DeadlineExceeded)
	}
	o.passedOver = facts.Remarks()
	return o
}
