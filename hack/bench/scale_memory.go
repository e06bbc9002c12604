// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// memory is what an operator holds, in bytes.
type memory struct {
	// Resident is the process's resident set, and Peak the largest it ever was.
	Resident float64 `json:"resident"`
	Peak     float64 `json:"peak"`
	// Live is what the last garbage collection found in use; InUse has besides
	// what is garbage by now.
	Live  float64 `json:"heapLive"`
	InUse float64 `json:"heapInUse"`
}

// above returns what one operator holds more than another, for each of so many.
func (m memory) above(empty memory, count int) memory {
	each := float64(count)
	return memory{
		Resident: (m.Resident - empty.Resident) / each, Peak: (m.Peak - empty.Peak) / each,
		Live: (m.Live - empty.Live) / each, InUse: (m.InUse - empty.InUse) / each,
	}
}

func memoryOf(ctx context.Context, process *harness.Process, metricsPort int) (memory, error) {
	exported, err := scrape(ctx, metricsPort)
	if err != nil {
		return memory{}, err
	}
	measured := memory{}
	for name, into := range map[string]*float64{
		"process_resident_memory_bytes": &measured.Resident,
		"go_gc_heap_live_bytes":         &measured.Live,
		"go_memstats_heap_inuse_bytes":  &measured.InUse,
	} {
		if exported[name] == nil {
			return memory{}, fmt.Errorf("the operator has no metric %s", name)
		}
		*into = exported.sum(name)
	}
	measured.Peak, err = peakOf(process.PID())
	return measured, err
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
