// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// decide takes the actions of package admission until one answers.
func (h *Handler) decide(
	ctx context.Context, question webhookconfig.Question, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
) (last outcome) {
	var facts admission.Facts
	var covered namespaces.Covered
	var proof proof
	for {
		facts.Now, facts.Over = h.Clock.Now(), ctx.Err() != nil
		facts.Lenient = question.Admits && h.refusesNothing(request.Namespace)
		action := admission.Next(facts)
		ctx, cancel := h.until(ctx, action)
		switch action.Do {
		case admission.Look:
			var err error
			if covered, err = h.look(ctx, question, request.Namespace, action); err != nil {
				last = outcome{err: err}
			}
			facts.Looked(action, h.quotas(covered, attributes), err)
		case admission.Charge:
			terms := terms{waivers: action.Waivers, replaces: proof.surger, asks: action.Asks}
			charged := h.charge(ctx, request, attributes, covered, terms)
			if facts.Charged(action, charged.forAdmission(), ctx.Err() != nil, h.Clock.Now()) {
				last = charged
			}
		case admission.Check:
			facts.Last, facts.Unwritten = action, h.unwritten(ctx, action.Quota)
		case admission.Wait:
			<-ctx.Done()
			facts.Last = action
		case admission.Prove:
			proof = h.Replacements.prove(ctx, request, attributes)
			facts.Found(action, proof.replaces())
		case admission.Answer:
			if undecided, _ := last.decision.(ledger.Undecided); action.Late {
				last.err = fmt.Errorf("waiting for quota %s: %w", undecided.Quota, context.DeadlineExceeded)
			}
			last.passedOver, last.proof = facts.Remarks(), proof
			return h.concluded(ctx, request, attributes, last)
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

// refusesNothing reports whether the quotas that are known to cover a namespace are all in the mode Warn or Audit, and no
// ledger shows that the spec of one has changed since.
func (h *Handler) refusesNothing(namespace string) bool {
	known, isKnown := h.Coverage.Known(namespace)
	return isKnown && len(known.Definitions) > 0 && !slices.ContainsFunc(known.Definitions, func(d definition.Definition) bool {
		current := h.Charger.Current(d.Limits.Name)
		return d.Enforcement.Refuses() || current.Supersedes(d.Limits)
	})
}

// look returns the quotas that cover a namespace.
func (h *Handler) look(
	ctx context.Context, question webhookconfig.Question, namespace string, action admission.Action,
) (namespaces.Covered, error) {
	switch action.Look {
	case admission.Namespace:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookNamespace)
	case admission.Quotas, admission.Specs:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookQuotas)
	case admission.Everywhere:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookEverywhere)
	case admission.Begin, admission.Memory:
	}
	return h.Coverage.Covering(ctx, question, namespace, action.AtLeast)
}

// quotas returns the facts of quotas. A dry run writes nothing, whether or not a ledger can be written.
func (h *Handler) quotas(covered namespaces.Covered, attributes kubeadmission.Attributes) []admission.Quota {
	quotas := make([]admission.Quota, 0, len(covered.Definitions))
	for i := range covered.Definitions {
		limits, admits := &covered.Definitions[i].Limits, covered.Definitions[i].Enforcement.AdmitsUnavailable(h.AdmitByDefault)
		quotas = append(quotas, admission.Quota{
			Name: limits.Name, Basis: limits.Basis, Advisory: limits.Advisory, AdmitsUnwritten: admits && !attributes.IsDryRun(),
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
