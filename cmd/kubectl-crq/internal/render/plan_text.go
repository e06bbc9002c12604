// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// mostNames is how many namespaces are named in one sentence.
const mostNames = 10

// PlanText returns the plan for people, the answer first.
func PlanText(of *Plan, style Style) string {
	MakeVisible(of)
	var text strings.Builder
	text.WriteString(style.wrap(planSummary(of), ""))
	for i := range of.Quotas {
		text.WriteString("\n" + planQuotaText(&of.Quotas[i], style))
	}
	text.WriteString("\n" + planWebhookText(of, style))
	if len(of.Overlaps) > 0 {
		text.WriteString("\n" + style.paint(bold, "Overlaps:") + "\n")
		for _, overlap := range of.Overlaps {
			text.WriteString(style.wrap(overlapText(overlap), indent))
		}
	}
	text.WriteString(planSumsText(of, style))
	for i, note := range of.Notes {
		if i == 0 {
			text.WriteByte('\n')
		}
		text.WriteString(style.wrap("Note: "+note, ""))
	}
	return text.String()
}

func planSummary(of *Plan) string {
	switch of.Result {
	case PlanFits:
		return "Nothing would be above its limit."
	case PlanUnknown:
		return "It can't be told whether anything would be above its limit."
	case PlanAbove:
	}
	var above []string
	for i := range of.Quotas {
		for _, limit := range of.Quotas[i].Resources {
			if limit.Above != nil {
				above = append(above, fmt.Sprintf("%s of %s by %s", limit.Resource, of.Quotas[i].Quota, limit.Above))
			}
		}
	}
	return "Above the limit would be " + strings.Join(above, ", ") + "."
}

func planQuotaText(of *PlanQuota, style Style) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %s\n", style.paint(bold, of.Quota), of.Change)
	text.WriteString(style.wrap(selectionText(of), indent))
	if of.Scopes != "" {
		text.WriteString(style.wrap("It limits only objects in the scopes "+of.Scopes+".", indent))
	}
	made := &table{}
	made.add(style.headings(plains("RESOURCE", "MODE", "WAS", "HARD", "USED", "ABOVE", "PEAK"))...)
	for _, limit := range of.Resources {
		cells := plains(string(limit.Resource), string(limit.Mode), optional(limit.Was, "-"), limit.Hard.String(),
			optional(limit.Used, unknown))
		in := none
		if limit.Above != nil {
			in = red
		}
		above := "-"
		if limit.Used == nil {
			above = unknown
		}
		made.add(append(cells, style.cell(in, optional(limit.Above, above)), plain(optional(limit.Peak, "-")))...)
	}
	text.WriteString(made.text(indent))
	for _, remark := range of.Remarks {
		text.WriteString(style.wrap(remark, indent))
	}
	unavailable := "While the operator can't decide, its requests are refused."
	if of.WhenUnavailable == quotav1.UnavailableAdmit {
		unavailable = "While the operator can't decide, its requests are admitted."
	}
	text.WriteString(style.wrap(unavailable, indent))
	return text.String()
}

func selectionText(of *PlanQuota) string {
	if !of.NamespacesKnown {
		return "It selects namespaces by " + of.Selector + "."
	}
	parts := []string{fmt.Sprintf("By %s it selects %s.", of.Selector, namespacesText(of.Namespaces))}
	if len(of.Joining) > 0 && of.Change != PlanNew { // All namespaces of a new quota join.
		parts = append(parts, "Joining: "+strings.Join(fewNames(of.Joining), ", ")+".")
	}
	if len(of.Leaving) > 0 {
		parts = append(parts, "Leaving: "+strings.Join(fewNames(of.Leaving), ", ")+".")
	}
	return strings.Join(parts, " ")
}

func namespacesText(names []string) string {
	switch len(names) {
	case 0:
		return "no namespaces"
	case 1:
		return "the namespace " + names[0]
	default:
		return fmt.Sprintf("%d namespaces: %s", len(names), strings.Join(fewNames(names), ", "))
	}
}

// fewNames returns the first names, and how many more there are.
func fewNames(names []string) []string {
	if len(names) <= mostNames {
		return names
	}
	return append(names[:mostNames:mostNames], fmt.Sprintf("%d more", len(names)-mostNames))
}

func planWebhookText(of *Plan, style Style) string {
	var text strings.Builder
	text.WriteString(style.paint(bold, "Webhook configuration:") + " ")
	if of.Webhook.EntriesNow == of.Webhook.EntriesThen {
		fmt.Fprintf(&text, "%s for quotas, as now\n", entriesText(of.Webhook.EntriesThen))
	} else {
		fmt.Fprintf(&text, "%s for quotas, now %d\n", entriesText(of.Webhook.EntriesThen), of.Webhook.EntriesNow)
	}
	for _, change := range of.Webhook.Changes {
		text.WriteString(style.wrap(askedText(change), indent))
	}
	return text.String()
}

func entriesText(count int) string {
	if count == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", count)
}

func askedText(of PlanAsked) string {
	var parts []string
	if len(of.Newly) > 0 {
		parts = append(parts, "newly asked about "+strings.Join(of.Newly, ", "))
	}
	if len(of.NoLonger) > 0 {
		parts = append(parts, "no longer asked about "+strings.Join(of.NoLonger, ", "))
	}
	switch {
	case of.FailurePolicy == "":
	case of.Was != "" && of.Was != of.FailurePolicy:
		parts = append(parts, "failurePolicy "+of.FailurePolicy+" instead of "+of.Was)
	default:
		parts = append(parts, "failurePolicy "+of.FailurePolicy)
	}
	return strings.Join(fewNames(of.Namespaces), ", ") + ": " + strings.Join(parts, "; ") + "."
}

func overlapText(of PlanOverlap) string {
	names := make([]string, 0, len(of.Resources))
	for _, name := range of.Resources {
		names = append(names, string(name))
	}
	text := fmt.Sprintf("%s and %s both limit %s in %s", of.Quota, of.With, strings.Join(names, ", "),
		strings.Join(fewNames(of.Namespaces), ", "))
	if of.Scoped {
		text += ", as far as their scopes have objects in common"
	}
	return text + "."
}

func planSumsText(of *Plan, style Style) string {
	if len(of.Sums) == 0 {
		return ""
	}
	headings := plains("RESOURCE", "NOW", "PLANNED")
	title := "All limits together:"
	if of.Nodes != nil {
		headings = append(headings, plains("ALLOCATABLE", "OF ALLOCATABLE")...)
		title = fmt.Sprintf("All limits together, against %d nodes:", *of.Nodes)
		if *of.Nodes == 1 {
			title = "All limits together, against 1 node:"
		}
	}
	made := &table{}
	made.add(style.headings(headings)...)
	for _, sum := range of.Sums {
		cells := plains(string(sum.Resource), sum.Now.String(), sum.Then.String())
		if sum.Allocatable != nil {
			cells = append(cells, plain(sum.Allocatable.String()), plain(shareText(sum.Then, *sum.Allocatable)))
		}
		made.add(cells...)
	}
	return "\n" + style.paint(bold, title) + "\n" + made.text(indent)
}

func shareText(part, whole resource.Quantity) string {
	if whole.IsZero() {
		return "-"
	}
	return fmt.Sprintf("%d%%", int64(math.Ceil(full*part.AsApproximateFloat64()/whole.AsApproximateFloat64())))
}
