// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// name is that of the workload that is judged, or of the subject.
func (d *diagnosis) name() string {
	if d.link.Object == nil {
		return d.Subject.Kind.Kind + "/" + d.Subject.Name
	}
	return d.link.Kind.Kind + "/" + d.link.Object.GetName()
}

// summary is the answer in a sentence.
func (d *diagnosis) summary(found *render.Why) string {
	latest, _ := d.latest()
	switch found.Cause {
	case render.NotRefused:
		return d.notRefused(found.Pods)
	case render.FitsNow:
		return d.lack() + ", and there is room now: " + d.retry(found, latest) + "."
	case render.QuotaShort:
		return d.lack() + ": " + shortText(found.Quotas) + "."
	case render.QuotaRefused:
		return d.lack() + ": " + d.quotaRefused(latest) + "."
	case render.OtherRefused:
		summary := d.lack() + ": something else than a quota refuses it: " + strings.TrimSuffix(d.otherText(latest), ".") + "."
		if short := shortText(found.Quotas); short != "" {
			summary += " Besides, " + short + "."
		}
		return summary
	default:
		return d.untold(found.Quotas)
	}
}

// untold says what can't be told, and why.
func (d *diagnosis) untold(quotas []render.WhyQuota) string {
	name, unseen := d.unseen()
	uncounted := slices.IndexFunc(quotas, isUncounted)
	switch {
	case d.unknown != "":
		return "It can't be told whether anything is refused: " + d.unknown + "."
	case uncounted >= 0:
		return d.lack() + ", and what is left can't be told: " + quotas[uncounted].Quota + " isn't counted yet; ask again in a moment."
	case d.lacksQuotas():
		return d.lack() + ", and what is left can't be told: you may not read the quota."
	case unseen && d.makes:
		return d.lack() + ": refused by quota " + name + ", which this command can't see."
	case unseen:
		return d.lack() + " by quota " + name + ", which this command can't see."
	case d.demand.Unpriced != "":
		return d.lack() + ", and it can't be told whether that fits: " + d.demand.Unpriced + "."
	case d.demand.Unsure:
		return d.lack() + ", and it can't be told whether that fits: more may be there, or be freed by older pods, than statuses say."
	}
	return d.lack() + ", and it can't be told whether they are refused: you may not read events."
}

// lack says what is missing.
func (d *diagnosis) lack() string {
	switch {
	case len(d.Chain) == 0:
		return d.name() + " doesn't exist, because it was refused"
	case !d.makes:
		return d.name() + " exists, and an object that is made for it is refused"
	case d.isCron():
		return "The next run of " + d.name() + " doesn't fit"
	}
	var parts []string
	pods, of, others := d.missing()
	switch {
	case pods > 0 && d.replaces():
		parts = append(parts, plural(pods, "pod")+" of the new template")
	case pods > 0:
		parts = append(parts, podsText(pods, of))
	}
	for _, item := range others {
		parts = append(parts, plural(item.Count, item.Kind))
	}
	return d.name() + " lacks " + strings.Join(parts, " and ")
}

func podsText(missing, of int64) string {
	switch {
	case missing < of:
		return fmt.Sprintf("%d of its %s", missing, plural(of, "pod"))
	case of == 1:
		return "its pod"
	}
	return "all " + plural(of, "pod")
}

// notRefused says why nothing is refused.
func (d *diagnosis) notRefused(troubled []render.WhyPods) string {
	if !d.makes {
		if len(d.Chain) == 1 && reading.TemplateOf(d.Chain[0].Object) == nil {
			return "Nothing is refused: " + d.name() + " " + stateOf(d.Chain[0].Object) + d.targetText() + "."
		}
		return "Nothing is known to be refused."
	}
	if cron, ok := d.link.Object.(*batchv1.CronJob); ok {
		return "Nothing is refused: " + d.nextRun(cron) + "."
	}
	pods, of, _ := d.missing()
	switch {
	case d.lacks():
		return d.lack() + ", but no refusal is known, and there is room: " + d.otherCause(troubled) + "."
	case of == 0 || d.demand.Pods == nil:
		return "Nothing is refused: " + d.name() + " wants no more pods."
	}
	summary := "Nothing is refused: " + existing(of-pods) + " of " + d.name() + "."
	if count := troubledPods(troubled); count > 0 {
		summary += fmt.Sprintf(" No quota causes that %d of them can't run.", count)
	}
	return summary
}

