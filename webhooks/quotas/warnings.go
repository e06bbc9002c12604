// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package quotas

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
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
	say := func(items []string, format string) {
		if len(items) > 0 {
			warnings = append(warnings, fmt.Sprintf(format, list(items, webhookconfig.MaxWarning-len(format)+len("%s"))))
		}
	}
	if f.idleSelector != "" {
		say([]string{f.idleSelector}, "spec.selector selects no namespace (%s): nothing is limited until one matches; "+
			"label namespaces, or correct the selector")
	}
	say(f.above, "spec.quota.hard is below what is used: %s; "+f.beyond())
	say(f.limitNothing, evaluation.LimitNothing)
	say(f.unserved, "the cluster doesn't serve what is limited by %s: correct spec.quota.hard, or install its CustomResourceDefinition")
	say(f.protected, "spec.selector selects protected namespaces, where nothing is ever refused: "+
		"exclude %s, such as by the label kubernetes.io/metadata.name")
	say(f.openShift, "OpenShift's ClusterResourceQuota of the same name selects %s too: both limit what is there; "+
		"delete that one once this one is enforced")
	say(f.belowPeak, "spec.quota.hard is below the peak of the last 30 days (%s): it fits what is used now, and not what was; "+
		"see status.peaks")
	say(f.unknown, "not checked, because it couldn't be found out within a second: %s")
	if f.largeSelector != "" {
		say([]string{f.largeSelector}, "spec.selector takes %s: if all selectors are too large for the webhook configuration, "+
			"requests in namespaces that no quota selects need the operator, too; label the namespaces, and select by this label")
	}
	say(f.overlaps, "other quotas limit the same: %s; a request must fit each quota whose mode is Deny")
	if f.newMode && f.mode != quotav1.EnforcementDeny {
		warnings = append(warnings, fmt.Sprintf("spec.enforcement.mode is %s, which refuses nothing: %s", f.mode, f.beyond()))
	}
	selects := "spec.selector selects the namespace %s"
	if len(f.selected) > 1 {
		selects = fmt.Sprintf("spec.selector selects %d namespaces: ", len(f.selected)) + "%s"
	}
	say(f.selected, selects)
	return warnings[:min(len(warnings), maxWarnings)]
}

// beyond describes the treatment of requests that don't fit.
func (f *findings) beyond() string {
	switch f.mode {
	case quotav1.EnforcementWarn:
		return "requests that don't fit are admitted, and their senders are warned"
	case quotav1.EnforcementAudit:
		return "requests that don't fit are admitted, and noted in events and in the API server's audit log"
	default:
		return "no more is admitted until less is used: delete something, or raise the limit"
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
