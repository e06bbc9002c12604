// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercentFor(t *testing.T) {
	for name, test := range map[string]struct {
		live uint64
		want int
	}{
		"nothing is known yet":                  {0, 300},
		"a small heap grows to four times":      {10 << 20, 300},
		"a large heap has a bounded garbage":    {96 << 20, 100},
		"a very large one isn't collected more": {10 << 30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentFor(test.live); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheCollectorFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	tuneCollector()
	large := make([]byte, 256<<20)
	comesTo(t, func(percent int) bool { return percent < 40 })
	runtime.KeepAlive(large)
	comesTo(t, func(percent int) bool { return percent > 100 })
}

// comesTo collects until the percentage is so.
func comesTo(t *testing.T, isSo func(int) bool) {
	t.Helper()
	got := 0
	for range 200 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond) // cleanups run beside
		got = debug.SetGCPercent(-1)
		if debug.SetGCPercent(got); isSo(got) {
			return
		}
	}
	t.Errorf("it stays at %d percent", got)
}
