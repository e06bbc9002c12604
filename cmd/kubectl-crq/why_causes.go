// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// quotaCauses returns the reasons for which a quota refuses requests independently of its rest -> a sentence, and the
// remedy.
func quotaCauses() map[string]struct{ says, remedy string } {
	return map[string]struct{ says, remedy string }{
		quotav1.ReasonRequestIncomplete: {
			"QUOTA refuses pods that don't state MISSING",
			"State it in the pod template, or let a LimitRange in the namespace give it.",
		},
		quotav1.ReasonTooMuchInDoubt: {
			"this namespace holds too much of QUOTA for objects that were admitted and never appeared",
			"Find out what refuses objects after the quota admitted them, such as another webhook or a policy, and correct it. " +
				"Then wait until their reservations have expired, by default after a minute.",
		},
		quotav1.ReasonUsageUnknown: {
			"QUOTA was not counted when it was asked last",
			"Wait a moment. If it stays so, ask your cluster administrator to look at the quota's condition Ready.",
		},
		reading.NotCovered: {
			"it consumes what is limited by default, and no quota covers that",
			"Ask an administrator for a quota that covers it in this namespace.",
		},
	}
}

// elsewhereCause is a component that refuses besides quotas, by the words of its messages, and the remedy.
type elsewhereCause struct {
	words      *regexp.Regexp
	by, remedy string
}

// otherCauses returns them all. The first that matches counts, and the last one matches all.
func otherCauses() []elsewhereCause {
	return []elsewhereCause{
		{
			regexp.MustCompile(`violates PodSecurity "([^"]+)"`), "Pod Security",
			"Change the pod template as the message says, or ask an administrator to change the level $1 of the namespace.",
		},
		{
			regexp.MustCompile(`ValidatingAdmissionPolicy '([^']+)'`), "ValidatingAdmissionPolicy $1",
			"Do as the message of the policy says, or ask those who run it.",
		},
		{
			regexp.MustCompile(`failed calling webhook "([^"]+)"`), "webhook $1, which doesn't answer,",
			"Ask an administrator to make webhook $1 answer: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations.",
		},
		{
			regexp.MustCompile(`admission webhook "([^"]+)" denied`), "webhook $1",
			"Do as the message of the webhook says, or ask those who run it.",
		},
		{
			regexp.MustCompile(`(maximum|minimum) \S+ usage per |max limit to request ratio per |must be less than or equal to \S+ limit`),
			"a LimitRange",
			"State amounts in the pod template that the LimitRange allows, or change it: kubectl describe limitrange -n NAMESPACE.",
		},
		{
			regexp.MustCompile(`(?i)serviceaccount "([^"]+)" not found`), "the API server",
			"Create it: kubectl create serviceaccount $1 -n NAMESPACE.",
		},
		{
			regexp.MustCompile(`no PriorityClass with name \S+|RuntimeClass "[^"]+" not found`), "the API server",
			"Ask an administrator to create it, or name another one.",
		},
		{regexp.MustCompile(`being terminated`), "the API server", "Create it in another namespace: NAMESPACE is being deleted."},
		{regexp.MustCompile(`User "[^"]+" cannot`), "RBAC", "Ask an administrator for the right that the message names."},
		{regexp.MustCompile(` is invalid: `), "the API server", "Correct the field that the message names."},
		{
			regexp.MustCompile(``), "something else than a quota",
			"Do as the message says. If it doesn't say who refused, ask an administrator for the API server's log.",
		},
	}
}

// elsewhere returns the sender of a message with which no quota refused, and the remedy.
func (d *diagnosis) elsewhere(message string) (by, remedy string) {
	for _, cause := range otherCauses() {
		if at := cause.words.FindStringSubmatchIndex(message); at != nil {
			fill := func(text string) string { return string(cause.words.ExpandString(nil, text, message, at)) }
			return fill(cause.by), fill(strings.ReplaceAll(cause.remedy, "NAMESPACE", d.Namespace))
		}
	}
	return "", ""
}

// conclude adds the conclusion: the cause, the answer in a sentence, and the remedy.
func (d *diagnosis) conclude(found *render.Why) {
	words, always := d.decisive(found.Quotas)
	switch {
	case !d.lacks() && d.unknown != "":
		come(found, render.NotCounted, "It can't be told whether anything is refused: "+d.unknown+".")
	case !d.lacks():
		come(found, render.NotRefused, d.notRefused(found), d.further(found)...)
	case always && words.Reason == reading.RefusedElsewhere:
		by, remedy := d.elsewhere(words.Text)
		come(found, render.OtherRefused, d.lack()+": "+by+" refuses it: "+strings.TrimSuffix(words.Text, ".")+".", remedy)
		if slices.ContainsFunc(found.Quotas, render.WhyQuota.IsShort) {
			come(found, render.OtherRefused, found.Summary+" Besides, "+shortText(found.Quotas)+".", d.shortRemedies(found)...)
		}
	default:
		d.concludeByQuotas(found, words, always)
	}
}

// come notes a conclusion, and keeps the remedies that are noted already.
func come(found *render.Why, to render.Cause, summary string, remedies ...string) {
	found.Cause, found.Summary, found.Remedies = to, summary, append(found.Remedies, remedies...)
}

