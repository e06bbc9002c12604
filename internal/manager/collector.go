// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync"
)

const (
	// mostPercent lets a small heap grow to four times its live size. The garbage of admission is much: collected at each
	// doubling, it took an eighth of the operator's CPU time under load.
	mostPercent = 300
	// moreGarbage is how much garbage a larger heap may have, in bytes. With half as much again, a leader of 1,000 quotas had 373
	// to 448 MB resident at its peak, instead of 355 to 371, and began no sooner.
	moreGarbage = 64 << 20
	// leastPercent lets a very large heap have more than that, so that it isn't collected too often.
	leastPercent = 30
)

// memoryLimit is the environment variable that has the container's limit of memory, in bytes.
const memoryLimit = "MEMORY_LIMIT"

// tuneCollector lets garbage pile up, and keeps the heap below the container's limit of memory as far as it can, unless the
// environment says otherwise by GOGC and GOMEMLIMIT.
func tuneCollector() error {
	if os.Getenv("GOGC") == "" {
		collector := collector{}
		collector.follow()
		afterCollections(collector.follow)
	}
	text := os.Getenv(memoryLimit)
	if text == "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	limit, err := strconv.ParseInt(text, 10, 64)
	if err != nil || limit <= 0 {
		return fmt.Errorf("environment variable %s is %q: want a number of bytes", memoryLimit, text)
	}
	debug.SetMemoryLimit(limit / 10 * 9) // the runtime doesn't count the kernel's memory for connections
	return nil
}

// collector is the garbage collector.
type collector struct {
	mu      sync.Mutex // guards percent: cleanups may run side by side
	percent int
}

// follow has the collector begin when so much garbage has piled up as fits the heap.
func (c *collector) follow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if percent := percentFor(liveHeap()); percent != c.percent {
		c.percent = percent
		debug.SetGCPercent(percent)
	}
}

// percentFor returns how much garbage is let pile up beside so many live bytes, in percent of them.
func percentFor(live uint64) int {
	if live == 0 {
		return mostPercent
	}
	return int(min(mostPercent, max(leastPercent, moreGarbage*100/live)))
}

// liveHeap returns how many bytes the last collection found in use.
func liveHeap() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64()
}

// afterCollections has something done after each collection from now on: each frees the mark of the one before.
func afterCollections(do func()) {
	mark := &struct{ _ [16]byte }{}
	runtime.AddCleanup(mark, func(do func()) {
		afterCollections(do)
		do()
	}, do)
}
