// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
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
	event := Event{
		Regarding: quotaReference(refusal.Quota, quota, refusal.Resource()), Reason: refusal.Reason, Action: admitting,
	}
	switch refusal.Reason {
	case quotav1.ReasonQuotaExceeded:
		event.Note = outcomes.QuotaRefused.Within(maxNote, refusal.Kind, refusal.Message)
	case quotav1.ReasonWouldExceed:
		event.Note = outcomes.QuotaWouldBe.Within(maxNote, refusal.Kind, refusal.Message)
	case quotav1.ReasonRequestIncomplete:
		event.Note = outcomes.QuotaIncomplete.Within(maxNote, refusal.Kind)
	case quotav1.ReasonTooMuchInDoubt:
		event.Note = outcomes.QuotaInDoubt.Within(maxNote, refusal.Kind, refusal.Quota)
	default:
		event.Note = outcomes.QuotaUnknown.Within(maxNote, refusal.Kind)
	}
	return event
}

// Short is the event of a workload that was applied, and of which not all fits now.
func Short(workload corev1.ObjectReference, message string) Event {
	note := outcomes.WarningsHave.Within(maxNote, message)
	return Event{Regarding: workload, Reason: quotav1.ReasonQuotaShort, Action: applying, Note: note}
}

// refusedInView is the event of a refusal on the view in the request's namespace.
func refusedInView(view types.UID, refusal outcomes.Refusal) Event {
	args := []any{refusal.Kind, refusal.Name, refusal.Message}
	if refusal.Reason == quotav1.ReasonTooMuchInDoubt {
		args = append(args, refusal.Quota)
	}
	return Event{
		Regarding: viewReference(refusal.Namespace, refusal.Quota, view, refusal.Resource()),
		Reason:    refusal.Reason, Action: admitting, Note: inView(refusal.Reason).Within(maxNote, args...),
	}
}

// inView is the message to the owner of the namespace.
func inView(reason string) *outcomes.Message {
	switch reason {
	case quotav1.ReasonQuotaExceeded:
		return outcomes.ViewRefused
	case quotav1.ReasonWouldExceed:
		return outcomes.ViewWouldBe
	case quotav1.ReasonTooMuchInDoubt:
		return outcomes.ViewInDoubt
	case quotav1.ReasonRequestIncomplete:
		return outcomes.ViewIncomplete
	default:
		return outcomes.ViewUnknown
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
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, use.Resource), Reason: string(use.Level), Action: counting,
		Note: levelNote(use, mode, levelWords{
			near: outcomes.QuotaNear, reached: outcomes.QuotaReached, above: outcomes.QuotaAbove,
			nearMode: outcomes.QuotaNearMode, fullMode: outcomes.QuotaFullMode,
		}),
	}
}

// AdmittedUnchecked is the event of a quota whose use is above hard, because requests were admitted while they couldn't
// be decided. The message of the condition Exceeded has the amount and the advice.
func AdmittedUnchecked(quota *quotav1.ClusterResourceQuota, message string) Event {
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, ""), Reason: quotav1.EventAdmittedWhileUnavailable, Action: counting,
		Note: shortened(message),
	}
}

// shortened is the message of a condition, whose first part, a list of amounts, is cut if all is too long for an event.
func shortened(message string) string {
	amounts, advice, _ := strings.Cut(message, "; ")
	if most := maxNote - len("; …") - len(advice); len(message) > maxNote && len(amounts) > most && most > 0 {
		return strings.ToValidUTF8(amounts[:most], "") + "…; " + advice
	}
	return outcomes.ConditionHas.Within(maxNote, message)
}

// LedgerLost is the event of a quota whose ledger was deleted, edited or restored. The message is that of the condition
// Ready. The action names until when nothing is granted: two losses are two events.
func LedgerLost(quota *quotav1.ClusterResourceQuota, until time.Time, message string) Event {
	return Event{
		Regarding: quotaReference(quota.Name, quota.UID, ""), Reason: quotav1.EventLedgerLost,
		Action: sealing + until.UTC().Format(time.RFC3339), Note: outcomes.ConditionHas.Within(maxNote, message),
	}
}

// LevelReachedInView is the same on the view that a namespace has of the quota.
func LevelReachedInView(view *quotav1.LocalResourceQuota, use Use) Event {
	return Event{
		Regarding: viewReference(view.Namespace, view.Name, view.UID, use.Resource), Reason: string(use.Level), Action: counting,
		Note: levelNote(use, view.Status.Mode, levelWords{
			near: outcomes.ViewNear, reached: outcomes.ViewReached, above: outcomes.ViewAbove,
			nearMode: outcomes.ViewNearMode, fullMode: outcomes.ViewFullMode,
		}),
	}
}

// levelWords are the messages about levels for one reader. Those of modes are about quotas that refuse nothing.
type levelWords struct{ near, reached, above, nearMode, fullMode *outcomes.Message }

// levelNote describes a level, its effect, and the ways to more room. The mode is empty if requests are refused.
func levelNote(use Use, mode quotav1.EnforcementMode, words levelWords) string {
	switch {
	case mode != "" && use.Level == quotav1.LevelNearLimit:
		return words.nearMode.Within(maxNote, use.Resource, use.Used, use.Hard, mode)
	case mode != "":
		return words.fullMode.Within(maxNote, use.Resource, use.Used, use.Hard, mode)
	case use.Level == quotav1.LevelUsedAboveHard:
		return words.above.Within(maxNote, use.Resource, use.Used, use.Hard)
	case use.Level == quotav1.LevelLimitReached:
		return words.reached.Within(maxNote, use.Resource, use.Used, use.Hard)
	default:
		return words.near.Within(maxNote, use.Resource, use.Used, use.Hard)
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