// concludeByQuotas is for missing objects that only a quota refuses.
func (d *diagnosis) concludeByQuotas(found *render.Why, words reading.Words, always bool) {
	_, refused := d.latest()
	isShort := slices.ContainsFunc(found.Quotas, render.WhyQuota.IsShort)
	regardless, known := quotaCauses()[words.Reason]
	switch {
	case !always && isShort && (refused || !d.demand.Unsure):
		come(found, render.QuotaShort, d.lack()+": "+shortText(found.Quotas)+"."+d.surgeSays(found), d.surgeRemedies(found)...)
		come(found, found.Cause, found.Summary, d.shortRemedies(found)...)
		d.concludeLater(found)
	case known && (always || refused):
		says := strings.NewReplacer("QUOTA", d.refuser(words), "MISSING", words.Missing).Replace(regardless.says)
		come(found, render.QuotaRefused, d.lack()+": "+says+".", regardless.remedy)
	case isShort, slices.ContainsFunc(found.Quotas, render.WhyQuota.IsUncounted), d.isBlind():
		come(found, render.NotCounted, d.untold(found.Quotas), d.unseenRemedies()...)
	default:
		d.concludeRoom(found)
	}
}

// concludeRoom is for objects that are missing although there is room.
func (d *diagnosis) concludeRoom(found *render.Why) {
	latest, refused := d.latest()
	switch {
	case refused:
		come(found, render.FitsNow, d.lack()+", and there is room now: "+d.retry(found, latest)+".")
	case d.isCron():
		come(found, render.NotRefused, d.notRefused(found))
	default:
		come(found, render.NotRefused, d.lack()+", but no refusal is known, and there is room: "+d.otherCause(found.Pods)+".",
			d.further(found)...)
	}
}

// decisive returns the words of the refusal that counts, and whether it holds independently of the rest.
func (d *diagnosis) decisive(quotas []render.WhyQuota) (words reading.Words, always bool) {
	latest, _ := d.latest()
	if latest.Reason == reading.RefusedElsewhere {
		return latest.Words, true
	}
	for _, refusal := range d.all.Refusals {
		parsed := reading.ParseRefusal(refusal.Message)
		if !d.isLater(refusal, quotas) && (!always || parsed.Reason == reading.RefusedElsewhere) {
			words, always = parsed, true
		}
	}
	if always {
		return words, true
	}
	return latest.Words, false
}

// isLater reports whether a refusal comes once there are pods, which a quota refused, and has no room for. The claims of
// a StatefulSet's templates come before its pods.
func (d *diagnosis) isLater(refusal fitting.Refusal, quotas []render.WhyQuota) bool {
	latest, _ := d.latest()
	if set, isSet := d.link.(*appsv1.StatefulSet); isSet && len(set.Spec.VolumeClaimTemplates) > 0 {
		return false
	}
	return latest.Reason == quotav1.ReasonQuotaExceeded && slices.ContainsFunc(quotas, render.WhyQuota.IsShort) && refusal.Refused != "Pod"
}

// concludeLater adds the refusals of claims whose pods a quota has no room for.
func (d *diagnosis) concludeLater(found *render.Why) {
	for _, refusal := range d.all.Refusals {
		if !d.isLater(refusal, found.Quotas) {
			continue
		}
		text := reading.ParseRefusal(refusal.Message).Text
		by, remedy := d.elsewhere(text)
		more := " Besides, " + by + " refuses its " + refusal.Refused + "s: " + strings.TrimSuffix(text, ".") + "."
		found.Remedies = slices.DeleteFunc(found.Remedies, func(known string) bool { return known == remedy })
		come(found, found.Cause, found.Summary+more, remedy)
	}
}

// resumes returns the command that lets a paused or suspended workload go on.
func (d *diagnosis) resumes() []string {
	name := strings.ToLower(nameOf(d.link).String())
	suspended := false
	switch workload := d.link.(type) {
	case *appsv1.Deployment:
		if workload.Spec.Paused {
			return []string{kubectl(d.Namespace, "rollout", "resume", name) + " lets it go on."}
		}
	case *batchv1.Job:
		suspended = ptr.Deref(workload.Spec.Suspend, false)
	case *batchv1.CronJob:
		suspended = ptr.Deref(workload.Spec.Suspend, false)
	}
	if !suspended {
		return nil
	}
	return []string{kubectl(d.Namespace, "patch", name, "-p", `{"spec":{"suspend":false}}`) + " lets it go on."}
}

// further are commands that say more about causes other than quotas. There is none if all is well.
func (d *diagnosis) further(found *render.Why) []string {
	look, more := nameOf(d.Maker()), []string(nil)
	switch {
	case len(found.Pods) > 0:
		look = render.ObjectName{Kind: "Pod", Name: found.Pods[0].Example}
		if found.Pods[0].State == crashLoop {
			more = []string{kubectl(d.Namespace, "logs", "pod/"+look.Name, "--previous") + " shows what it said before it ended."}
		}
	case !d.lacks() && d.makes:
		return d.resumes()
	}
	return append([]string{kubectl(d.Namespace, "describe", strings.ToLower(look.Kind)+"/"+look.Name) + " shows its events."}, more...)
}
