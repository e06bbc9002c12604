// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// RecorderName is the reporter of all events.
const RecorderName = "shared-quota-operator"

// The operator's actions.
const (
	admitting = "Admitting"
	counting  = "Counting"
	applying  = "Applying"
	sealing   = "SealingUntil"
)

// maxNote is the longest note that the API server takes, in bytes.
const maxNote = 1024

// Recorder is where events go.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Event is the input of a recorder.
type Event struct {
	Regarding            corev1.ObjectReference
	Reason, Action, Note string
}

// Record has the recorder write the event, which it does later.
func (e Event) Record(recorder Recorder) {
	recorder.Eventf(&e.Regarding, nil, corev1.EventTypeWarning, e.Reason, e.Action, "%s", e.Note)
}

// refused is the event of a refusal on the quota. It is in the namespace default
// and names no namespace and no object, because its reader there may belong to
// another tenant.
func refused(quota types.UID, refusal outcomes.Refusal) Event {
	did, what := "refused", refusal.Message
	next := "; delete unneeded objects in the namespaces that share the quota, or raise spec.quota.hard"
	switch refusal.Reason {
	case quotav1.ReasonQuotaExceeded:
	case quotav1.ReasonWouldExceed:
		did = "admitted"
		next = "; with the mode Deny it would be refused: the metric sharedquota_admission_would_refuse_total counts such requests"
	case quotav1.ReasonRequestIncomplete:
		what, next = "a request must state all that the quota limits", moreInViews
	case quotav1.ReasonTooMuchInDoubt:
		what = "too many requests of one namespace failed after they were admitted, so that it may hold no more"
		next = "; status.doubtful of the quota names it, and kubectl crq reservations the objects"
	default:
		what, next = "what is used of the quota is not known", moreInViews
	}
	return Event{
		Regarding: quotaReference(refusal.Quota, quota, refusal.Resource()), Reason: refusal.Reason, Action: admitting,
		Note: note(fmt.Sprintf("%s %s: %s", did, refusal.Kind, what), next),
	}
}

// Short is the event of a workload that was applied, and of which not all fits now.
func Short(workload corev1.ObjectReference, message string) Event {
	return Event{Regarding: workload, Reason: quotav1.ReasonQuotaShort, Action: applying, Note: note(message, "")}
}

const moreInViews = "; the events of the local views, in their namespaces, say more"

// refusedInView is the event of a refusal on the view in the request's namespace.
func refusedInView(view types.UID, refusal outcomes.Refusal) Event {
	did := "refused"
	if refusal.Reason == quotav1.ReasonWouldExceed {
		did = "admitted"
	}
	return Event{
		Regarding: viewReference(refusal.Namespace, refusal.Quota, view, refusal.Resource()),
		Reason:    refusal.Reason, Action: admitting,
		Note: note(fmt.Sprintf("%s %s %q: %s", did, refusal.Kind, refusal.Name, refusal.Message), afterRefusal(refusal.Reason)),
	}
}

// afterRefusal is the advice for the owner of the namespace. It is empty for
// unknown usage, because its message has the advice already.
func afterRefusal(reason string) string {
	switch reason {
	case quotav1.ReasonQuotaExceeded:
		return "; used is what all namespaces that share the quota use: delete unneeded objects, " +
			"or ask the cluster's administrator for a higher limit"
	case quotav1.ReasonWouldExceed:
		return "; the quota only watches so far: with the mode Deny it would be refused"
	case quotav1.ReasonTooMuchInDoubt:
		return "; ask the cluster's administrator for the list: kubectl crq reservations"
	case quotav1.ReasonRequestIncomplete:
		return "; state it in the object, or let a LimitRange in the namespace give it"
	default:
		return ""
	}
}

// Use is how much of a resource is used.
type Use struct {
	Resource   corev1.ResourceName
	Level      quotav1.Level
	Used, Hard string
}

