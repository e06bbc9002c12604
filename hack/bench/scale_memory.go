// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is what a replica holds, in bytes.
type memory struct {
	// resident is the process's resident set, and live what a garbage collection found in use after that was read.
	resident, live float64
}

// memory reads the memory of a replica. Reading metrics makes garbage, which the replica collects sooner or later.
func (r *replica) memory(ctx context.Context) (memory, error) {
	const cycles = "go_gc_cycles_total_gc_cycles_total"
	used, err := r.Consumption()
	if err != nil {
		return memory{}, err
	}
	exported, err := scrape(ctx, r.metricsPort)
	if err != nil {
		return memory{}, err
	}
	for before := exported.sum(cycles); exported.sum(cycles) == before; {
		if exported, err = scrape(ctx, r.metricsPort); err != nil {
			return memory{}, err
		}
	}
	return memory{resident: float64(used.Memory), live: exported.sum("go_gc_heap_live_bytes")}, nil
}

// peakOf returns the largest resident set that a process ever had. It needs Linux.
func peakOf(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the peak memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		text, found := strings.CutPrefix(line, "VmHWM:")
		if !found {
			continue
		}
		kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
		return kilobytes * 1024, err
	}
	return 0, fmt.Errorf("reading the peak memory of process %d: no VmHWM", pid)
}
