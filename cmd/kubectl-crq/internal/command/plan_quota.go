// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// quota says what becomes of one quota.
func (p *planner) quota(of redefinition, used usage) render.PlanQuota {
	made := render.PlanQuota{
		Quota: of.then.Name, Change: of.change(), Selector: selectorText(of.then),
		Scopes:          render.ScopesText(of.then.Spec.Quota.Scopes, of.then.Spec.Quota.ScopeSelector),
		WhenUnavailable: quotav1.UnavailableRefuse, NamespacesKnown: p.namespacesKnown(),
		Namespaces: []string{}, Joining: []string{}, Leaving: []string{}, Resources: []render.PlanResource{}, Remarks: []string{},
	}
	if definition.Salvage(of.then).Enforcement.AdmitsUnavailable(p.settings.AdmitsByDefault()) {
		made.WhenUnavailable = quotav1.UnavailableAdmit
	}
	p.placeQuota(&made, of)
	for _, name := range slices.Sorted(maps.Keys(of.then.Spec.Quota.Hard)) {
		limit := planResource(of, used, name)
		made.Resources = append(made.Resources, limit)
		made.Remarks = append(made.Remarks, remarks(of, limit)...)
		if limit.Used == nil {
			made.Remarks = append(made.Remarks, fmt.Sprintf("%s: what is used is unknown until it is counted, because %s.",
				name, whyUnknown(used, p.namespacesKnown())))
		}
	}
	made.Remarks = append(made.Remarks, p.quotaRemarks(&made, of)...)
	return made
}

// placeQuota finds the namespaces. If nobody may list them, a quota with the same selector keeps those of its status.
func (p *planner) placeQuota(made *render.PlanQuota, of redefinition) {
	if p.namespacesKnown() {
		then, now := sets.New(p.selected(of.then)...), sets.New[string]()
		if of.live != nil {
			now.Insert(p.selected(of.live)...)
		}
		made.Namespaces, made.Joining, made.Leaving = sets.List(then), sets.List(then.Difference(now)), sets.List(now.Difference(then))
		return
	}
	if of.countsTheSame() {
		made.NamespacesKnown = true
		for _, slice := range of.live.Status.Namespaces {
			made.Namespaces = append(made.Namespaces, slice.Namespace)
		}
	}
}

func planResource(of redefinition, used usage, name corev1.ResourceName) render.PlanResource {
	hard := of.then.Spec.Quota.Hard[name]
	limit := render.PlanResource{
		Resource: name, Mode: definition.ModeOf(of.then.Spec, name), Hard: inFormat(hard, hard.Format), UsedFrom: render.FromNowhere,
	}
	if of.live != nil {
		if was, limited := of.live.Spec.Quota.Hard[name]; limited {
			limit.Was = ptr.To(inFormat(was, was.Format))
		}
	}
	if from, known := used.from[name]; known {
		limit.UsedFrom, limit.Used = from, ptr.To(inFormat(used.used[name], hard.Format))
		if above := used.used[name].DeepCopy(); above.Cmp(hard) > 0 {
			above.Sub(hard)
			limit.Above = ptr.To(inFormat(above, hard.Format))
		}
	}
	if of.countsTheSame() {
		if history := historyOf(of.live, name); history != nil {
			limit.Peak = ptr.To(inFormat(history.Peak.Month, hard.Format))
			if !history.Peak.At.IsZero() {
				limit.PeakAt = ptr.To(history.Peak.At)
			}
		}
	}
	return limit
}

// beyond says what becomes of requests that don't fit.
func beyond(mode quotav1.EnforcementMode) string {
	switch mode {
	case quotav1.EnforcementWarn:
		return "admitted, and whoever sends them is warned"
	case quotav1.EnforcementAudit:
		return "admitted, and noted in the API server's audit log"
	default:
		return "refused"
	}
}

