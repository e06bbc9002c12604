// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// All text of the conditions is built here, that of Exceeded in exceeded.go, and that of Reconciling and Stalled in
// progress.go. A condition that reports a problem has advice; docs/conditions.md has more.

// lookAtLog is the last resort.
const lookAtLog = "if it lasts, the log of the operator's leader says why"

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
			f.invalid.Error()+": correct the spec")
	case f.trouble != nil && !f.trouble.Untaken:
		return decided(metav1.ConditionFalse, quotav1.ReasonLedgerUnavailable, fmt.Sprintf(
			"the quota's ledger can't be read or written since %s, so what the quota limits is %s: %s: "+
				"see what makes the API server answer so, such as a missing right, "+
				"a policy or webhook that refuses the operator, or a full etcd",
			f.trouble.Since.UTC().Format(time.RFC3339), f.untilDecided(), f.trouble.Err))
	case !f.sealedUntil.IsZero():
		return decided(metav1.ConditionFalse, quotav1.ReasonLedgerLost, fmt.Sprintf(
			"the ledger was deleted, edited or restored at about %s: requests that the quota limits are %s until %s, "+
				"when all requests that were under way have succeeded or failed, and their objects are counted: "+
				"if nobody restored a backup, find out who may write QuotaLedgers, and remove that right; if it lasts longer, "+
				"the log of the operator's leader says why",
			f.ledger.Sealed.UTC().Format(time.RFC3339), f.untilCounted(), f.sealedUntil.UTC().Format(time.RFC3339)))
	case f.countedGeneration != f.generation:
		return decided(metav1.ConditionFalse, quotav1.ReasonCounting,
			"counting what the selected namespaces use: requests for what is limited are "+f.untilCounted()+
				" until that is done; wait, and "+lookAtLog)
	case len(f.uncounted) > 0:
		return decided(metav1.ConditionFalse, quotav1.ReasonCounting,
			"not counted yet: "+join(f.uncounted)+": requests for that are "+f.untilCounted()+
				" until it is; wait, and if it lasts, look at the condition ResourceUnavailable, and at the log of the operator's leader")
	case f.trouble != nil:
		return decided(metav1.ConditionFalse, quotav1.ReasonNotSettled, fmt.Sprintf(
			"the quota's ledger has not taken the count since %s: %s: what is deleted makes no room, and requests may be %s "+
				"because usage is unknown: see what refuses the operator's writes, such as a policy or webhook",
			f.trouble.Since.UTC().Format(time.RFC3339), whyUntaken(f.trouble.Err), f.untilCounted()))
	default:
		return decided(metav1.ConditionTrue, quotav1.ReasonCounted,
			"usage is counted and follows every change")
	}
}

func whyUntaken(err error) string {
	if err == nil {
		return "no write of it has come to an end"
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
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookEdited, f.verdict.Edit+
			": requests that the quota limits may pass unchecked until the operator's repair lasts: "+
			"exempt the configuration from the tool that edits it, or stop that tool")
	case f.verdict.Enforcement == webhookconfig.Unprovable:
		return decided(metav1.ConditionFalse, quotav1.ReasonProbeFailed, probeFailed(f.verdict.Failure))
	case f.verdict.Enforcement == webhookconfig.Unknown && f.before != nil && f.before.ObservedGeneration == f.generation:
		return *f.before // another leader knew; this one finds out within seconds
	case f.verdict.Enforcement == webhookconfig.Unproved:
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			"the webhook configuration covers the quota, and the API server has not loaded it yet: wait, and "+lookAtLog)
	case f.verdict.Failure != "":
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			"the webhook is not called for all that is limited, because the webhook configuration can't be written: "+f.verdict.Failure+
				": correct what the error names; the operator tries again each second")
	default:
		return decided(metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			"the webhook is not called yet for every resource that is limited, in every namespace that is selected: wait, and "+lookAtLog)
	}
}

// whileInvalid describes the treatment of requests while the spec is invalid.
func (f facts) whileInvalid() string {
	switch {
	case f.refusing && !f.enforcement.Refuses():
		return "no request is judged, because an invalid spec doesn't say how much it allows, and none is refused, because the mode is " +
			string(f.enforcement.Mode) + ": correct the spec; the condition Ready says what is wrong"
	case f.refusing:
		return "every request for what spec.quota.hard names is refused, in the namespaces that the valid part of the selector selects, " +
			"because an invalid spec doesn't say how much it allows: correct it; the condition Ready says what is wrong"
	default:
		return "nothing is limited, because no part of the selector is valid, or Kubernetes keeps no quota on what spec.quota.hard " +
			"names: correct the spec; the condition Ready says what is wrong"
	}
}

// probeFailed says why it is unknown whether requests are checked.
func probeFailed(failure string) string {
	return "it is not known whether requests are checked, because the operator's own test request fails: " +
		cmp.Or(failure, "it gets no answer") + ": see that the API server reaches the operator's Service, and that no other webhook " +
		"or policy refuses the dry run of a QuotaLedger"
}

// enforcedHow lists the restrictions of enforcement that an administrator may not
// expect.
func (f facts) enforcedHow() string {
	parts := []string{"every request that the quota limits is checked"}
	if f.verdict.Coverage == webhookconfig.Wide {
		parts = append(parts, "the webhook is called in namespaces that are not selected too, "+
			"and requests there for what is limited need the operator: a webhook can't select by annotations, "+
			"or by selectors that are too many or too large; select by a label that several quotas share to avoid it")
	}
	if f.admits {
		parts = append(parts, "while no replica answers, requests are admitted unchecked, unless another quota of their namespace "+
			"has them refused: "+f.whyAdmitted())
	}
	return strings.Join(parts, "; ")
}

// whyAdmitted says why requests are admitted while they can't be decided, and how to change that.
func (f facts) whyAdmitted() string {
	const refuse = "set spec.enforcement.whenUnavailable to Refuse to have them refused"
	switch {
	case !f.enforcement.Refuses():
		return "the mode is " + string(f.enforcement.Mode) + "; set spec.enforcement.mode to Deny to have them refused"
	case f.enforcement.WhenUnavailable == quotav1.UnavailableAdmit:
		return "spec.enforcement.whenUnavailable is Admit; " + refuse
	default:
		return "the operator runs with --failure-policy=Ignore; " + refuse
	}
}

// untilDecided describes the treatment of requests while the ledger can't be read
// or written.
func (f facts) untilDecided() string {
	if f.admits {
		return "admitted unchecked"
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
			"no protected namespace is selected")
	}
	return decided(metav1.ConditionTrue, quotav1.ReasonProtectedNamespaces,
		"selected and counted, but never limited, so that the cluster can heal itself: "+strings.Join(f.protected, ", ")+
			"; exclude them by the selector")
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
		messages = append(messages, fmt.Sprintf(evaluation.LimitNothing, strings.Join(parts, ", ")))
	}
	for _, problem := range f.problems {
		if reason == "" {
			reason = problem.Reason
		}
		messages = append(messages, problem.Message)
	}
	if reason == "" {
		return decided(metav1.ConditionFalse, quotav1.ReasonAllAvailable,
			"every limited resource can be counted")
	}
	return decided(metav1.ConditionTrue, reason, strings.Join(messages, "; "))
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
