// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

const (
	day       = 24 * time.Hour
	weekDays  = 7
	monthDays = 30
)

// recommendation returns the least limits by which nothing of the last thirty days would have been refused.
func recommendation(quota *quotav1.ClusterResourceQuota, now time.Time) render.Recommendation {
	made := render.Recommendation{
		Quota: quota.Name, HistorySince: quota.Status.HistorySince, Confidence: render.NoHistory,
		Resources: []render.RecommendedLimit{}, Notes: []string{},
	}
	if since := quota.Status.HistorySince; since != nil {
		made.Days = min(int(max(0, now.Sub(since.Time))/day), monthDays)
		made.Confidence = confidenceOf(made.Days)
	}
	for _, name := range slices.Sorted(maps.Keys(definition.Counted(quota.Spec))) {
		made.Resources = append(made.Resources, recommendedLimit(quota, name))
	}
	made.Trials = triedLimits(quota)
	made.Notes = append(made.Notes, recommendNotes(quota, &made, now)...)
	return made
}

func confidenceOf(days int) render.Confidence {
	switch {
	case days < weekDays:
		return render.UnderWeek
	case days < monthDays:
		return render.UnderMonth
	default:
		return render.FullMonth
	}
}

func recommendedLimit(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName) render.RecommendedLimit {
	limit := render.RecommendedLimit{Resource: name, Change: render.NotKnown}
	format := quota.Spec.Trial.Hard[name]
	if hard, limited := quota.Spec.Quota.Hard[name]; limited {
		limit.Hard, limit.Mode, format = ptr.To(hard), definition.ModeOf(quota.Spec, name), hard
	}
	if used, counted := quota.Status.Total.Used[name]; counted {
		limit.Used = ptr.To(inFormat(used, format.Format))
	}
	history := historyOf(quota, name)
	if history == nil || quota.Status.HistorySince == nil {
		return limit
	}
	limit.Peak = ptr.To(inFormat(history.Peak.Month, format.Format))
	if !history.Peak.At.IsZero() {
		limit.PeakAt = ptr.To(history.Peak.At)
	}
	need := history.Peak.Month
	if charged := chargedNow(quota, name); charged.Cmp(need) > 0 {
		need = charged
	}
	if history.Refused != nil && limit.Hard != nil {
		limit.Refused = history.Refused.Month
		if wanted := neededByRefused(quota, history); limit.Refused > 0 && wanted.Cmp(need) > 0 {
			need = wanted
		}
	}
	limit.Recommended = ptr.To(inFormat(need, format.Format))
	limit.Change = adviceOf(limit.Hard, need)
	return limit
}

func adviceOf(hard *resource.Quantity, need resource.Quantity) render.Change {
	switch {
	case hard == nil:
		return render.Add
	case hard.Cmp(need) == 0:
		return render.Keep
	case need.IsZero():
		return render.Unused
	case hard.Cmp(need) > 0:
		return render.Lower
	default:
		return render.Raise
	}
}

// historyOf returns nil if nothing of the resource is known.
func historyOf(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName) *quotav1.ResourceHistory {
	for i := range quota.Status.History {
		if quota.Status.History[i].Resource == name {
			return &quota.Status.History[i]
		}
	}
	return nil
}

// neededByRefused is the limit that the largest request needed of those that didn't fit. Its shortfall is relative to
// the limit when the status was written, which may be behind the spec.
func neededByRefused(quota *quotav1.ClusterResourceQuota, history *quotav1.ResourceHistory) resource.Quantity {
	hard, told := quota.Status.Total.Hard[history.Resource]
	if !told {
		hard = quota.Spec.Quota.Hard[history.Resource]
	}
	return sumOf(hard, history.Refused.Shortfall)
}

// chargedNow is what is used and reserved; zero if it isn't counted.
func chargedNow(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName) resource.Quantity {
	return sumOf(quota.Status.Total.Used[name], quota.Status.Reserved[name])
}

func sumOf(amounts ...resource.Quantity) resource.Quantity {
	sum := resource.Quantity{}
	for _, amount := range amounts {
		sum.Add(amount)
	}
	return sum
}

// inFormat returns the amount as it is written beside a limit of this format.
func inFormat(amount resource.Quantity, format resource.Format) resource.Quantity {
	written := sumOf(amount) // without the text that it was read from
	written.Format = cmp.Or(format, resource.DecimalSI)
	return written
}

