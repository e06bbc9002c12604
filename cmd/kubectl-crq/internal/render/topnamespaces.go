// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// part is what one namespace uses of a resource.
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

// topNamespaces names those that use most, as in "shop 12, ledgers 8, 3 more".
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
// first, and no more than options say. It is empty where none does.
func TopNamespaces(quota *quotav1.ClusterResourceQuota, options TopOptions) string {
	bare := topNamespacesTable(quota, options, 0)
	if len(bare.rows) == 1 {
		return ""
	}
	return topNamespacesTable(quota, options, options.barWidth(bare.width())).text("")
}

// topNamespacesTable has no bars where they are 0 wide.
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