// remarks say what one limit does.
func remarks(of redefinition, limit render.PlanResource) []string {
	var remarks []string
	add := func(format string, args ...any) {
		remarks = append(remarks, fmt.Sprintf("%s: "+format, append([]any{limit.Resource}, args...)...))
	}
	switch {
	case limit.Above != nil:
		add("%s more is used than the limit. What exists stays; requests for more are %s.", limit.Above, beyond(limit.Mode))
	case limit.Used != nil && limit.Used.Cmp(limit.Hard) == 0:
		add("all of the limit is used. Requests for more are %s.", beyond(limit.Mode))
	}
	if limit.Above == nil && limit.Peak != nil && limit.Peak.Cmp(limit.Hard) > 0 {
		at := ""
		if limit.PeakAt != nil {
			at = " on " + dateOf(*limit.PeakAt)
		}
		add("the peak of the last 30 days, %s%s, is above the limit.", limit.Peak, at)
	}
	if needed, some := refusedNeed(of, limit); some {
		add("%s", needed)
	}
	if tried, some := triedText(of, limit); some {
		add("%s", tried)
	}
	if limit.Was != nil {
		if was := definition.ModeOf(of.live.Spec, limit.Resource); was != limit.Mode {
			add("the mode changes from %s to %s: requests that don't fit are %s.", was, limit.Mode, beyond(limit.Mode))
		}
	}
	return remarks
}

// refusedNeed tells whether what was refused in the last thirty days would fit.
func refusedNeed(of redefinition, limit render.PlanResource) (string, bool) {
	if limit.Was == nil || !of.countsTheSame() {
		return "", false
	}
	history := historyOf(of.live, limit.Resource)
	if history == nil || history.Refused == nil || history.Refused.Month == 0 {
		return "", false
	}
	need := inFormat(neededByRefused(of.live, history), limit.Hard.Format)
	if need.Cmp(limit.Hard) > 0 {
		return fmt.Sprintf("of the %s that didn't fit in the last 30 days, the largest would have needed %s.",
			requestsText(history.Refused.Month), need.String()), true
	}
	return fmt.Sprintf("each of the %s that didn't fit in the last 30 days would have fitted.", requestsText(history.Refused.Month)), true
}

// triedText says what a trial of the very limit found.
func triedText(of redefinition, limit render.PlanResource) (string, bool) {
	if !of.countsTheSame() || of.live.Status.Trial == nil {
		return "", false
	}
	tried, some := of.live.Spec.Trial.Hard[limit.Resource]
	if !some || tried.Cmp(limit.Hard) != 0 {
		return "", false
	}
	since := dateOf(of.live.Status.Trial.Since)
	for _, refused := range of.live.Status.Trial.WouldRefuse {
		if refused.Resource == limit.Resource && refused.Requests > 0 {
			requests := requestsText(refused.Requests)
			return fmt.Sprintf("the trial of this limit would have refused %s since %s, at most.", requests, since), true
		}
	}
	return "the trial of this limit has refused nothing since " + since + ".", true
}

// quotaRemarks say what isn't about a limit that there will be.
func (p *planner) quotaRemarks(made *render.PlanQuota, of redefinition) []string {
	var remarks []string
	if made.NamespacesKnown && len(made.Namespaces) == 0 {
		remarks = append(remarks, "It selects no namespace that exists.")
	}
	if protected := sets.List(sets.New(made.Namespaces...).Intersection(sets.New(p.settings.Protected...))); len(protected) > 0 {
		remarks = append(remarks, fmt.Sprintf(
			"What is in %s is counted and never limited: the operator protects it.", strings.Join(protected, ", ")))
	}
	if len(of.then.Spec.Quota.Hard) == 0 {
		remarks = append(remarks, "It has no limit.")
	}
	if _, unlimitable := p.meter.evaluators.Resources(of.then.Spec.Quota.Hard); len(unlimitable) > 0 {
		remarks = append(remarks, fmt.Sprintf("Kubernetes keeps no quota on %s: nothing uses it.", joined(unlimitable)))
	}
	if of.live == nil {
		return remarks
	}
	var gone []corev1.ResourceName
	for _, name := range slices.Sorted(maps.Keys(of.live.Spec.Quota.Hard)) {
		if _, stays := of.then.Spec.Quota.Hard[name]; !stays {
			gone = append(gone, name)
		}
	}
	if len(gone) > 0 {
		remarks = append(remarks, fmt.Sprintf("It no longer limits %s.", joined(gone)))
	}
	return remarks
}

func joined(names []corev1.ResourceName) string {
	texts := make([]string, 0, len(names))
	for _, name := range names {
		texts = append(texts, string(name))
	}
	return strings.Join(texts, ", ")
}
