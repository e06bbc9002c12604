// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/test/judge"
)

// printer prints lines for a person, who sees where it fails.
type printer struct{ io.Writer }

func (p printer) linef(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format+"\n", args...)
}

// teller remembers how many violations of each quota were told.
type teller map[string]int // name of the quota -> number

// tell prints the violations that were not told yet, in the order of commits.
func (t teller) tell(out printer, report judge.Report) {
	var fresh []judge.Violation
	for name, quota := range report.Quotas {
		fresh = append(fresh, quota.Violations[t[name]:]...)
		t[name] = len(quota.Violations)
	}
	slices.SortStableFunc(fresh, func(a, b judge.Violation) int { return cmp.Compare(a.Revision, b.Revision) })
	for _, violation := range fresh {
		out.linef("%s", violation)
	}
}

// table prints a row for each resource of each quota.
func table(out printer, report judge.Report) {
	writer := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printer{writer}.linef("QUOTA\tRESOURCE\tHARD\tLIVES\tPEAK\tVIOLATIONS")
	for _, name := range slices.Sorted(maps.Keys(report.Quotas)) {
		rows(printer{writer}, name, report.Quotas[name])
	}
	_ = writer.Flush() // As good as every other print.
	for _, name := range slices.Sorted(maps.Keys(report.Quotas)) {
		if more := report.Quotas[name].MoreViolations; more > 0 {
			out.linef("%s: %d more violations are not among those of its resources", name, more)
		}
	}
	out.linef("Judged up to revision %d.", report.Revision)
}

// rows prints the resources that a quota limits, and those that it limited when
// it was violated.
func rows(out printer, name string, quota judge.QuotaReport) {
	violations := map[corev1.ResourceName]int{}
	for resource := range quota.Hard {
		violations[resource] = 0
	}
	for _, violation := range quota.Violations {
		violations[violation.Resource]++
	}
	for _, resource := range slices.Sorted(maps.Keys(violations)) {
		out.linef("%s\t%s\t%s\t%s\t%s\t%d", name, resource, amount(quota.Hard, resource),
			amount(quota.Lives, resource), amount(quota.Peak, resource), violations[resource])
	}
}

func amount(list corev1.ResourceList, resource corev1.ResourceName) string {
	quantity, found := list[resource]
	if !found {
		return "-"
	}
	return quantity.String()
}
