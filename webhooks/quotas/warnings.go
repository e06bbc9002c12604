// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// findings are the remarks. An empty field is nothing.
type findings struct {
	// idleSelector selects no namespace.
	idleSelector string
	// largeSelector is how large the selector is, if it is large.
	largeSelector string
	// above is the use above limits, as in "pods by 2 (3/1)".
	above []string
	// limitNothing are names that limit nothing, with their corrections if known.
	limitNothing []string
	// unserved names count resources that the cluster doesn't serve.
	unserved []string
	// protected namespaces are selected.
	protected []string
	// openShift has a quota of the same name that selects these namespaces too.
	openShift []string
	// belowPeak are the limits below the highest use, as in "pods: 30/20".
	belowPeak []string
	// unknown couldn't be found out.
	unknown []string
	// overlaps are other quotas that limit the same, as in "search (pods in 2 namespaces)".
	overlaps []string
	// mode is the quota's; newMode is true if the request sets it and its meaning
	// must be shown.
	mode    quotav1.EnforcementMode
	newMode bool
	// selected are all selected namespaces.
	selected []string
}

// maxWarnings is how many warnings are returned.
const maxWarnings = 10

// warnings returns a line for each finding, the worst first. If there are more than maxWarnings, the last ones are left out.
func (f *findings) warnings() admission.Warnings {
	var warnings admission.Warnings
	// say takes the items that are named in the place of %s.
	say := func(items []string, message *outcomes.Message, before ...any) {
		if len(items) > 0 {
			room := webhookconfig.MaxWarning - len(message.Text(append(before, "")...))
			warnings = append(warnings, message.Text(append(before, list(items, room))...))
		}
	}
	if f.idleSelector != "" {
		say([]string{f.idleSelector}, outcomes.SelectsNothing)
	}
	say(f.above, f.belowUse())
	say(f.limitNothing, outcomes.LimitNothing)
	say(f.unserved, outcomes.ServedNowhere)
	say(f.protected, outcomes.SelectsProtected)
	say(f.openShift, outcomes.OpenShiftToo)
	say(f.belowPeak, outcomes.BelowPeak)
	say(f.unknown, outcomes.NotFoundOut)
	if f.largeSelector != "" {
		say([]string{f.largeSelector}, outcomes.SelectorLarge)
	}
	say(f.overlaps, outcomes.LimitTheSame)
	switch {
	case f.newMode && f.mode == quotav1.EnforcementWarn:
		warnings = append(warnings, outcomes.ModeWarn.Text())
	case f.newMode && f.mode == quotav1.EnforcementAudit:
		warnings = append(warnings, outcomes.ModeAudit.Text())
	}
	if len(f.selected) == 1 {
		say(f.selected, outcomes.SelectsOne)
	} else {
		say(f.selected, outcomes.SelectsMany, len(f.selected))
	}
	return warnings[:min(len(warnings), maxWarnings)]
}

// belowUse is the message on a limit below the use, and the treatment of requests that don't fit.
func (f *findings) belowUse() *outcomes.Message {
	switch f.mode {
	case quotav1.EnforcementWarn:
		return outcomes.BelowUseWarn
	case quotav1.EnforcementAudit:
		return outcomes.BelowUseAudit
	default:
		return outcomes.BelowUse
	}
}

// belowPeak returns the limits that the request lowers to below the amount that was used and reserved at once in the
// last 30 days. Limits below the present use are left to excesses.
func belowPeak(previous, current *quotav1.ClusterResourceQuota) []string {
	if previous == nil || countsAnew(previous, current) {
		return nil
	}
	var below []string
	for i := range previous.Status.Peaks { // sorted
		seen := &previous.Status.Peaks[i]
		limit, limited := current.Spec.Quota.Hard[seen.Resource]
		before, used := previous.Spec.Quota.Hard[seen.Resource], previous.Status.Total.Used[seen.Resource]
		if limited && limit.Cmp(before) < 0 && limit.Cmp(seen.Month.Amount) < 0 && limit.Cmp(used) >= 0 {
			below = append(below, fmt.Sprintf("%s: %s/%s", seen.Resource, seen.Month.Amount.String(), limit.String()))
		}
	}
	return below
}

// list puts as many items into a line as there is room for, but at least one, and
// the number of the others.
func list(items []string, room int) string {
	room -= len(" and 99999 more")
	line := cut(items[0], room)
	for i, item := range items[1:] {
		if len(line)+len(", ")+len(item) > room {
			return fmt.Sprintf("%s and %d more", line, len(items)-1-i)
		}
		line += ", " + item
	}
	return line
}

// cut shortens a text to the room that there is, and removes characters that
// would garble a line: an annotation's value may be anything.
func cut(text string, room int) string {
	printable := webhookconfig.Printable(text)
	if len(printable) <= room {
		return printable
	}
	const ellipsis = "..."
	return strings.ToValidUTF8(printable[:room-len(ellipsis)], "") + ellipsis
}
