// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// The conditions are chosen here, Exceeded in exceeded.go, and Reconciling and Stalled in progress.go. Package outcomes
// has the words, and docs/conditions.md more.

// row is a condition of a ClusterResourceQuota.
type row struct {
	kind string
	// good is the status if all is well.
	good metav1.ConditionStatus
	// forced: the spec is in force only while the status is good.
	forced bool
	// decide returns the condition without its type.
	decide func(facts) metav1.Condition
}

// rows are all conditions but those of progress, in the order of the status.
func rows() []row {
	return []row{
		{quotav1.ConditionReady, metav1.ConditionTrue, true, facts.ready},
		{quotav1.ConditionEnforced, metav1.ConditionTrue, true, facts.enforced},
		{quotav1.ConditionExceeded, metav1.ConditionFalse, false, facts.exceeded},
		{quotav1.ConditionResourceUnavailable, metav1.ConditionFalse, true, facts.resourceUnavailable},
		{quotav1.ConditionProtectedSelected, metav1.ConditionFalse, false, facts.protectedSelected},
	}
}

func (f facts) conditions() []metav1.Condition {
	var conditions, unmet []metav1.Condition
	for _, row := range rows() {
		one := typed(row.kind, row.decide(f))
		conditions = append(conditions, one)
		if row.forced && one.Status != row.good {
			unmet = append(unmet, one)
		}
	}
	if progress := f.progress(unmet); progress != nil {
		conditions = append(conditions, *progress)
	}
	return conditions
}

func (f facts) ready() metav1.Condition {
	switch {
	case f.invalid != nil:
		return decided(metav1.ConditionFalse, quotav1.ReasonInvalidSpec,
			outcomes.WrongSpec.Text(f.invalid.Error()))
	case f.trouble != nil && !f.trouble.Untaken:
		return decided(metav1.ConditionFalse, quotav1.ReasonLedgerUnavailable, outcomes.LedgerUnreachable.Text(
			f.trouble.Since.UTC().Format(time.RFC3339), f.untilDecided(), f.trouble.Err))
	case !f.sealedUntil.IsZero():
		return decided(metav1.ConditionFalse, quotav1.ReasonLedgerLost, outcomes.LedgerDamaged.Text(
			f.ledger.Sealed.UTC().Format(time.RFC3339), f.untilCounted(), f.sealedUntil.UTC().Format(time.RFC3339)))
	case f.countedGeneration != f.generation:
		return decided(metav1.ConditionFalse, quotav1.ReasonCounting,
			outcomes.CountingAll.Text(f.untilCounted()))
	case len(f.uncounted) > 0:
		return decided(metav1.ConditionFalse, quotav1.ReasonCounting,
			outcomes.CountingSome.Text(join(f.uncounted), f.untilCounted()))
	case f.trouble != nil:
		return decided(metav1.ConditionFalse, quotav1.ReasonNotSettled, outcomes.CountNotTaken.Text(
			f.trouble.Since.UTC().Format(time.RFC3339), whyUntaken(f.trouble.Err), f.untilCounted()))
	default:
		return decided(metav1.ConditionTrue, quotav1.ReasonCounted,
			outcomes.CountFollows.Text())
	}
}

func whyUntaken(err error) string {
	if err == nil {
		return outcomes.WritesPending.Text()
	}
	return err.Error()
}

func (f facts) enforced() metav1.Condition {
	switch {
	case f.invalid != nil:
		return decided(metav1.ConditionFalse, quotav1.ReasonInvalidSpec, f.whileInvalid())
	case f.verdict.Enforcement == webhookconfig.Proved:
		return decided(metav1.ConditionTrue, quotav1.ReasonWebhookConfigured, f.enforcedHow())
	case f.verdict.Enforcement == webhookconfig.Edited:
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookEdited,
			outcomes.EditedBySomebody.Text(f.verdict.Edit))
	case f.verdict.Enforcement == webhookconfig.Unprovable:
		return decided(metav1.ConditionFalse, quotav1.ReasonProbeFailed, probeFailed(f.verdict.Failure))
	case f.verdict.Enforcement == webhookconfig.Unknown && f.before != nil && f.before.ObservedGeneration == f.generation:
		return *f.before // another leader knew; this one finds out within seconds
	case f.verdict.Enforcement == webhookconfig.Unproved:
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			outcomes.NotLoadedYet.Text())
	case f.verdict.Failure != "":
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			outcomes.ConfigurationFails.Text(f.verdict.Failure))
	default:
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			outcomes.NotCalledYet.Text())
	}
}

