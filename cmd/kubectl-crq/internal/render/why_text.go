// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"
)

// WhyText returns the answer, and then the way to it: the chain, the quotas, who holds them, and what to do.
func WhyText(of *Why, style Style, now time.Time) string {
	MakeVisible(of)
	var text strings.Builder
	text.WriteString(style.wrap(of.Summary, "") + "\n")
	for i := range of.Chain {
		text.WriteString(linkText(&of.Chain[i], style, now))
	}
	for _, pods := range of.Pods {
		text.WriteString(podsText(pods, style))
	}
	for i := range of.Quotas {
		text.WriteString(quotaText(&of.Quotas[i], of.Namespace, style))
	}
	for _, waiting := range of.Waiting {
		text.WriteString("\n" + style.wrap(waitingText(waiting, now), ""))
	}
	if len(of.Remedies) > 0 {
		text.WriteString("\n" + style.paint(bold, "To make it fit:") + "\n")
	}
	for _, remedy := range of.Remedies {
		text.WriteString(bullet(style.wrap(remedy, indent)))
	}
	for i, note := range of.Notes {
		if i == 0 {
			text.WriteByte('\n')
		}
		text.WriteString(style.wrap("Note: "+note, ""))
	}
	return text.String()
}

// bullet puts a dash before the first line of a wrapped text.
func bullet(wrapped string) string { return "- " + strings.TrimPrefix(wrapped, indent) }

func linkText(link *WhyLink, style Style, now time.Time) string {
	var text strings.Builder
	text.WriteString(style.wrap(style.paint(bold, link.String())+": "+link.State, ""))
	for _, refusal := range link.Refusals {
		by := "by something else than a quota"
		if refusal.Quota != "" {
			by = "by " + refusal.Quota
		}
		text.WriteString(style.wrap(fmt.Sprintf("refused %s %s:", by, whenText(refusal, now)), indent))
		text.WriteString(style.wrap(refusal.Message, indent+indent))
	}
	if link.Woken != nil {
		text.WriteString(style.wrap("woken "+age(*link.Woken, now)+" ago, because there was room", indent))
	}
	return text.String()
}

// whenText is as in kubectl describe, with the word for it: "5s ago (x3 over 2m)".
func whenText(refusal WhyRefusal, now time.Time) string {
	last := age(refusal.Last, now) + " ago"
	switch refusal.Count {
	case 0:
		return "for " + age(refusal.Last, now)
	case 1:
		return last
	}
	return fmt.Sprintf("%s (x%d over %s)", last, refusal.Count, duration.HumanDuration(now.Sub(refusal.First.Time)))
}

func podsText(pods WhyPods, style Style) string {
	text := fmt.Sprintf("%d of its pods, such as %s: %s", pods.Count, pods.Example, pods.State)
	if pods.Count == 1 {
		text = fmt.Sprintf("Pod/%s: %s", pods.Example, pods.State)
	}
	if pods.Message != "" {
		text += ": " + pods.Message
	}
	return style.wrap(text, "")
}

func quotaText(of *WhyQuota, namespace string, style Style) string {
	title := style.paint(bold, of.Quota) + ", a ResourceQuota of this namespace alone:"
	if strings.HasPrefix(of.Quota, sharedPrefix) {
		title = style.paint(bold, of.Quota) + ", shared by namespaces:"
	}
	text := "\n" + title + "\n" + needsTable(of.Rows, style).text(indent)
	if holders := holdersTable(of, namespace, style); len(holders.rows) > 1 {
		text += "\n" + holders.text(indent)
	}
	if of.Unread {
		text += style.wrap("You can't read "+of.Quota+": which other namespaces hold it can't be seen.", indent)
	}
	if largest := largestTable(of.Rows, style); len(largest.rows) > 1 {
		text += "\n" + largest.text(indent)
	}
	return text
}

// sharedPrefix begins the name of a ClusterResourceQuota.
const sharedPrefix = "crq/"

func needsTable(rows []WhyRow, style Style) *table {
	made := &table{}
	made.add(style.headings(plains("RESOURCE", "NEXT NEEDS", "ALL NEED", "AVAILABLE", "SHORT OF"))...)
	for i := range rows {
		row := &rows[i]
		short := plain("-")
		switch {
		case row.Short == nil:
			short = plain(unknown)
		case row.IsShort():
			short = style.cell(red, row.Short.String())
		}
		cells := plains(string(row.Resource), row.One.String(), row.All.String(), quantityText(row.Available))
		made.add(append(cells, short)...)
	}
	return made
}

// holdersTable has the namespaces that hold most of what is short. If those can't be read, it has this one, and all
// together.
func holdersTable(of *WhyQuota, namespace string, style Style) *table {
	made := &table{}
	made.add(style.headings(plains("HELD", "BY NAMESPACE", "USED", "OF HARD"))...)
	for i := range of.Rows {
		row := &of.Rows[i]
		if !row.IsShort() {
			continue
		}
		name := string(row.Resource)
		add := func(who string, used resource.Quantity) {
			share := Figure{Used: used, Hard: row.Hard, Counted: true}
			made.add(plains(name, who, used.String(), share.percentText())...)
		}
		for _, holder := range row.Holders {
			who := holder.Namespace
			if who == namespace {
				who += " (this one)"
			}
			add(who, holder.Used)
		}
		if len(row.Holders) == 0 && row.Here != nil {
			add(namespace+" (this one)", *row.Here)
			if others, shared := row.others(); shared {
				add("all others", others)
			}
		}
		if row.More > 0 {
			made.add(plains(name, fmt.Sprintf("%d more", row.More), "", "")...)
		}
	}
	return made
}

// others returns what other namespaces use together.
func (r *WhyRow) others() (resource.Quantity, bool) {
	if r.Used == nil || r.Here == nil {
		return resource.Quantity{}, false
	}
	rest := r.Used.DeepCopy()
	rest.Sub(*r.Here)
	return rest, rest.Sign() > 0
}

func largestTable(rows []WhyRow, style Style) *table {
	made := &table{}
	made.add(style.headings(plains("MOST HERE", "OBJECT", "USES"))...)
	for i := range rows {
		for _, user := range rows[i].Largest {
			made.add(plains(string(rows[i].Resource), user.String(), user.Used.String())...)
		}
	}
	return made
}

func quantityText(amount *resource.Quantity) string {
	if amount == nil {
		return unknown
	}
	return amount.String()
}

func waitingText(waiting WhyWaiting, now time.Time) string {
	text := fmt.Sprintf("The operator knows that %s has waited for %s for %s, and wakes it if there is room",
		waiting.ObjectName, waiting.Quota, age(waiting.Since, now))
	if len(waiting.Short) == 0 {
		return text + "."
	}
	return text + ". It was short of " + amountsText(waiting.Short) + "."
}
