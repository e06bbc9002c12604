// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// wantBytes is the target: what the operator may hold for each counted pod.
const wantBytes = 1500

// report is all that was measured.
type report struct {
	Namespaces int `json:"namespaces"`
	Quotas     int `json:"quotas"`
	// Empty is the memory of an operator that counts no pod.
	Empty memory `json:"empty"`
	Rows  []row  `json:"rows"`
}

// row is what was measured with a number of pods.
type row struct {
	Pods int `json:"pods"`
	// Complete is the time from the operator's start to complete ledgers, in seconds.
	Complete float64 `json:"completeSeconds"`
	// CompleteCPU is what CPU time of the operator that took, in seconds.
	CompleteCPU float64 `json:"completeCPUSeconds"`
	Memory      memory  `json:"memory"`
	// PerPod is what it holds above the empty operator, divided by the pods.
	PerPod  memory    `json:"perPod"`
	Changes []changes `json:"changes"`
	// Idle is what part of a CPU the operator uses at rest.
	Idle float64 `json:"idleCPU"`
}

// add takes the next row; the one without pods is what the others are compared with.
func (r *report) add(measured row) {
	if measured.Pods == 0 {
		r.Empty = measured.Memory
		return
	}
	measured.PerPod = memory{
		Resident: (measured.Memory.Resident - r.Empty.Resident) / float64(measured.Pods),
		Live:     (measured.Memory.Live - r.Empty.Live) / float64(measured.Pods),
	}
	r.Rows = append(r.Rows, measured)
}

func (r *report) print(out io.Writer) error {
	text := []string{
		fmt.Sprintf("\n%d namespaces under %d quotas. An empty operator: %.1f MB resident, %.1f MB of live heap.\n",
			r.Namespaces, r.Quotas, r.Empty.Resident/1e6, r.Empty.Live/1e6),
	}
	for _, line := range lines() {
		text = append(text, line.text(r.Rows))
	}
	text = append(text, "", r.verdict(), "")
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, err := io.WriteString(table, strings.Join(text, "\n"))
	return errors.Join(err, table.Flush())
}

// verdict compares the figures of all pods with the targets.
func (r *report) verdict() string {
	first, last := r.Rows[0], r.Rows[len(r.Rows)-1]
	few, many := last.Changes[0], last.Changes[1]
	outcome := "met"
	if last.PerPod.Resident > wantBytes {
		outcome = "missed"
	}
	more := (last.Memory.Resident - first.Memory.Resident) / float64(last.Pods-first.Pods)
	return fmt.Sprintf("Memory: %.0f B resident a pod, at most %d wanted: %s. From %d to %d pods, %.0f B for each one more.\n",
		last.PerPod.Resident, wantBytes, outcome, first.Pods, last.Pods, more) +
		fmt.Sprintf("A change in a namespace of %d pods against one of %d: CPU x%.2f, create x%.2f, delete x%.2f; x1.00 wanted.\n",
			many.Objects, few.Objects, many.CPU/few.CPU, many.Create/few.Create, many.Delete/few.Delete)
}

type line struct {
	name, format string
	value        func(row) float64
}

// text is the line with a value of each row, and by how much it grows.
func (l line) text(rows []row) string {
	text := []string{l.name}
	for _, row := range rows {
		text = append(text, fmt.Sprintf(l.format, l.value(row)))
	}
	return strings.Join(append(text, fmt.Sprintf("x%.2f", l.value(rows[len(rows)-1])/l.value(rows[0]))), "\t") + "\t"
}

func lines() []line {
	all := []line{
		{"pods", "%.0f", func(r row) float64 { return float64(r.Pods) }},
		{"start to complete count, s", "%.2f", func(r row) float64 { return r.Complete }},
		{"operator's CPU until then, s", "%.2f", func(r row) float64 { return r.CompleteCPU }},
		{"resident, MB", "%.1f", func(r row) float64 { return r.Memory.Resident / 1e6 }},
		{"resident at its peak, MB", "%.1f", func(r row) float64 { return r.Memory.Peak / 1e6 }},
		{"resident a pod, B", "%.0f", func(r row) float64 { return r.PerPod.Resident }},
		{"live heap a pod, B", "%.0f", func(r row) float64 { return r.PerPod.Live }},
	}
	for place, name := range []string{"few", "many"} {
		all = append(all,
			line{"namespace of " + name + ", pods", "%.0f", func(r row) float64 { return float64(r.Changes[place].Objects) }},
			line{"create to ledger, p50 ms", "%.1f", func(r row) float64 { return r.Changes[place].Create }},
			line{"delete to ledger, p50 ms", "%.1f", func(r row) float64 { return r.Changes[place].Delete }},
			line{"CPU a change, ms", "%.2f", func(r row) float64 { return r.Changes[place].CPU }},
		)
	}
	return all
}
