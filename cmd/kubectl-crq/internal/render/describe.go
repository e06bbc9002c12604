// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// indent is that of a table below its title.
const indent = "  "

// Description is all that is told of one quota.
type Description struct {
	Quota *quotav1.ClusterResourceQuota
	// Selector selects its namespaces.
	Selector string
	// Events are about the quota, the oldest first.
	Events []corev1.Event
	// EventsUnread says why there are no events; empty if they were read.
	EventsUnread string
}

// Describe returns the description in the form of kubectl describe.
func Describe(of Description, style Style, now time.Time) string {
	quota := of.Quota
	var text strings.Builder
	head := &table{}
	for _, line := range [][2]string{
		{"Name:", quota.Name},
		{"Selector:", of.Selector},
		{"Scopes:", scopesText(quota.Spec.Quota.Scopes, quota.Spec.Quota.ScopeSelector)},
		{"Mode:", modeText(quota.Spec.Enforcement)},
		{"Unavailable:", string(quota.Spec.Enforcement.WhenUnavailable)},
		{"Age:", age(quota.CreationTimestamp, now)},
		{"Generation:", generationText(quota)},
	} {
		if line[1] != "" {
			head.add(style.cell(bold, line[0]), plain(line[1]))
		}
	}
	text.WriteString(head.text(""))
	section(&text, style, "Conditions:", conditionsTable(quota, style, now))
	section(&text, style, "Resources:", resourcesTable(quota, style))
	if surge := SurgeOf(quota); surge != nil {
		section(&text, style, "Surge, for pods that replace others:", surgeTable(surge, style, "Resource", "Taken", "Surge", "Left"))
		section(&text, style, "Surge is held by:", surgingTable(surge.Workloads, style, now, "Workload", "Namespace", "For"))
	}
	section(&text, style, "Peaks:", peaksTable(quota, style, now))
	section(&text, style, fmt.Sprintf("Namespaces (%d):", quota.Status.NamespaceCount), namespacesTable(quota, style))
	if of.EventsUnread != "" {
		text.WriteString(style.paint(bold, "Events:") + indent + of.EventsUnread + "\n")
		return text.String()
	}
	section(&text, style, "Events:", eventsTable(of.Events, style, now))
	return text.String()
}

// modeText describes the treatment of requests that don't fit; empty if they are refused.
func modeText(enforcement quotav1.Enforcement) string {
	if enforcement.Mode == quotav1.EnforcementDeny {
		return ""
	}
	return string(enforcement.Mode)
}

// section puts a table under its title, or says that there is nothing.
func section(text *strings.Builder, style Style, title string, of *table) {
	if len(of.rows) <= 1 {
		text.WriteString(style.paint(bold, title) + indent + nothing + "\n")
		return
	}
	text.WriteString(style.paint(bold, title) + "\n" + of.text(indent))
}

// generationText tells a status that is behind the spec.
func generationText(quota *quotav1.ClusterResourceQuota) string {
	text := strconv.FormatInt(quota.Generation, 10)
	switch observed := quota.Status.ObservedGeneration; {
	case observed <= 0: // the CRD gives a new quota -1
		text += " (the operator has written no status yet)"
	case observed != quota.Generation:
		text += fmt.Sprintf(" (the status is of generation %d)", observed)
	}
	return text
}

// scopesText returns scopes as people read them; empty if there are none.
func scopesText(scopes []corev1.ResourceQuotaScope, selector *corev1.ScopeSelector) string {
	if len(scopes) == 0 && selector == nil {
		return ""
	}
	return report.Scopes(scopes, selector)
}

func conditionsTable(quota *quotav1.ClusterResourceQuota, style Style, now time.Time) *table {
	made := style.table("Type", "Status", "Reason", "Age", "Message")
	conditions := slices.SortedFunc(slices.Values(quota.Status.Conditions), func(a, b metav1.Condition) int {
		return strings.Compare(a.Type, b.Type)
	})
	for _, condition := range conditions {
		message := condition.Message
		for _, other := range conditions { // Reconciling and Stalled repeat those that they are about.
			message = strings.ReplaceAll(message, ": "+cmp.Or(other.Message, "\n"), "")
		}
		made.add(plain(condition.Type), style.cell(conditionColour(condition), string(condition.Status)),
			plain(condition.Reason), plain(age(condition.LastTransitionTime, now)), plain(message))
	}
	return made
}

