// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// countWait is how long a request waits for a quota that is being counted.
	countWait = 3 * time.Second
	// countPoll is how often it looks.
	countPoll = 50 * time.Millisecond
	// admitWait is how long a request waits for a quota that can't decide and refuses nothing.
	admitWait = 500 * time.Millisecond
	// admitWithin is how long a request waits in all if nothing is refused in its namespace: a little longer than
	// package driver waits for the ledgers.
	admitWithin = 1200 * time.Millisecond
)

// outcome is a decision, or why there is none.
type outcome struct {
	decision ledger.Decision
	err      error
	// covered is what covers the namespace, and amounts are what is charged.
	covered namespaces.Covered
	amounts []evaluation.Charge
	// passedOver says of quotas that they couldn't decide, let the request pass, and aren't charged.
	passedOver []ledger.Remark
}

// waiver names quotas that can't decide and let the request pass. Of some, the judgement is waived, and of others the
// charge, because their ledgers can't hold it.
type waiver struct{ judgement, charge map[string]bool }

type waives interface {
	of(limits ledger.Limits) admission.Waived
}

func (w waiver) of(limits ledger.Limits) admission.Waived {
	switch {
	case w.charge[limits.Name]:
		return admission.Entirely
	case w.judgement[limits.Name]:
		return admission.Judgement
	}
	return 0
}

// decideInTime decides. If nothing can come of it but that the request is admitted, that doesn't take long, however slowly
// the API server answers. What is learned meanwhile counts: a quota that was set to Deny gets the whole time.
func (h *Handler) decideInTime(
	ctx context.Context, question webhookconfig.Question, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
) outcome {
	if !question.Admits || !h.refusesNothing(request.Namespace) {
		return h.decide(ctx, question, request, attributes)
	}
	bounded, cancel := context.WithTimeout(ctx, admitWithin)
	defer cancel()
	decided := h.decide(bounded, question, request, attributes)
	undecided, isUndecided := decided.decision.(ledger.Undecided)
	switch late := bounded.Err() != nil && ctx.Err() == nil && (decided.err != nil || isUndecided); {
	case !late:
		return decided
	case !h.refusesNothing(request.Namespace):
		return h.decide(ctx, question, request, attributes)
	case decided.err == nil:
		decided.err = fmt.Errorf("waiting for quota %s: %w", undecided.Quota, context.Cause(bounded))
	}
	return decided
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

// decide charges the request. It looks first at what is known in memory. An
// answer other than yes, which may rest on something outdated, is given only
// after a look at what the API server has now; and what is about to be known,
// such as usage that is being counted, is waited for briefly.
func (h *Handler) decide(
	ctx context.Context, question webhookconfig.Question, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
) outcome {
	covered, err := h.Coverage.Covering(ctx, question, request.Namespace, 0)
	if err != nil {
		return outcome{err: err}
	}
	first := h.charge(ctx, request, attributes, covered, waiver{})
	if first.granted() || isNative(first.err) || isTaken(first.err) {
		return first
	}
	return h.passOver(ctx, request, attributes, question, h.decideAgain(ctx, request, attributes, question, first, waiver{}))
}

// passOver charges the request though quotas can't decide that let it pass then. What the others answer is looked at again,
// as any first answer is.
func (h *Handler) passOver(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes, question webhookconfig.Question, last outcome,
) outcome {
	var passed []ledger.Remark
	waived := waiver{judgement: map[string]bool{}, charge: map[string]bool{}}
	for {
		remark, is := h.passable(ctx, attributes, last)
		if !is || waived.charge[remark.Quota] || ctx.Err() != nil {
			last.passedOver = last.covering(passed)
			return last
		}
		// The mode may be another one by now.
		again, err := h.Coverage.CoveringNow(ctx, question, request.Namespace, namespaces.LookQuotas)
		if err != nil {
			return outcome{err: err}
		}
		if !sameLimits(last.covered.Definitions, again.Definitions) {
			last = h.decideAgain(ctx, request, attributes, question, h.charge(ctx, request, attributes, again, waived), waived)
			continue
		}
		if !remark.Unchecked && !waived.judgement[remark.Quota] {
			waived.judgement[remark.Quota] = true
		} else {
			passed, waived.charge[remark.Quota] = append(passed, remark), true
		}
		last = h.charge(ctx, request, attributes, last.covered, waived)
		if last.isToBeDecidedAgain() {
			last = h.decideAgain(ctx, request, attributes, question, last, waived)
		}
	}
}

// passable returns what there is to say of a quota that couldn't decide, if it lets the request pass then.
func (h *Handler) passable(ctx context.Context, attributes kubeadmission.Attributes, last outcome) (ledger.Remark, bool) {
	undecided, may := last.mayPassOver()
	if may {
		return ledger.Remark{Quota: undecided.Quota, Refusal: undecided}, true
	}
	if err := h.whyUncounted(ctx, attributes, last); err != nil {
		undecided.Reason, undecided.Detail = ledger.Unavailable, err.Error()
		return ledger.Remark{Quota: undecided.Quota, Unchecked: true, Refusal: undecided}, true
	}
	return ledger.Remark{}, false
}

// whyUncounted returns an error if a quota that admits requests while nobody can decide isn't counted because its ledger
// can't be written: what would be settled is the leader's count, so nobody who only judges notices. A dry run writes nothing.
func (h *Handler) whyUncounted(ctx context.Context, attributes kubeadmission.Attributes, last outcome) error {
	undecided, _ := last.decision.(ledger.Undecided)
	if !last.isUndecided(ledger.NotCounted) && !last.isUndecided(ledger.NotJoined) || attributes.IsDryRun() ||
		!named(last.covered.Definitions, undecided.Quota).Enforcement.AdmitsUnavailable(h.AdmitByDefault) {
		return nil
	}
	err := h.Charger.Check(ctx, undecided.Quota)
	if errors.Is(err, machine.ErrStore) || errors.Is(err, machine.ErrUnreadable) {
		return err
	}
	return nil
}

// mayPassOver reports whether a quota that would refuse nothing couldn't decide.
func (o outcome) mayPassOver() (ledger.Undecided, bool) {
	undecided, isUndecided := o.decision.(ledger.Undecided)
	return undecided, o.err == nil && isUndecided && undecided.Unenforced &&
		named(o.covered.Definitions, undecided.Quota).Limits.Advisory
}

// isToBeDecidedAgain reports whether the outcome may rest on something outdated.
func (o outcome) isToBeDecidedAgain() bool {
	_, may := o.mayPassOver()
	return !may && !o.granted() && !isNative(o.err) && !isTaken(o.err)
}

// covering returns what there is to say of those quotas that were passed over and still cover the namespace.
func (o outcome) covering(passed []ledger.Remark) []ledger.Remark {
	return slices.DeleteFunc(passed, func(remark ledger.Remark) bool {
		return !slices.ContainsFunc(o.covered.Definitions, func(d definition.Definition) bool { return d.Quota.Name == remark.Quota })
	})
}

// decideAgain charges the request again after each look that may lead to another
// outcome, until one is certain or its patience ends. Patience is for what needs time. What
// the replica has not seen, a look shows, however long that takes. The waiver stays as it is.
func (h *Handler) decideAgain(
	ctx context.Context, request *admissionv1.AdmissionRequest, attributes kubeadmission.Attributes,
	question webhookconfig.Question, last outcome, waived waiver,
) outcome {
	patience, waited := h.Clock.Now().Add(last.patience()), false
	for ctx.Err() == nil {
		again, err := h.lookAgain(ctx, question, request.Namespace, last)
		if err != nil {
			return outcome{err: err}
		}
		if last.restsOnLimits() && sameLimits(last.covered.Definitions, again.Definitions) {
			return last
		}
		if waited && last.isUndecided(ledger.NotJoined) {
			again.Ask()
		}
		last = h.charge(ctx, request, attributes, again, waived)
		if last.granted() || isTaken(last.err) || !last.isBehind() && h.Clock.Now().After(patience) {
			return last
		}
		if !last.restsOnLimits() {
			pause(ctx, h.Clock)
			waited = true
		}
	}
	return last
}

// lookAgain returns what covers the namespace now. What it reads live is what the
// outcome rests on:
//
//   - a request that failed for want of a quota may be covered by one that no watch
//     has shown yet;
//   - a denial has been checked against the quota's spec already. Whether the
//     namespace is still the quota's has not;
//   - what somebody else has seen of namespaces must be seen;
//   - a namespace that the ledger has not counted yet needs only time, and so does one that
//     holds too much for objects that are about to appear;
//   - anything else rests on the quotas' specs.
func (h *Handler) lookAgain(ctx context.Context, question webhookconfig.Question, namespace string, last outcome) (namespaces.Covered, error) {
	undecided, _ := last.decision.(ledger.Undecided)
	_, denied := last.decision.(ledger.Denied)
	switch {
	case isUncovered(last.err):
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookEverywhere)
	case last.err == nil && denied:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookNamespace)
	case last.isWithheld(), last.isBehind(), last.isUndecided(ledger.NotJoined):
		return h.Coverage.Covering(ctx, question, namespace, undecided.Members)
	default:
		return h.Coverage.CoveringNow(ctx, question, namespace, namespaces.LookQuotas)
	}
}

