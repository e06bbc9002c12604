// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// name is that of the workload that is judged, or of the subject.
func (d *diagnosis) name() string {
	if d.link == nil {
		return d.Subject.Kind + "/" + d.Subject.Name
	}
	return nameOf(d.link).String()
}

func nameOf(object client.Object) render.ObjectName {
	return render.ObjectName{Kind: reading.KindOf(object).Kind, Name: object.GetName()}
}

// untold names the unknown part of the answer, and the reason.
func (d *diagnosis) untold(quotas []render.WhyQuota) string {
	name, unseen := d.unseen()
	uncounted := slices.IndexFunc(quotas, render.WhyQuota.IsUncounted)
	switch {
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

// lack names the missing objects.
func (d *diagnosis) lack() string {
	switch {
	case len(d.Chain) == 0:
		return d.name() + " doesn't exist, because it was refused"
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

// notRefused says why nothing is refused, and names the obstacle.
func (d *diagnosis) notRefused(found *render.Why) string {
	if cron, ok := d.link.(*batchv1.CronJob); ok && d.makes {
		return "Nothing is refused: " + d.nextRun(cron) + "."
	}
	if d.demand.Pods == nil {
		last := &found.Chain[len(found.Chain)-1]
		if text := d.warn(last.ObjectName); text != "" && len(found.Pods) == 0 {
			last.State += "; the latest warning is " + text
		}
		return "Nothing is refused: " + last.String() + " " + strings.TrimSuffix(last.State, ".") + d.targetText() + "."
	}
	pods, of, _ := d.missing()
	if of == 0 {
		return "Nothing is refused: " + d.name() + " wants no more pods."
	}
	summary := "Nothing is refused: " + existing(of-pods) + " of " + d.name() + "."
	if count := troubledPods(found.Pods); count > 0 {
		summary += fmt.Sprintf(" No quota causes that %d of them can't run: %s.", count, strings.TrimSuffix(found.Pods[0].Text(), "."))
	}
	return summary
}

// targetText goes on about an autoscaler's target, if it can't be looked at.
func (d *diagnosis) targetText() string {
	scaler, ok := d.Chain[0].(*autoscalingv2.HorizontalPodAutoscaler)
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

// otherCause names a possible reason for the controller to wait.
func (d *diagnosis) otherCause(troubled []render.WhyPods) string {
	if reading.KindOf(d.link).Kind == "StatefulSet" && len(troubled) > 0 {
		return "a StatefulSet may wait until " + troubled[0].Example + " is ready"
	}
	return "events are kept for an hour, and its controller may be about to act"
}

// shortText is as the answer of fit: "crq/payments is short of pods: 3, requests.cpu: 1400m".
func shortText(quotas []render.WhyQuota) string {
	var texts []string
	for i := range quotas {
		if amounts := shortAmounts(&quotas[i], (*render.WhyRow).IsShort); len(amounts) > 0 {
			texts = append(texts, quotas[i].Quota+" is short of "+strings.Join(amounts, ", "))
		}
	}
	return strings.Join(texts, "; ")
}

// shortAmounts are those of the short resources for which this is true.
func shortAmounts(quota *render.WhyQuota, counts func(*render.WhyRow) bool) []string {
	var amounts []string
	for i := range quota.Rows {
		if row := &quota.Rows[i]; row.IsShort() && counts(row) {
			amounts = append(amounts, string(row.Resource)+": "+row.Short.String())
		}
	}
	return amounts
}

// retry says when a refused request is made again.
func (d *diagnosis) retry(found *render.Why, latest reading.Refused) string {
	if len(d.Chain) == 0 {
		return "create it again"
	}
	text := "its controller tries again by itself"
	longest := longestPause(reading.KindOf(d.Maker()).Kind)
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
	if slices.ContainsFunc(found.Waiting, func(waiting render.WhyWaiting) bool { return waiting.Woken }) {
		text += ", and the operator wakes it before"
	}
	return text
}

// longestPause is how long a controller waits at most before it tries again; 0 is unknown. That of Deployments gives up.
func longestPause(kind string) time.Duration {
	switch kind {
	case "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Pod":
		return 1000 * time.Second
	case "Job":
		return time.Minute
	default:
		return 0
	}
}

// unseenRemedies are for objects that the user may not read, and for a quota that another operator's webhook may enforce.
func (d *diagnosis) unseenRemedies() []string {
	name, unseen := d.unseen()
	switch {
	case d.lacksQuotas(), d.demand.Unsure, !unseen && d.lacksEvents():
		return []string{"Ask an administrator for the role view in namespace " + d.Namespace + ", and then ask again."}
	case !unseen:
		return nil
	}
	return []string{"Ask an administrator who enforces quota " + name + ": it is no ResourceQuota of this namespace, " +
		"and no ClusterResourceQuota of this operator that covers it."}
}

// shortRemedies names the objects to delete, and the limits to raise. Objects that hold less than is missing are no help.
func (d *diagnosis) shortRemedies(found *render.Why) []string {
	var remedies []string
	isHelp := false
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		if !quota.IsShort() {
			continue
		}
		name, shared := quota.Shared()
		native := strings.TrimPrefix(quota.Quota, string(fitting.Native)+"/")
		where, raise := "this namespace", "Raise spec.hard of ResourceQuota "+native+", or ask an administrator to"
		if shared {
			where, raise = "any namespace of the quota", "Ask an administrator to raise spec.quota.hard of ClusterResourceQuota "+name
		}
		if amounts := shortAmounts(quota, isFreeable); len(amounts) > 0 {
			remedies = append(remedies, "Delete or shrink something in "+where+" that uses "+strings.Join(amounts, ", ")+".")
		}
		isBeyond := func(row *render.WhyRow) bool { return !isFreeable(row) }
		if amounts := shortAmounts(quota, isBeyond); len(amounts) > 0 {
			remedies = append(remedies, "Shrink "+d.name()+": nothing that "+quota.Quota+" counts holds as much as it lacks of "+
				strings.Join(amounts, ", ")+".")
		}
		remedies = append(remedies, raise+": "+raised(quota)+".")
		isHeld := func(row *render.WhyRow) bool {
			return (row.Used == nil || !row.Used.IsZero()) && isFindable(row.Resource)
		}
		isHelp = isHelp || len(shortAmounts(quota, isHeld)) > 0
	}
	if isHelp {
		remedies = append(remedies, kubectl(found.Namespace, "crq", "reclaim")+" lists what holds quota and does nothing.")
	}
	return remedies
}

// isFreeable reports whether as much is used as is missing, as far as is known.
func isFreeable(row *render.WhyRow) bool { return row.Used == nil || row.Short.Cmp(*row.Used) <= 0 }

// raised are the limits with which all would fit.
func raised(quota *render.WhyQuota) string {
	var parts []string
	for i := range quota.Rows {
		if row := &quota.Rows[i]; row.IsShort() {
			hard := row.Hard.DeepCopy()
			hard.Add(*row.Short)
			parts = append(parts, fmt.Sprintf("%s to %s", row.Resource, hard.String()))
		}
	}
	return strings.Join(parts, ", ")
}

func notYetObserved(name string) string {
	return "the controller of " + name + " hasn't looked at it yet, or not since it was changed; ask again in a moment"
}

func requestsMore(name corev1.ResourceName) string {
	return fmt.Sprintf("Refused objects asked for more %s than the template says: another webhook adds to them.", name)
}

// forbiddenNote names the facts that are unknown without a right.
func forbiddenNote(resource, namespace string) string {
	may := "You may not read " + resource + " in namespace " + namespace + ": "
	switch resource {
	case "events":
		return may + "refusals are known from conditions alone."
	case "pods", "persistentvolumeclaims", "replicasets":
		return may + "statuses alone say how much is there."
	case "jobs":
		return may + "what its last run came to isn't known."
	case "resourcequotas":
		return may + "whether one of them is short isn't known."
	case viewResource:
		return may + "whether a ClusterResourceQuota is short isn't known."
	default:
		return "" // told where it matters
	}
}