// conditionColour returns a different colour for a condition with a problem.
func conditionColour(condition metav1.Condition) colour {
	wanted := metav1.ConditionFalse
	if condition.Type == quotav1.ConditionReady || condition.Type == quotav1.ConditionEnforced {
		wanted = metav1.ConditionTrue
	}
	if condition.Status == wanted {
		return green
	}
	return yellow
}

func resourcesTable(quota *quotav1.ClusterResourceQuota, style Style) *table {
	headings := []string{"Resource", "Used", "Reserved", "Hard", "Available", "Use%"}
	return figuresTable(OfQuota(quota), style, headings, func(f Figure) []string {
		return []string{string(f.Resource), f.text(f.Used), f.text(f.Reserved), f.Hard.String(), f.text(f.available())}
	})
}

// peaksTable has the most that was used and reserved in each span, and how long ago that was. The most surge is in a column of
// its own, because the other peaks leave it out.
func peaksTable(quota *quotav1.ClusterResourceQuota, style Style, now time.Time) *table {
	headings := []string{"Resource", "Today", "7 Days", "30 Days"}
	surged := SurgeOf(quota) != nil
	if surged {
		headings = append(headings, "Surge in 30 Days")
	}
	made := style.table(headings...)
	for _, f := range OfQuota(quota) {
		peaks, cells := peaksOf(quota, f.Resource), plains(string(f.Resource))
		add := func(peak quotav1.Peak, without string) {
			text := without
			if !peak.At.IsZero() {
				text = peakText(peak) + " (" + age(peak.At, now) + " ago)"
			}
			cells = append(cells, plain(text))
		}
		for _, peak := range []quotav1.Peak{peaks.Day, peaks.Week, peaks.Month} {
			add(peak, unknown)
		}
		if surged {
			add(peaks.Surge, "-")
		}
		made.add(cells...)
	}
	return made
}

func namespacesTable(quota *quotav1.ClusterResourceQuota, style Style) *table {
	made := style.table("Namespace", "Used")
	for _, one := range quota.Status.Namespaces {
		made.add(plain(one.Namespace), plain(report.Amounts(one.Status.Used)))
	}
	return made
}

func age(of metav1.Time, now time.Time) string {
	if of.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(of.Time))
}

func eventsTable(events []corev1.Event, style Style, now time.Time) *table {
	made := style.table("Type", "Reason", "Age", "From", "Message")
	for i := range events {
		event := &events[i]
		count, first, last := Seen(event)
		in := none
		if event.Type == corev1.EventTypeWarning {
			in = yellow
		}
		made.add(style.cell(in, event.Type), plain(event.Reason), plain(seenText(count, first, last, now, "")),
			plain(cmp.Or(event.ReportingController, event.Source.Component)), plain(strings.TrimSpace(event.Message)))
	}
	return made
}

// Seen returns how often an event came, when first and when last: recorders of the older and the newer kind write that into
// different fields.
func Seen(event *corev1.Event) (count int32, first, last time.Time) {
	last = cmp.Or(event.LastTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
	first = cmp.Or(event.FirstTimestamp.Time, event.EventTime.Time, last)
	if count = event.Count; event.Series != nil {
		count, last = event.Series.Count, event.Series.LastObservedTime.Time
	}
	return max(count, 1), first, last
}

// LastSeen is when an event came last.
func LastSeen(event *corev1.Event) time.Time {
	_, _, last := Seen(event)
	return last
}

// seenText is as in kubectl describe, with words after the age: "5s ago (x3 over 2m)".
func seenText(count int32, first, last, now time.Time, words string) string {
	text := age(metav1.NewTime(last), now) + words
	if count <= 1 {
		return text
	}
	return fmt.Sprintf("%s (x%d over %s)", text, count, age(metav1.NewTime(first), now))
}