// pause lets what is under way come further, unless ctx ends first.
func pause(ctx context.Context, clock clock.Clock) {
	select {
	case <-clock.After(countPoll):
	case <-ctx.Done():
	}
}

func (o outcome) granted() bool { return o.err == nil && ledger.IsGranted(o.decision) }

// patience is how long the request waits for what needs time.
func (o outcome) patience() time.Duration {
	if _, may := o.mayPassOver(); may {
		return admitWait
	}
	return countWait
}

// isBehind reports whether the replica has yet to see what the ledger has counted.
func (o outcome) isBehind() bool { return o.isUndecided(ledger.StaleNamespaces) }

func (o outcome) isUndecided(reason ledger.Reason) bool {
	undecided, isUndecided := o.decision.(ledger.Undecided)
	return o.err == nil && isUndecided && undecided.Reason == reason
}

// restsOnLimits reports whether the same quotas lead to the same outcome again,
// however long one waits.
func (o outcome) restsOnLimits() bool {
	undecided, isUndecided := o.decision.(ledger.Undecided)
	return !o.isWithheld() && (o.err != nil || !isUndecided || undecided.Reason == ledger.InvalidSpec)
}

// isWithheld reports whether the namespace holds too much for objects that have not appeared.
func (o outcome) isWithheld() bool {
	_, withheld := o.decision.(ledger.Withheld)
	return o.err == nil && withheld
}

// isUncovered reports whether a request failed for want of a quota.
func isUncovered(err error) bool {
	refusal, ok := errors.AsType[*evaluation.Refusal](err)
	return ok && refusal.Uncovered
}

// sameLimits reports whether two looks found the same versions of the same quotas.
func sameLimits(a, b []definition.Definition) bool {
	return slices.EqualFunc(a, b, func(x, y definition.Definition) bool { return x.Limits.Basis == y.Limits.Basis })
}
