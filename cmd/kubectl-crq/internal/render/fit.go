// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FitKind is the kind of a Fit, where it is printed as an object.
const FitKind = "Fit"

// Fit says whether manifests fit.
type Fit struct {
	metav1.TypeMeta `json:",inline"`
	// Result is "fits", "does not fit" or "unknown".
	Result     string   `json:"result"`
	Namespaces []string `json:"namespaces"`
	// Unviewed are the namespaces for which it isn't known whether a shared quota covers them.
	Unviewed []string     `json:"unviewed,omitempty"`
	Quotas   []FitRow     `json:"quotas"`
	Refusals []FitRefusal `json:"refusals"`
	Counted  []FitCounted `json:"counted"`
	Notes    []string     `json:"notes"`
}

// FitRow is one resource of one quota. Amounts that aren't known are left out.
type FitRow struct {
	Quota      string   `json:"quota"`
	Namespaces []string `json:"namespaces"`
	Resource   string   `json:"resource"`
	// Requested must be free at some moment.
	Requested string `json:"requested"`
	// InTheEnd is the amount that is taken when everything is done.
	InTheEnd string `json:"inTheEnd"`
	// WithSurge is the amount that rollouts take if they can.
	WithSurge string `json:"withSurge"`
	Available string `json:"available,omitempty"`
	Shortfall string `json:"shortfall,omitempty"`
	// Surge is that of the quota; absent if it has none of the resource.
	Surge *FitSurge `json:"surge,omitempty"`
	// Advisory: the quota refuses nothing here.
	Advisory bool `json:"advisory,omitempty"`
}

// FitSurge is the room above a limit for pods that replace others.
type FitSurge struct {
	// Left is the rest of it, and Taken the most that rollouts take of it if they fit.
	Left  string `json:"left"`
	Taken string `json:"taken"`
	// Shortfall is the reason why surge doesn't help with the shortfall: it is "taken", "too small", or "not for larger pods"; empty for
	// nothing.
	Shortfall string `json:"shortfall,omitempty"`
}

// FitRefusal is an object that is refused independently of the available amounts.
type FitRefusal struct {
	Manifest string `json:"manifest"`
	Refused  string `json:"refused"`
	Message  string `json:"message"`
}

// FitCounted has the counted amounts of a manifest.
type FitCounted struct {
	Manifest string `json:"manifest"`
	Makes    string `json:"makes"`
	Count    int64  `json:"count"`
	// Replaces is how many that are there go for these.
	Replaces int64  `json:"replaces,omitempty"`
	When     string `json:"when"`
}

// FitText returns the answer for people. A wide one lists the counted amounts.
func FitText(of *Fit, wide bool, style Style) string {
	MakeVisible(of)
	var text strings.Builder
	text.WriteString(style.wrap(fitSummary(of), ""))
	if len(of.Quotas) > 0 {
		text.WriteString("\n" + fitTable(of.Quotas, style).text(""))
	}
	if len(of.Refusals) > 0 {
		text.WriteString("\nRefused, whatever is available:\n")
		for _, refusal := range of.Refusals {
			text.WriteString(style.wrap(refusal.Manifest+": its "+refusal.Refused+": "+refusal.Message, indent))
		}
	}
	if wide && len(of.Counted) > 0 {
		text.WriteString("\n" + countedTable(of.Counted, style).text(""))
	}
	return text.String() + notesText(of.Notes, style)
}

func fitSummary(of *Fit) string {
	switch {
	case of.Result == "does not fit":
		return "It doesn't fit: " + strings.Join(fitCauses(of), "; ") + "."
	case of.Result == "unknown":
		return "It can't be told whether it fits."
	case len(of.Unviewed) > 0:
		return "It fits into the quotas that are known."
	case len(of.Quotas) == 0:
		return "It fits: no quota limits what these manifests add."
	default:
		return "It fits."
	}
}

// fitCauses tell why it doesn't fit, a quota at a time.
func fitCauses(of *Fit) []string {
	// key tells ResourceQuotas of one name in several namespaces apart.
	key := func(row FitRow) string { return row.Quota + " " + strings.Join(row.Namespaces, ",") }
	var causes []string
	last := ""
	for _, row := range of.Quotas {
		switch missing := row.Resource + ": " + row.Shortfall; {
		case row.Shortfall == "" || row.Shortfall == "0", row.Advisory:
		case last == key(row):
			causes[len(causes)-1] += ", " + missing
		default:
			causes = append(causes, row.Quota+" is short of "+missing)
			last = key(row)
		}
	}
	switch count := len(of.Refusals); count {
	case 0:
	case 1:
		causes = append(causes, "an object is refused")
	default:
		causes = append(causes, fmt.Sprintf("%d objects are refused", count))
	}
	return causes
}

func fitTable(rows []FitRow, style Style) *table {
	made := style.table("QUOTA", "NAMESPACE", "RESOURCE", "REQUESTED", "AVAILABLE", "SHORTFALL")
	for _, row := range rows {
		shortfall := style.cell(red, row.Shortfall)
		if row.Shortfall == "" || row.Shortfall == "0" {
			shortfall = plain(map[string]string{"": unknown, "0": "-"}[row.Shortfall])
		}
		cells := plains(row.Quota, strings.Join(row.Namespaces, ","), row.Resource, row.Requested, cmp.Or(row.Available, unknown))
		made.add(append(cells, shortfall)...)
	}
	return made
}

func countedTable(counted []FitCounted, style Style) *table {
	made := style.table("MANIFEST", "MAKES", "COUNT", "WHEN")
	for _, one := range counted {
		when := one.When
		if one.Replaces > 0 {
			when += fmt.Sprintf(", for %d that go", one.Replaces)
		}
		made.add(plains(one.Manifest, one.Makes, fmt.Sprint(one.Count), when)...)
	}
	return made
}
