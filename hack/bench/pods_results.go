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

// turnFigures are what one variant did in one turn. CPU is in milliseconds for
// each request, memory in MiB, rates a second.
type turnFigures struct {
	Rate          float64 `json:"rate"`
	P50           float64 `json:"p50Milliseconds"`
	P99           float64 `json:"p99Milliseconds"`
	APIServerCPU  float64 `json:"apiServerCPUMilliseconds"`
	EtcdCPU       float64 `json:"etcdCPUMilliseconds"`
	VariantCPU    float64 `json:"variantCPUMilliseconds"`
	VariantMemory float64 `json:"variantMemoryMebibytes"`
	// Heap is what was allocated for each request, in KiB: unlike CPU time it
	// doesn't depend on what else the machine does.
	APIServerHeap float64 `json:"apiServerAllocatedKibibytes"`
	VariantHeap   float64 `json:"variantAllocatedKibibytes"`
	Commits       float64 `json:"commitsPerSecond"`
	Conflicts     float64 `json:"conflictsPerSecond"`
	Batch         float64 `json:"batch"`
	LedgerBytes   int     `json:"ledgerBytes"`
	// Writes are those of ledgers, status and views, or of native quotas, for each request.
	Writes float64 `json:"writesPerRequest"`
	// Call is how long the API server waited for webhooks, in milliseconds for each request.
	Call float64 `json:"callMilliseconds"`
	// Requests are those of the operator to the API server.
	Requests float64 `json:"requestsPerSecond"`
	latency  []time.Duration
}

func (f turnFigures) String() string {
	return fmt.Sprintf("%7.1f/s  p50 %6.1f ms  p99 %6.1f ms  call %5.1f ms  "+
		"API server %.2f ms, %.0f KiB  variant %.2f ms, %.0f KiB  %.2f writes",
		f.Rate, milliseconds(percentile(f.latency, 50)), milliseconds(percentile(f.latency, 99)), f.Call,
		f.APIServerCPU, f.APIServerHeap, f.VariantCPU, f.VariantHeap, f.Writes)
}

// limitFigures are what happened at the limit. Latencies are in milliseconds.
type limitFigures struct {
	Requests int     `json:"requests"`
	Refused  int     `json:"refused"`
	P50      float64 `json:"p50Milliseconds"`
	P99      float64 `json:"p99Milliseconds"`
	latency  []time.Duration
}

// results are the figures of all scenarios, in the order of their runs.
type results struct {
	Machine string `json:"machine"`
	Rounds  int    `json:"rounds"`
	Seconds int    `json:"seconds"`
	// Scenarios hold the median of the rounds for each variant.
	Scenarios []*scenarioResult `json:"scenarios"`
	Ratios    []ratio           `json:"ratios"`
}

type scenarioResult struct {
	Name     string           `json:"name"`
	Variants []*variantResult `json:"variants"`
}