// targetText goes on about what an autoscaler scales, if nobody can look at that.
func (d *diagnosis) targetText() string {
	scaler, ok := d.Chain[0].Object.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok || d.Target == reading.TargetRead {
		return ""
	}
	target := scaler.Spec.ScaleTargetRef
	return "; " + target.Kind + "/" + target.Name + " " + string(d.Target)
}

// nextRun says when a CronJob runs, if nothing is short.
func (d *diagnosis) nextRun(cron *batchv1.CronJob) string {
	switch {
	case ptr.Deref(cron.Spec.Suspend, false):
		return d.name() + " is suspended, so that no run begins"
	case len(cron.Status.Active) > 0 && cron.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent:
		return "a run of " + d.name() + " goes on, and its concurrencyPolicy lets no other one run beside it"
	}
	return "the next run of " + d.name() + " would fit now"
}

func existing(pods int64) string {
	if pods == 1 {
		return "there is the 1 pod"
	}
	return fmt.Sprintf("there are all %d pods", pods)
}

func troubledPods(troubled []render.WhyPods) int {
	count := 0
	for _, pods := range troubled {
		count += pods.Count
	}
	return count
}

// otherCause says what the controller may wait for.
func (d *diagnosis) otherCause(troubled []render.WhyPods) string {
	if d.link.Kind.Kind == "StatefulSet" && len(troubled) > 0 {
		return "a StatefulSet may wait until " + troubled[0].Example + " is ready"
	}
	return "events are kept for an hour, and its controller may be about to act"
}

// shortText is as the answer of fit: "crq/payments is short of pods: 3, requests.cpu: 1400m".
func shortText(quotas []render.WhyQuota) string {
	var texts []string
	for i := range quotas {
		if amounts := shortAmounts(&quotas[i]); len(amounts) > 0 {
			texts = append(texts, quotas[i].Quota+" is short of "+strings.Join(amounts, ", "))
		}
	}
	return strings.Join(texts, "; ")
}

func shortAmounts(quota *render.WhyQuota) []string {
	var amounts []string
	for i := range quota.Rows {
		if row := &quota.Rows[i]; row.IsShort() {
			amounts = append(amounts, string(row.Resource)+": "+row.Short.String())
		}
	}
	return amounts
}

// quotaRefused says why a quota refuses whatever is left.
func (d *diagnosis) quotaRefused(latest reading.Refused) string {
	words := latest.Words
	if len(d.all.Refusals) > 0 {
		words = reading.ParseRefusal(d.all.Refusals[0].Message)
	}
	quota := d.refuser(words)
	switch words.Reason {
	case quotav1.ReasonRequestIncomplete:
		return quota + " refuses pods that don't state " + words.Missing
	case quotav1.ReasonTooMuchInDoubt:
		return "this namespace holds too much of " + quota + " for objects that were admitted and never appeared"
	case quotav1.ReasonUsageUnknown:
		return quota + " was not counted when it was asked last"
	default:
		return "it consumes what is limited by default, and no quota covers that"
	}
}

// otherText is what refused, if it was no quota.
func (d *diagnosis) otherText(latest reading.Refused) string {
	if latest.Reason == reading.RefusedElsewhere {
		return latest.Text
	}
	for _, refusal := range d.all.Refusals {
		if words := reading.ParseRefusal(refusal.Message); words.Reason == reading.RefusedElsewhere {
			return words.Text
		}
	}
	return ""
}

// retry says when a refused request is made again.
func (d *diagnosis) retry(found *render.Why, latest reading.Refused) string {
	if len(d.Chain) == 0 {
		return "create it again"
	}
	text := "its controller tries again by itself"
	longest := longestPause(d.Maker().Kind.Kind)
	if longest > 0 {
		// Each pause is about as long as all before it together.
		pause := min(longest, max(latest.Last.Sub(latest.First), time.Second))
		if latest.Count == 0 {
			pause = longest
		}
		if left := latest.Last.Add(pause).Sub(d.meter.now); left > 0 {
			text += ", at the latest in about " + duration.HumanDuration(left)
		} else {
			text += " at any moment"
		}
	}
	if len(found.Waiting) > 0 {
		text += ", and the operator wakes it before"
	}
	return text
}

// longestPause is how long a controller waits at most before it tries again; 0 is unknown. That of Deployments gives up.
func longestPause(kind string) time.Duration {
	switch kind {
	case "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet":
		return 1000 * time.Second
	case "Job":
		return time.Minute
	default:
		return 0
	}
}