func triedLimits(quota *quotav1.ClusterResourceQuota) []render.TriedLimit {
	if quota.Status.Trial == nil {
		return nil
	}
	var tried []render.TriedLimit
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Trial.Hard)) {
		hard := quota.Spec.Trial.Hard[name]
		limit := render.TriedLimit{Resource: name, Hard: hard, Since: quota.Status.Trial.Since}
		for _, refused := range quota.Status.Trial.WouldRefuse {
			if refused.Resource == name && refused.Requests > 0 {
				limit.Requests, limit.Last = refused.Requests, ptr.To(refused.Last)
				limit.Enough = ptr.To(inFormat(sumOf(hard, refused.LargestShortfall), hard.Format))
			}
		}
		tried = append(tried, limit)
	}
	return tried
}

func recommendNotes(quota *quotav1.ClusterResourceQuota, of *render.Recommendation, now time.Time) []string {
	var notes []string
	add := func(names []string, note string) {
		if len(names) > 0 {
			notes = append(notes, fmt.Sprintf(note, strings.Join(names, ", ")))
		}
	}
	notes = append(notes, confidenceText(of))
	add(namesOf(of, func(limit render.RecommendedLimit) bool {
		return limit.Change == render.NotKnown && of.Confidence != render.NoHistory
	}), "There is no history of %s yet.")
	add(namesOf(of, func(limit render.RecommendedLimit) bool { return limit.Change == render.Unused }),
		"Nobody used %s in "+daysText(of.Days)+". The patch leaves that as it is, because a limit of 0 would forbid it.")
	add(namesOf(of, func(limit render.RecommendedLimit) bool {
		return limit.Refused > 0 && limit.Mode == quotav1.EnforcementDeny
	}), "Requests for %s were refused. Each was compared with what was used then, so together they may need more.")
	for _, mode := range []quotav1.EnforcementMode{quotav1.EnforcementWarn, quotav1.EnforcementAudit} {
		add(namesOf(of, func(limit render.RecommendedLimit) bool {
			return limit.Mode == mode && limit.Recommended != nil
		}), "The mode of %s is "+string(mode)+": nothing was refused, so the peak is what was needed.")
	}
	add(namesOf(of, func(limit render.RecommendedLimit) bool { return limit.Change == render.Add }),
		"Only spec.trial limits %s. The patch doesn't add it.")
	for _, tried := range of.Trials {
		notes = append(notes, trialText(tried))
	}
	for _, change := range quota.Status.Changes {
		if change.Field == "selector" && now.Sub(change.At.Time) < monthDays*day {
			notes = append(notes, "The selector was changed on "+change.At.UTC().Format(time.DateOnly)+
				": figures from before are of other namespaces.")
			break
		}
	}
	return notes
}

func namesOf(of *render.Recommendation, wanted func(render.RecommendedLimit) bool) []string {
	var names []string
	for _, limit := range of.Resources {
		if wanted(limit) {
			names = append(names, string(limit.Resource))
		}
	}
	return names
}

func confidenceText(of *render.Recommendation) string {
	switch of.Confidence {
	case render.NoHistory:
		return "There is no history yet, so nothing is recommended."
	case render.UnderWeek:
		return "The history has " + daysText(of.Days) +
			", too little to follow. Wait for a week at least: what runs once a week may be missing."
	case render.UnderMonth:
		return "The history has " + daysText(of.Days) + ", less than a month: what runs once a month may be missing."
	default:
		return "The history has the last 30 days."
	}
}

func daysText(days int) string {
	switch days {
	case 0:
		return "less than a day"
	case 1:
		return "1 day"
	default:
		return fmt.Sprintf("%d days", days)
	}
}

func trialText(of render.TriedLimit) string {
	since := dateOf(of.Since)
	if of.Requests == 0 {
		return fmt.Sprintf("The trial of %s: %s has refused nothing since %s.", of.Resource, of.Hard.String(), since)
	}
	return fmt.Sprintf("The trial of %s: %s would have refused %s since %s, at most, the last on %s; %s would have refused none of them.",
		of.Resource, of.Hard.String(), requestsText(of.Requests), since, dateOf(*of.Last), of.Enough.String())
}

func requestsText(count int64) string {
	if count == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", count)
}

func dateOf(at metav1.Time) string { return at.UTC().Format(time.DateOnly) }
