// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OutageKind is the Kind of an Outage, where it is printed as an object.
const OutageKind = "Outage"

// Outage tells which requests would be refused if no replica of the operator answered.
type Outage struct {
	metav1.TypeMeta `json:",inline"`
	// Refused are the places where some would be, sorted.
	Refused []OutagePlace `json:"refused"`
	// Updates are the resources of which not only creations would be refused, sorted.
	Updates []string `json:"updates,omitempty"`
	// QuotaChangesRefused: no ClusterResourceQuota could be created or changed.
	QuotaChangesRefused bool `json:"quotaChangesRefused"`
	// Admitting are the quotas that have requests admitted then, sorted. It is absent if quotas can't be read.
	Admitting []OutageQuota `json:"admitting,omitempty"`
	// NoneAdmits: quotas can be read, and none has requests admitted.
	NoneAdmits bool `json:"noneAdmits,omitempty"`
	// Notes say what may be otherwise, and why.
	Notes []string `json:"notes,omitempty"`
}

// OutagePlace is where requests would be refused: a namespace, or those that a selector selects if namespaces can't be
// read.
type OutagePlace struct {
	Namespace string   `json:"namespace,omitempty"`
	Selector  string   `json:"selector,omitempty"`
	Resources []string `json:"resources"`
	// Quotas are those for whose sake. It is absent if quotas can't be read.
	Quotas []string `json:"quotas,omitempty"`
}

// OutageQuota is a quota that has requests admitted, and why.
type OutageQuota struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Outages returns a line for each namespace, or for those of which the same is to be said if there are many, and what must be
// known besides.
func Outages(outage Outage, style Style) string {
	var text strings.Builder
	if len(outage.Refused) == 0 {
		text.WriteString("Nothing would be refused.\n")
	} else {
		made := &table{}
		made.add(style.headings(plains("NAMESPACE", "RESOURCES", "QUOTAS"))...)
		for _, row := range outageRows(outage.Refused) {
			made.add(plains(row[:]...)...)
		}
		text.WriteString(made.text("") + "\n")
		text.WriteString(style.wrap(refusedText(outage), ""))
	}
	if outage.QuotaChangesRefused {
		text.WriteString(style.wrap("ClusterResourceQuotas could not be created, nor their specs changed.", ""))
	}
	switch {
	case len(outage.Admitting) > 0:
		parts := make([]string, 0, len(outage.Admitting))
		for _, quota := range outage.Admitting {
			parts = append(parts, fmt.Sprintf("%s (%s)", Visible(quota.Name), quota.Why))
		}
		text.WriteString(style.wrap("Quotas that would have requests admitted: "+strings.Join(parts, ", ")+".", ""))
	case outage.NoneAdmits:
		text.WriteString("No quota would have requests admitted.\n")
	}
	for _, note := range outage.Notes {
		text.WriteString(style.wrap(Visible(note), ""))
	}
	return text.String()
}

func refusedText(outage Outage) string {
	if len(outage.Updates) == 0 {
		return "Creations of these would be refused."
	}
	return "Creations of these would be refused, and updates that may take more, of " + strings.Join(outage.Updates, ", ") + "."
}

// manyPlaces is from how many on those with the same answer are in one line.
const manyPlaces = 12

// outageRows are the lines of the table.
func outageRows(places []OutagePlace) [][3]string {
	var rows [][3]string
	at := map[[2]string]int{}
	names := map[int][]string{}
	for _, place := range places {
		name := place.Namespace
		if name == "" {
			name = place.Selector
		}
		answer := [2]string{strings.Join(place.Resources, ","), orDash(strings.Join(place.Quotas, ","))}
		row, known := at[answer]
		if !known || len(places) < manyPlaces {
			row = len(rows)
			at[answer] = row
			rows = append(rows, [3]string{"", answer[0], answer[1]})
		}
		names[row] = append(names[row], name)
	}
	for i := range rows {
		rows[i][0] = few(names[i])
	}
	return rows
}

// few names some of many.
func few(names []string) string {
	const most = 3
	if len(names) <= most+1 {
		return strings.Join(names, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(slices.Clone(names[:most]), ","), len(names)-most)
}
