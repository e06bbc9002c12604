// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figure is one of those that are taken of a variant's turn.
type figure int

const (
	rate figure = iota
	p50
	p99
	refused
	// failed are the requests that a webhook answered neither way, also while warming up.
	failed
	// call is how long the API server waited for webhooks.
	call
	apiServerCPU
	etcdCPU
	ownCPU
	// totalCPU is that of the API server, of etcd, and its own.
	totalCPU
	ownMemory
	// Heap is what was allocated: unlike CPU time it doesn't depend on what else the machine does.
	apiServerHeap
	ownHeap
	// writes are those of ledgers, status and views, or of native quotas.
	writes
	// requests are those of the operator to the API server.
	requests
	commits
	conflicts
	ledgerBytes
	figureCount
)

// per is what a running total is divided by.
type per int

const (
	alone      per = iota // no running total
	perRequest            // of those that clients completed while measuring
	perServed             // of those that the API server has counted among its metrics
	perSecond
)

// columns say how each figure is shown. Times are in milliseconds.
var columns = [figureCount]struct {
	name, format string
	per          per
}{
	rate:          {"requests/s", "%.0f", alone},
	p50:           {"p50 ms", "%.1f", alone},
	p99:           {"p99 ms", "%.1f", alone},
	refused:       {"refused", "%.0f", alone},
	failed:        {"failed", "%.0f", alone},
	call:          {"call ms", "%.2f", perServed},
	apiServerCPU:  {"API server CPU", "%.2f", perRequest},
	etcdCPU:       {"etcd CPU", "%.2f", perRequest},
	ownCPU:        {"its own CPU", "%.2f", perRequest},
	totalCPU:      {"CPU of all", "%.2f", alone},
	ownMemory:     {"its memory MiB", "%.0f", alone},
	apiServerHeap: {"API server KiB", "%.0f", perServed},
	ownHeap:       {"its own KiB", "%.0f", perServed},
	writes:        {"writes/request", "%.2f", perServed},
	requests:      {"its requests/s", "%.0f", perSecond},
	commits:       {"commits/s", "%.1f", perSecond},
	conflicts:     {"conflicts/s", "%.1f", perSecond},
	ledgerBytes:   {"ledger bytes", "%.0f", alone},
}

// figures are one value each.
type figures [figureCount]float64

// cells are the figures as they are shown; one that is zero is empty.
func (f *figures) cells() []string {
	cells := make([]string, figureCount)
	for i, value := range f {
		if value != 0 {
			cells[i] = fmt.Sprintf(columns[i].format, value)
		}
	}
	return cells
}

// named are the figures that aren't zero, by the names of their columns.
func (f *figures) named() map[string]float64 {
	named := map[string]float64{}
	for i, value := range f {
		if value != 0 {
			named[columns[i].name] = value
		}
	}
	return named
}

// turn is what one variant did in one turn.
type turn struct {
	figures
	latency []time.Duration
}

// results are the figures of all scenarios, in the order of their runs.
type results struct {
	Machine   string            `json:"machine"`
	Date      string            `json:"date"`
	Rounds    int               `json:"rounds"`
	Seconds   int               `json:"seconds"`
	Goals     []goal            `json:"goals"`
	Scenarios []*scenarioResult `json:"scenarios"`
}

type scenarioResult struct {
	Name     string           `json:"name"`
	Variants []*variantResult `json:"variants"`
}

// variantResult has the medians of the turns, and percentiles over all of them.
type variantResult struct {
	Name    string             `json:"name"`
	Figures map[string]float64 `json:"figures"`
	// Rates of each round.
	Rates   []float64 `json:"rates"`
	medians figures
	turns   []turn
}

func (r *results) variant(scenario, variant string) *variantResult {
	i := slices.IndexFunc(r.Scenarios, func(s *scenarioResult) bool { return s.Name == scenario })
	if i < 0 {
		r.Scenarios = append(r.Scenarios, &scenarioResult{Name: scenario})
		i = len(r.Scenarios) - 1
	}
	s := r.Scenarios[i]
	j := slices.IndexFunc(s.Variants, func(v *variantResult) bool { return v.Name == variant })
	if j < 0 {
		s.Variants = append(s.Variants, &variantResult{Name: variant})
		j = len(s.Variants) - 1
	}
	return s.Variants[j]
}

// add takes the figures of one more turn, and tells of it.
func (r *results) add(scenario, variant string, t turn) {
	v := r.variant(scenario, variant)
	t.figures[p50], t.figures[p99] = percentile(t.latency, 50), percentile(t.latency, 99)
	v.turns = append(v.turns, t)
	var latency []time.Duration
	for _, one := range v.turns {
		latency = append(latency, one.latency...)
	}
	for i := range v.medians {
		v.medians[i] = median(v.all(figure(i)))
	}
	v.medians[p50], v.medians[p99] = percentile(latency, 50), percentile(latency, 99)
	v.Figures, v.Rates = v.medians.named(), v.all(rate)
	fmt.Printf("%s, %s:", scenario, variant)
	for i, cell := range t.cells()[:apiServerHeap] {
		if cell != "" {
			fmt.Printf("  %s %s", columns[i].name, cell)
		}
	}
	fmt.Println()
}

// all are a figure's values in each turn.
func (v *variantResult) all(f figure) []float64 {
	var all []float64
	for _, one := range v.turns {
		all = append(all, one.figures[f])
	}
	return all
}

// print writes the tables for people: the targets are Markdown.
func (r *results) print(out io.Writer) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "\n%s. Medians of %d rounds of %d s; CPU in ms a request.\n", r.Machine, r.Rounds, r.Seconds)
	for _, s := range r.Scenarios {
		s.table(text)
	}
	scenarios := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug|tabwriter.AlignRight)
	if _, err := io.WriteString(scenarios, text.String()); err != nil {
		return err
	}
	goals, err := table(r.Goals)
	if err != nil {
		return err
	}
	if err := scenarios.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nTargets\n\n%s", goals)
	return err
}

// table has a column for each figure that some variant has.
func (s *scenarioResult) table(text *strings.Builder) {
	rows := []string{"variant\t"}
	for _, v := range s.Variants {
		rows = append(rows, v.Name+"\t")
	}
	for i, column := range &columns {
		if !slices.ContainsFunc(s.Variants, func(v *variantResult) bool { return v.medians[i] != 0 }) {
			continue
		}
		rows[0] += column.name + "\t"
		for row, v := range s.Variants {
			rows[row+1] += v.medians.cells()[i] + "\t"
		}
	}
	fmt.Fprintf(text, "\n%s\n\n%s\n", s.Name, strings.Join(rows, "\n"))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func total(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum
}

// percentile returns the latency in milliseconds that so many of a hundred requests don't exceed.
func percentile(latency []time.Duration, percent float64) float64 {
	if len(latency) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(latency))
	return milliseconds(sorted[min(len(sorted)-1, int(float64(len(sorted))*percent/100))])
}

// median returns the middle of the values, or the mean of the two in the middle.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// hardware describes where this runs.
func hardware() string {
	return fmt.Sprintf("%d × %s, %s/%s, %s", runtime.NumCPU(), cpuModel(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}
