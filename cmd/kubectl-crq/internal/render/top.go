// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// TopOptions select the parts of the quotas that are shown.
type TopOptions struct {
	Style
	// Wide adds columns.
	Wide bool
	// ByUsage puts the fullest resources first, instead of the first by name.
	ByUsage bool
	// Namespaces is how many namespaces are named for a resource; 0 for no column of them.
	Namespaces int
}

// usage is one line: a resource of a quota.
type usage struct {
	Figure
	quota *quotav1.ClusterResourceQuota
}

// Top returns a line for each resource of each quota, with the namespaces that use most of it. If the terminal is too narrow
// for all columns, the namespaces give way to bars.
func Top(quotas []quotav1.ClusterResourceQuota, options TopOptions) string {
	usages := usagesOf(quotas)
	if options.ByUsage {
		slices.SortStableFunc(usages, func(a, b usage) int { return cmp.Compare(b.percent(), a.percent()) })
	}
	named := options.Namespaces > 0
	all := topTable(usages, topColumns{TopOptions: options, namespaces: named})
	if options.Width == 0 {
		return all.text("")
	}
	if bar := options.barWidth(all.width()); bar > 0 {
		return topTable(usages, topColumns{TopOptions: options, bar: bar, namespaces: named}).text("")
	}
	fewer := topTable(usages, topColumns{TopOptions: options})
	return topTable(usages, topColumns{TopOptions: options, bar: options.barWidth(fewer.width())}).text("")
}

func usagesOf(quotas []quotav1.ClusterResourceQuota) []usage {
	var usages []usage
	for i := range quotas {
		for _, figure := range OfQuota(&quotas[i]) {
			usages = append(usages, usage{Figure: figure, quota: &quotas[i]})
		}
	}
	slices.SortStableFunc(usages, func(a, b usage) int { return cmp.Compare(a.quota.Name, b.quota.Name) })
	return usages
}

// topColumns are the columns that there is room for.
type topColumns struct {
	TopOptions
	// bar is how wide it is; 0 for none.
	bar        int
	namespaces bool
}

func topTable(usages []usage, columns topColumns) *table {
	made := &table{}
	made.add(columns.headings(columns.line(plains("QUOTA", "RESOURCE", "USED", "RESERVED", "PEAK", "HARD", "USE%"),
		plain(""), plains("AVAILABLE", "NAMESPACES", "ENFORCED"), plain("TOP NAMESPACES")))...)
	for _, u := range usages {
		first := append(plains(u.quota.Name, string(u.Resource), u.text(u.Used), u.text(u.Reserved),
			peakText(peaksOf(u.quota, u.Resource).Month), hardText(u.Figure, SurgeOf(u.quota))),
			columns.cell(u.colour(), u.percentText()))
		wide := plains(u.text(u.available()), strconv.Itoa(int(u.quota.Status.NamespaceCount)), enforced(u.quota))
		made.add(columns.line(first, columns.Style.bar(u.Figure, columns.bar), wide, plain(topNamespaces(u, columns.Namespaces)))...)
	}
	return made
}

// line puts the cells that are wanted into their order.
func (c topColumns) line(first []cell, bar cell, wide []cell, namespaces cell) []cell {
	line := first
	if c.bar > 0 {
		line = append(line, bar)
	}
	if c.Wide {
		line = append(line, wide...)
	}
	if c.namespaces {
		line = append(line, namespaces)
	}
	return line
}

// headings puts cells that are plain into the style of headings.
func (s Style) headings(cells []cell) []cell {
	for i := range cells {
		cells[i] = s.cell(bold, cells[i].painted)
	}
	return cells
}

func enforced(quota *quotav1.ClusterResourceQuota) string {
	condition := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionEnforced)
	if condition == nil {
		return "Unknown"
	}
	return string(condition.Status)
}

// part is one namespace's use of a resource.
type part struct {
	namespace string
	used      resource.Quantity
}

// heaviest returns the namespaces that use any of the resource, most first.
func heaviest(quota *quotav1.ClusterResourceQuota, name corev1.ResourceName) []part {
	var parts []part
	for _, one := range quota.Status.Namespaces {
		if used := one.Status.Used[name]; !used.IsZero() {
			parts = append(parts, part{namespace: one.Namespace, used: used})
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(b.used.Cmp(a.used), cmp.Compare(a.namespace, b.namespace))
	})
	return parts
}

// topNamespaces names the namespaces that use most, as in "shop 12, ledgers 8, 3 more".
func topNamespaces(u usage, most int) string {
	parts := heaviest(u.quota, u.Resource)
	named := min(most, len(parts))
	texts := make([]string, 0, named+1)
	for _, one := range parts[:named] {
		texts = append(texts, one.namespace+" "+one.used.String())
	}
	if more := len(parts) - named; more > 0 {
		texts = append(texts, strconv.Itoa(more)+" more")
	}
	if len(texts) == 0 {
		return "-"
	}
	return strings.Join(texts, ", ")
}

// TopNamespaces returns a line for each namespace that uses any of a resource, most
// first, and no more than options say. It is empty if none does.
func TopNamespaces(quota *quotav1.ClusterResourceQuota, options TopOptions) string {
	bare := topNamespacesTable(quota, options, 0)
	if len(bare.rows) == 1 {
		return ""
	}
	return topNamespacesTable(quota, options, options.barWidth(bare.width())).text("")
}

// topNamespacesTable has no bars if they are 0 wide.
func topNamespacesTable(quota *quotav1.ClusterResourceQuota, options TopOptions, bar int) *table {
	made := &table{}
	made.add(withBar(options.headings(plains("RESOURCE", "NAMESPACE", "USED", "OF HARD")), bar, plain(""))...)
	for _, figure := range OfQuota(quota) {
		parts := heaviest(quota, figure.Resource)
		for _, one := range parts[:min(options.Namespaces, len(parts))] {
			here := Figure{Resource: figure.Resource, Used: one.used, Hard: figure.Hard, Counted: true}
			cells := plains(string(figure.Resource), one.namespace, one.used.String(), here.percentText())
			made.add(withBar(cells, bar, options.bar(here, bar))...)
		}
	}
	return made
}

func withBar(cells []cell, width int, bar cell) []cell {
	if width == 0 {
		return cells
	}
	return append(cells, bar)
}