// UseOf returns how much of a resource is used in total.
func UseOf(resource corev1.ResourceName, level quotav1.Level, total corev1.ResourceQuotaStatus) Use {
	used, hard := total.Used[resource], total.Hard[resource]
	return Use{Resource: resource, Level: level, Used: used.String(), Hard: hard.String()}
}

// LevelReached is the event of a quota whose use has come near its limit, reached
// it, or is above it.
func LevelReached(quota *quotav1.ClusterResourceQuota, use Use) Event {
	var mode quotav1.EnforcementMode
	if enforcement := definition.EnforcementOf(quota.Spec); !enforcement.Refuses() {
		mode = enforcement.Mode
	}
	next := afterLevel(use.Level, mode, "delete unneeded objects, or raise spec.quota.hard")
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, use.Resource), Reason: string(use.Level), Action: counting,
		Note: note(fmt.Sprintf("%s: used %s, hard %s", use.Resource, use.Used, use.Hard), "; "+next),
	}
}

// AdmittedUnchecked is the event of a quota whose use is above hard, because requests were admitted while they couldn't
// be decided. The message of the condition Exceeded has the amount and the advice.
func AdmittedUnchecked(quota *quotav1.ClusterResourceQuota, message string) Event {
	what, next, _ := strings.Cut(message, "; ")
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, ""), Reason: quotav1.EventAdmittedWhileUnavailable, Action: counting,
		Note: note(what, "; "+next),
	}
}

// LedgerLost is the event of a quota whose ledger was deleted, edited or restored. The message is that of the condition
// Ready. The action names until when nothing is granted: two losses are two events.
func LedgerLost(quota *quotav1.ClusterResourceQuota, until time.Time, message string) Event {
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, ""), Reason: quotav1.EventLedgerLost,
		Action: sealing + until.UTC().Format(time.RFC3339), Note: note(message, ""),
	}
}

// LevelReachedInView is the same on the view that a namespace has of the quota.
func LevelReachedInView(view *quotav1.LocalResourceQuota, use Use) Event {
	next := afterLevel(use.Level, view.Status.Mode, "delete unneeded objects, or ask the cluster's administrator for a higher limit")
	return Event{
		Regarding: viewReference(view.Namespace, view.Name, view.UID, use.Resource), Reason: string(use.Level), Action: counting,
		Note: note(fmt.Sprintf("%s: used %s by all namespaces that share the quota, hard %s", use.Resource, use.Used, use.Hard), "; "+next),
	}
}

// afterLevel describes the effect of a level, and the ways to more room. The mode is empty if requests are refused.
func afterLevel(level quotav1.Level, mode quotav1.EnforcementMode, room string) string {
	switch {
	case mode != "" && level == quotav1.LevelNearLimit:
		return fmt.Sprintf("requests that go beyond it are admitted, because the mode is %s", mode)
	case mode != "":
		return fmt.Sprintf("requests for more are admitted, because the mode is %s", mode)
	case level == quotav1.LevelUsedAboveHard:
		return "nothing is removed, and requests for more are refused: " + room
	case level == quotav1.LevelLimitReached:
		return "requests for more are refused: " + room
	default:
		return room + ", before requests are refused"
	}
}

// References have no version of the object: each version would begin a series of
// its own.

func quotaReference(name string, uid types.UID, resource corev1.ResourceName) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota", Name: name, UID: uid,
		FieldPath: path("spec.quota.hard", resource),
	}
}

func viewReference(namespace, name string, uid types.UID, resource corev1.ResourceName) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: quotav1.GroupVersion.String(), Kind: "LocalResourceQuota", Namespace: namespace, Name: name, UID: uid,
		FieldPath: path("status.total.hard", resource),
	}
}

func path(field string, resource corev1.ResourceName) string {
	if resource == "" {
		return ""
	}
	return field + "{" + string(resource) + "}"
}

// note shortens the event's description if it must, but not the advice.
func note(what, next string) string {
	const ellipsis = " …"
	if len(what)+len(next) > maxNote {
		what = strings.ToValidUTF8(what[:maxNote-len(next)-len(ellipsis)], "") + ellipsis
	}
	return what + next
}
