// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

const (
	whyShort = "Explain why a workload has no pods, and what would make it fit"
	whyLong  = `Explain why a workload has no pods, or too few: which request was refused with what message, which quota is short
of what, who holds it, whether the workload waits to be woken, and what would make it fit.

KIND is deployment, statefulset, daemonset, replicaset, job, cronjob, horizontalpodautoscaler, pod,
persistentvolumeclaim, service or replicationcontroller, or a short name of it. The right to view the namespace is
enough. If you may also read the ClusterResourceQuota, the answer names the other namespaces that hold most of it.

The exit status is 0 if nothing is refused, or would fit now; 1 if something is refused or short; and 2 if it can't
be told.`
	whyExample = `  # Why does this Deployment have no pods?
  kubectl crq why deployment/web -n shop

  # The same for a Job, a claim and an autoscaler.
  kubectl crq why job/import -n shop
  kubectl crq why pvc data-db-0 -n shop
  kubectl crq why hpa/web -n shop

  # For a script.
  kubectl crq why deploy/web -n shop -o jsonpath='{.cause}'`
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
		return d.lack() + ", and what is left can't be told: " + notCountedText(found.Quotas)
	}
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
	if pods > 0 {
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
			return "Nothing is refused: " + d.name() + " " + stateOf(d.Chain[0].Object) + "."
		}
		return "Nothing is known to be refused."
	}
	pods, of, _ := d.missing()
	switch {
	case d.isCron():
		return "Nothing is refused: the next run of " + d.name() + " would fit now."
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

func notCountedText(quotas []render.WhyQuota) string {
	for i := range quotas {
		if !isCounted(quotas[i]) {
			return quotas[i].Quota + " isn't counted yet; ask again in a moment"
		}
	}
	return "you may not read the quota"
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

// longestPause is how long a controller waits at most before it tries again; 0 is unknown.
func longestPause(kind string) time.Duration {
	switch kind {
	case "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet":
		return 1000 * time.Second
	case "Job":
		return time.Minute
	default:
		return 0
	}
}

// remedies say what would make it fit.
func (d *diagnosis) remedies(found *render.Why) []string {
	switch found.Cause {
	case render.QuotaShort, render.OtherRefused:
		return shortRemedies(found)
	case render.QuotaRefused:
		latest, _ := d.latest()
		return []string{refusedRemedy(d, latest)}
	default:
		return nil
	}
}

func shortRemedies(found *render.Why) []string {
	var remedies []string
	for i := range found.Quotas {
		quota := &found.Quotas[i]
		if !quota.IsShort() {
			continue
		}
		name, shared := quota.Shared()
		free := "Delete or shrink something in this namespace that uses " + strings.Join(shortAmounts(quota), ", ") + "."
		own := strings.TrimPrefix(quota.Quota, string(fitting.Native)+"/")
		raise := "Raise spec.hard of ResourceQuota " + own + ": " + raised(quota) + "."
		if shared {
			free = "Delete or shrink something in any namespace of the quota that uses " + strings.Join(shortAmounts(quota), ", ") + "."
			raise = "Ask an administrator to raise spec.quota.hard of ClusterResourceQuota " + name + ": " + raised(quota) + "."
		}
		remedies = append(remedies, free, raise)
	}
	if len(remedies) > 0 {
		remedies = append(remedies, fmt.Sprintf("kubectl crq reclaim -n %s lists what holds quota and does nothing.", found.Namespace))
	}
	return remedies
}

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

func refusedRemedy(d *diagnosis, latest reading.Refused) string {
	reason := latest.Reason
	if len(d.all.Refusals) > 0 {
		reason = reading.ParseRefusal(d.all.Refusals[0].Message).Reason
	}
	switch reason {
	case quotav1.ReasonRequestIncomplete:
		return "State it in the pod template, or let a LimitRange in the namespace give it."
	case quotav1.ReasonTooMuchInDoubt:
		return "Find out what refuses objects after the quota admitted them, such as another webhook or a policy. " +
			"Then wait until their reservations have expired."
	case quotav1.ReasonUsageUnknown:
		return "Wait a moment. If it stays so, the conditions of the ClusterResourceQuota say why."
	default:
		return "Ask an administrator for a quota that covers it in this namespace."
	}
}

func notYetObserved(name string) string {
	return "The controller of " + name + " hasn't looked at it yet: how many pods it wants isn't known."
}

func requestsMore(name corev1.ResourceName) string {
	return fmt.Sprintf("Refused objects asked for more %s than the template says: another webhook adds to them.", name)
}

// forbiddenNote says what can't be told without a right.
func forbiddenNote(resource, namespace string) string {
	may := "You may not read " + resource + " in namespace " + namespace + ": "
	switch resource {
	case "events":
		return may + "refusals are known from conditions alone."
	case "pods", "persistentvolumeclaims", "replicasets":
		return may + "what is there is counted as if it were to be made."
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
