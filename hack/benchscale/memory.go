// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
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
	metrics, err := scrape(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", metricsPort))
	if err != nil {
		return memory{}, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	measured := memory{}
	for name, into := range map[string]*float64{
		"process_resident_memory_bytes": &measured.Resident,
		"go_gc_heap_live_bytes":         &measured.Live,
		"go_memstats_heap_inuse_bytes":  &measured.InUse,
	} {
		value, known := metrics[name]
		if !known {
			return memory{}, fmt.Errorf("the operator has no metric %s", name)
		}
		*into = value
	}
	measured.Peak, err = peakOf(process.PID())
	return measured, err
}

// scrape returns the metrics that have no labels.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	text, err := get(ctx, url)
	if err != nil {
		return nil, err
	}
	return parseMetrics(strings.NewReader(text))
}

func get(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func parseMetrics(text io.Reader) (map[string]float64, error) {
	metrics := map[string]float64{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), " ")
		if !found || strings.HasPrefix(name, "#") || strings.Contains(name, "{") {
			continue
		}
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("reading metric %s: %w", name, err)
		}
		metrics[name] = number
	}
	return metrics, lines.Err()
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