// whileInvalid describes the treatment of requests while the spec is invalid.
func (f facts) whileInvalid() string {
	switch {
	case f.refusing && !f.enforcement.Refuses():
		return outcomes.InvalidAdmits.Text(f.enforcement.Mode)
	case f.refusing:
		return outcomes.InvalidRefuses.Text()
	default:
		return outcomes.InvalidLimitsNothing.Text()
	}
}

// probeFailed says why it is unknown whether requests are checked.
func probeFailed(failure string) string {
	return outcomes.ProbeFails.Text(cmp.Or(failure, outcomes.ProbeUnanswered.Text()))
}

// enforcedHow lists the restrictions of enforcement that an administrator may not
// expect.
func (f facts) enforcedHow() string {
	parts := []string{outcomes.EveryRequest.Text()}
	if f.verdict.Coverage == webhookconfig.Wide {
		parts = append(parts, outcomes.CalledElsewhere.Text())
	}
	if f.admits {
		parts = append(parts, outcomes.WhileDown.Text(f.whyAdmitted()))
	}
	return strings.Join(parts, "; ")
}

// whyAdmitted says why requests are admitted while they can't be decided, and how to change that.
func (f facts) whyAdmitted() string {
	switch {
	case !f.enforcement.Refuses():
		return outcomes.AdmitsByMode.Text(f.enforcement.Mode)
	case f.enforcement.WhenUnavailable == quotav1.UnavailableAdmit:
		return outcomes.AdmitsBySpec.Text()
	default:
		return outcomes.AdmitsByDefault.Text()
	}
}

// untilDecided describes the treatment of requests while the ledger can't be read
// or written.
func (f facts) untilDecided() string {
	if f.admits {
		return outcomes.AdmittedUnchecked.Text()
	}
	return "refused"
}

// untilCounted describes the treatment of requests until everything that they are
// judged by is counted.
func (f facts) untilCounted() string {
	if f.enforcement.Refuses() {
		return "refused"
	}
	return "admitted"
}

// protectedSelected says which of the selected namespaces no quota limits.
func (f facts) protectedSelected() metav1.Condition {
	if len(f.protected) == 0 {
		return decided(metav1.ConditionFalse, quotav1.ReasonNoneProtected,
			outcomes.NoneProtected.Text())
	}
	return decided(metav1.ConditionTrue, quotav1.ReasonProtectedNamespaces,
		outcomes.SomeProtected.Text(strings.Join(f.protected, ", ")))
}

func (f facts) resourceUnavailable() metav1.Condition {
	var reason string
	var messages []string
	if len(f.misnamed) > 0 {
		reason = quotav1.ReasonNotLimitable
		parts := make([]string, 0, len(f.misnamed))
		for _, one := range f.misnamed {
			parts = append(parts, one.String())
		}
		messages = append(messages, outcomes.LimitNothing.Text(strings.Join(parts, ", ")))
	}
	if reason == "" && len(f.problems) > 0 {
		reason = f.problems[0].Reason
	}
	messages = append(messages, sentences(f.problems)...)
	if reason == "" {
		return decided(metav1.ConditionFalse, quotav1.ReasonAllAvailable,
			outcomes.AllCountable.Text())
	}
	return decided(metav1.ConditionTrue, reason, strings.Join(messages, "; "))
}

// sentences are the messages of problems. Messages that differ only in their resources are one sentence about all of these.
func sentences(problems []Problem) []string {
	const these = "\x00"
	var order []string
	resources := map[string][]string{} // message without its resource -> the resources
	for _, problem := range problems {
		name := problem.Resource.String()
		message := strings.Replace(problem.Message, name, these, 1)
		if _, found := resources[message]; !found {
			order = append(order, message)
		}
		resources[message] = append(resources[message], name)
	}
	for i, message := range order {
		order[i] = strings.Replace(message, these, strings.Join(resources[message], ", "), 1)
	}
	return order
}

func typed(kind string, condition metav1.Condition) metav1.Condition {
	condition.Type = kind
	return condition
}

func decided(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Status: status, Reason: reason, Message: shorten(message)}
}

// maxMessage is as much as a person reads, and well below the API server's limit
// (32768 bytes).
const maxMessage = 4096

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " …"
}

func join(names []corev1.ResourceName) string {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, string(name))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