type variantResult struct {
	Name string `json:"name"`
	turnFigures
	// Rates of each round.
	Rates []float64     `json:"rates,omitempty"`
	Limit *limitFigures `json:"limit,omitempty"`
	turns []turnFigures
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

func (r *results) add(scenario, variant string, figures turnFigures) {
	v := r.variant(scenario, variant)
	v.turns = append(v.turns, figures)
	v.summarise()
}

func (r *results) addLimit(scenario, variant string, figures limitFigures) {
	figures.P50 = milliseconds(percentile(figures.latency, 50))
	figures.P99 = milliseconds(percentile(figures.latency, 99))
	r.variant(scenario, variant).Limit = &figures
	fmt.Printf("%-32s          %-22s %d of %d refused  p50 %.1f ms  p99 %.1f ms\n",
		scenario, variant, figures.Refused, figures.Requests+figures.Refused, figures.P50, figures.P99)
}

// summarise takes the median of the turns, and percentiles over all of them.
func (v *variantResult) summarise() {
	of := func(figure func(turnFigures) float64) float64 {
		var values []float64
		for _, turn := range v.turns {
			values = append(values, figure(turn))
		}
		return median(values)
	}
	v.Rates = nil
	var latency []time.Duration
	for _, turn := range v.turns {
		v.Rates = append(v.Rates, turn.Rate)
		latency = append(latency, turn.latency...)
	}
	v.turnFigures = turnFigures{
		Rate: median(v.Rates),
		P50:  milliseconds(percentile(latency, 50)), P99: milliseconds(percentile(latency, 99)),
		APIServerCPU:  of(func(f turnFigures) float64 { return f.APIServerCPU }),
		EtcdCPU:       of(func(f turnFigures) float64 { return f.EtcdCPU }),
		VariantCPU:    of(func(f turnFigures) float64 { return f.VariantCPU }),
		VariantMemory: of(func(f turnFigures) float64 { return f.VariantMemory }),
		APIServerHeap: of(func(f turnFigures) float64 { return f.APIServerHeap }),
		VariantHeap:   of(func(f turnFigures) float64 { return f.VariantHeap }),
		Commits:       of(func(f turnFigures) float64 { return f.Commits }),
		Conflicts:     of(func(f turnFigures) float64 { return f.Conflicts }),
		Batch:         of(func(f turnFigures) float64 { return f.Batch }),
		Writes:        of(func(f turnFigures) float64 { return f.Writes }),
		Call:          of(func(f turnFigures) float64 { return f.Call }),
		Requests:      of(func(f turnFigures) float64 { return f.Requests }),
		LedgerBytes:   int(of(func(f turnFigures) float64 { return float64(f.LedgerBytes) })),
	}
}

// print writes the tables for people.
func (r *results) print(out io.Writer) error {
	text := &strings.Builder{}
	fmt.Fprintf(text, "\n%s. Medians of %d rounds of %d s; CPU in ms a request.\n", r.Machine, r.Rounds, r.Seconds)
	for _, s := range r.Scenarios {
		fmt.Fprintf(text, "\n%s\n\n", s.Name)
		if s.Variants[0].Limit != nil {
			printLimits(text, s)
			continue
		}
		fmt.Fprintln(text, "variant\trequests/s\tp50 ms\tp99 ms\tcall ms\tAPI server CPU\tetcd CPU\tits own CPU\tits memory MiB\t"+
			"API server KiB\tits own KiB\twrites/request\tits requests/s\tcommits/s\tconflicts/s\tbatch\tledger bytes\t")
		for _, v := range s.Variants {
			fmt.Fprintf(text, "%s\t%.0f\t%.1f\t%.1f\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.2f\t%.0f\t%.1f\t%.1f\t%.1f\t%d\t\n",
				v.Name, v.Rate, v.P50, v.P99, v.Call, v.APIServerCPU, v.EtcdCPU, v.VariantCPU, v.VariantMemory,
				v.APIServerHeap, v.VariantHeap, v.Writes, v.Requests, v.Commits, v.Conflicts, v.Batch, v.LedgerBytes)
		}
	}
	if len(r.Ratios) > 0 {
		fmt.Fprintf(text, "\nratios\n\nwhat\tmeasured\tleast and most of the rounds\ttarget\t\n")
		for _, ratio := range r.Ratios {
			fmt.Fprintf(text, "%s\t%.2f\t%s\t%s\t\n", ratio.What, ratio.Value, ratio.spread(), ratio.Target)
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.Debug|tabwriter.AlignRight)
	if _, err := io.WriteString(table, text.String()); err != nil {
		return err
	}
	return table.Flush()
}

func printLimits(text *strings.Builder, s *scenarioResult) {
	fmt.Fprintln(text, "variant\trequests\trefused\tp50 ms\tp99 ms\t")
	for _, v := range s.Variants {
		fmt.Fprintf(text, "%s\t%d\t%d\t%.1f\t%.1f\t\n", v.Name, v.Limit.Requests, v.Limit.Refused, v.Limit.P50, v.Limit.P99)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

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
