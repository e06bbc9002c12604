// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
	// Live is what the last garbage collection found in use.
	Live float64 `json:"heapLive"`
}

func memoryOf(ctx context.Context, process *harness.Process, metricsPort int) (memory, error) {
	exported, err := scrape(ctx, metricsPort)
	used, usedErr := process.Consumption()
	peak, peakErr := peakOf(process.PID())
	measured := memory{Resident: float64(used.Memory), Peak: peak, Live: exported.sum("go_gc_heap_live_bytes")}
	return measured, errors.Join(err, usedErr, peakErr)
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
