// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Coverage is one quota that covers a namespace.
type Coverage struct {
	Quota string
	// By has the labels and annotations of the namespace by which the quota selects it; empty if they can't be read.
	By []string
	// Scopes of the quota.
	Scopes        []corev1.ResourceQuotaScope
	ScopeSelector *corev1.ScopeSelector
	Figures       []Figure
	// Here is the use of this namespace.
	Here corev1.ResourceList
	// Surge is that of the quota; nil for none.
	Surge *quotav1.SurgeStatus
	// SurgeHere: only the namespace's own workloads that hold surge are known.
	SurgeHere bool
	// Notes are additional facts.
	Notes []string
}

// NearMiss is a quota that would cover the namespace but for one requirement.
type NearMiss struct {
	Quota string
	// Wants is the requirement, and Has the namespace's value instead.
	Wants, Has string
}

// Explanation has the limits of a namespace.
type Explanation struct {
	Namespace string
	// Labels of the namespace.
	Labels map[string]string
	// FromViews is true if all that could be read are the local views.
	FromViews  bool
	Coverages  []Coverage
	NearMisses []NearMiss
}

// Explain returns the explanation in paragraphs, one for each quota.
func Explain(of Explanation, style Style) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", style.paint(bold, "Namespace:"), of.Namespace)
	if of.FromViews {
		text.WriteString("You can't read the namespace or the ClusterResourceQuotas; this is from its LocalResourceQuotas.\n")
	} else {
		fmt.Fprintf(&text, "%s    %s\n", style.paint(bold, "Labels:"), labels.FormatLabels(of.Labels))
	}
	switch {
	case len(of.Coverages) > 0:
	case of.FromViews:
		text.WriteString("\nIt has none: no ClusterResourceQuota covers it, or one whose view hasn't been written yet.\n")
	default:
		text.WriteString("\nNo ClusterResourceQuota covers it: none limits what it creates.\n")
	}
	for _, coverage := range of.Coverages {
		text.WriteString("\n" + coverage.text(style))
	}
	if len(of.NearMisses) > 0 {
		text.WriteString("\nNearly covered, but for one requirement:\n" + nearMissesTable(of.NearMisses, style).text(indent))
	}
	return text.String()
}

func (c Coverage) text(style Style) string {
	title := style.paint(bold, c.Quota) + " covers it"
	if len(c.By) > 0 {
		title += " by " + Visible(strings.Join(c.By, " and "))
	}
	if scopes := scopesText(c.Scopes, c.ScopeSelector); scopes != "" {
		title += ", for objects in scope " + scopes
	}
	var text strings.Builder
	text.WriteString(title + ".\n")
	for _, note := range c.Notes {
		text.WriteString(style.paint(yellow, note) + "\n")
	}
	text.WriteString(c.table(style).text(indent))
	if c.Surge != nil {
		text.WriteString(style.wrap("Surge: "+Visible(surgeText(c.Surge, !c.SurgeHere)), indent))
	}
	return text.String()
}

func (c Coverage) table(style Style) *table {
	headings := []string{"RESOURCE", "USED HERE", "USED", "RESERVED", "HARD", "AVAILABLE", "USE%"}
	return figuresTable(c.Figures, style, headings, func(f Figure) []string {
		return []string{string(f.Resource), c.here(f), f.text(f.Used), f.text(f.Reserved), f.Hard.String(), f.text(f.available())}
	})
}

func (c Coverage) here(f Figure) string {
	used, counted := c.Here[f.Resource]
	if !counted {
		return unknown
	}
	return used.String()
}

func nearMissesTable(misses []NearMiss, style Style) *table {
	made := style.table("QUOTA", "WANTS", "NAMESPACE HAS")
	for _, miss := range misses {
		made.add(plains(miss.Quota, miss.Wants, orDash(miss.Has))...)
	}
	return made
}
