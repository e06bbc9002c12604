// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// answer says what the situation comes to.
func (d *diagnosis) answer() (*render.Why, error) {
	found := &render.Why{
		Namespace: d.Namespace, Subject: render.ObjectName{Kind: d.Subject.Kind.Kind, Name: d.Subject.Name},
		Chain: d.chain(), Pods: d.pods(), Quotas: []render.WhyQuota{}, Waiting: []render.WhyWaiting{}, Remedies: []string{},
	}
	if d.isRefused() {
		found.Quotas = append(found.Quotas, d.quotas()...)
		found.Waiting = append(found.Waiting, d.waiting()...)
		if err := d.findLargest(found.Quotas); err != nil {
			return nil, err
		}
	}
	found.Cause = d.cause(found.Quotas)
	found.Result = string(outcomeOf(found.Cause))
	found.Summary = d.summary(found)
	found.Remedies = append(found.Remedies, d.remedies(found)...)
	found.Notes = append([]string{}, d.allNotes()...)
	return found, nil
}

// isRefused reports whether something is missing that may be refused.
func (d *diagnosis) isRefused() bool {
	switch {
	case len(d.Chain) == 0:
		return true
	case d.makes:
		return d.lacks()
	}
	pod, ok := d.Chain[0].Object.(*corev1.Pod)
	_, refused := d.latest()
	return ok && refused && pod.Status.Phase == corev1.PodPending
}

// cause weighs what was refused last and what is left now.
func (d *diagnosis) cause(quotas []render.WhyQuota) render.Cause {
	latest, refused := d.latest()
	isShort := slices.ContainsFunc(quotas, func(quota render.WhyQuota) bool { return quota.IsShort() })
	if !d.isRefused() {
		return d.unrefused()
	}
	switch {
	case refused && latest.Reason == reading.RefusedElsewhere:
		return render.OtherRefused
	case len(d.all.Refusals) > 0:
		return refusalCause(d.all.Refusals)
	case isShort && (refused || !d.demand.Unsure):
		return render.QuotaShort
	case refused && refusesRegardless(latest):
		return render.QuotaRefused
	case isShort, slices.ContainsFunc(quotas, isUncounted), d.isBlind():
		return render.NotCounted
	case !refused:
		return render.NotRefused
	}
	return render.FitsNow
}

// refusesRegardless reports whether a quota refused for another reason than what is left.
func refusesRegardless(refused reading.Refused) bool {
	return slices.Contains([]string{quotav1.ReasonTooMuchInDoubt, quotav1.ReasonUsageUnknown, reading.NotCovered}, refused.Reason)
}

// unrefused is the cause if nothing is missing that may be refused.
func (d *diagnosis) unrefused() render.Cause {
	if d.unknown != "" {
		return render.NotCounted
	}
	return render.NotRefused
}

// isBlind reports whether something may be refused, or was refused, that the user can't see.
func (d *diagnosis) isBlind() bool {
	_, unseen := d.unseen()
	_, refused := d.latest()
	return unseen || d.demand.Unpriced != "" || !refused && (d.lacksQuotas() || d.lacksEvents())
}

func (d *diagnosis) lacksEvents() bool { return slices.Contains(d.Forbidden, "events") }

// lacksQuotas reports whether a quota may be there that the user may not read.
func (d *diagnosis) lacksQuotas() bool {
	return slices.Contains(d.Forbidden, viewResource) || slices.Contains(d.Forbidden, "resourcequotas")
}

// refusalCause tells a quota that refuses an object as such from a LimitRange.
func refusalCause(refusals []fitting.Refusal) render.Cause {
	for _, refusal := range refusals {
		if reading.ParseRefusal(refusal.Message).Reason == reading.RefusedElsewhere {
			return render.OtherRefused
		}
	}
	return render.QuotaRefused
}

func outcomeOf(cause render.Cause) fitting.Outcome {
	switch cause {
	case render.NotRefused, render.FitsNow:
		return fitting.Fits
	case render.NotCounted:
		return fitting.Unknown
	default:
		return fitting.DoesNot
	}
}

// chain returns the links with the refusals of each.
func (d *diagnosis) chain() []render.WhyLink {
	if len(d.Chain) == 0 {
		return []render.WhyLink{{
			ObjectName: render.ObjectName{Kind: d.Subject.Kind.Kind, Name: d.Subject.Name},
			State:      "doesn't exist", Refusals: d.refusals(0),
		}}
	}
	links := make([]render.WhyLink, 0, len(d.Chain))
	for i, link := range d.Chain {
		made := render.WhyLink{
			ObjectName: render.ObjectName{Kind: link.Kind.Kind, Name: link.Object.GetName()},
			State:      stateOf(link.Object), Woken: woken(link),
		}
		if d.isRefused() {
			made.Refusals = d.refusals(i)
		}
		links = append(links, made)
	}
	return links
}

func (d *diagnosis) refusals(link int) []render.WhyRefusal {
	made := make([]render.WhyRefusal, 0, len(d.refused[link]))
	for _, refused := range d.refused[link] {
		refusal := render.WhyRefusal{
			Reason: refused.Reason, Message: refused.Text, Count: refused.Count,
			First: metav1.NewTime(refused.First), Last: metav1.NewTime(refused.Last),
		}
		if refused.Quota != "" {
			refusal.Quota = d.refuser(refused.Words)
		}
		made = append(made, refusal)
	}
	return made
}

// pods returns those of the subject's pods that exist and aren't ready, the most frequent state first.
func (d *diagnosis) pods() []render.WhyPods {
	owners := d.owners()
	found := []render.WhyPods{}
	for i := range d.Pods {
		pod := &d.Pods[i]
		controller := metav1.GetControllerOf(pod)
		if controller == nil {
			continue
		}
		if _, own := owners[controller.UID]; !own {
			continue
		}
		state, message, troubled := podTrouble(pod)
		if !troubled {
			continue
		}
		at := slices.IndexFunc(found, func(known render.WhyPods) bool { return known.State == state && known.Message == message })
		if at < 0 {
			found = append(found, render.WhyPods{State: state, Message: message, Count: 1, Example: pod.Name})
			continue
		}
		found[at].Count++
	}
	slices.SortStableFunc(found, func(a, b render.WhyPods) int { return b.Count - a.Count })
	return found[:min(mostStates, len(found))]
}

// mostStates is how many states of pods are told.
const mostStates = 5

func (d *diagnosis) allNotes() []string {
	notes := d.notes
	if d.makes {
		notes = append(notes, unreadNotes(d.Unread, question{demands: []fitting.Demand{d.demand}, limits: d.limits})...)
	}
	for _, resource := range d.Forbidden {
		if note := forbiddenNote(resource, d.Namespace); note != "" {
			notes = append(notes, note)
		}
	}
	if d.Limits.NotInstalled {
		notes = append(notes, notInstalledNote)
	}
	return notes
}
