// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestPercentFor(t *testing.T) {
	for name, test := range map[string]struct {
		live uint64
		want int
	}{
		"nothing is known yet":                  {0, 300},
		"a small heap grows to four times":      {10 << 20, 300},
		"a larger one has 64 MiB of garbage":    {32 << 20, 200},
		"so has a large one":                    {128 << 20, 50},
		"a very large one isn't collected more": {10 << 30, 30},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentFor(test.live); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheMemoryLimitIsNineTenthsOfTheContainers(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	t.Setenv("GOGC", "100")
	for name, test := range map[string]struct {
		container, own string
		want           int64
		fails          bool
	}{
		"the container has one":       {container: "1000000000", want: 900_000_000},
		"GOMEMLIMIT says otherwise":   {container: "1000000000", own: "1GiB", want: 1 << 40},
		"nobody says":                 {want: 1 << 40},
		"it is in an unreadable form": {container: "1Gi", want: 1 << 40, fails: true},
		"it is negative":              {container: "-1", want: 1 << 40, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(1 << 40)
			t.Setenv("GOMEMLIMIT", test.own)
			t.Setenv(memoryLimit, test.container)
			if err := tuneCollector(); (err != nil) != test.fails {
				t.Error(err)
			}
			if got := debug.SetMemoryLimit(-1); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheCollectorFollowsTheHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	follows := func() int {
		runtime.GC()
		(&collector{}).follow()
		return debug.SetGCPercent(100)
	}
	large := make([]byte, 256<<20)
	if got := follows(); got > 40 {
		t.Errorf("%d percent beside a large heap", got)
	}
	runtime.KeepAlive(large)
	if got := follows(); got < 100 {
		t.Errorf("%d percent beside a small one", got)
	}
}

func TestAfterEachCollection(t *testing.T) {
	collected := make(chan struct{})
	afterCollections(func() {
		select {
		case collected <- struct{}{}:
		case <-t.Context().Done():
		}
	})
	for range 3 {
		runtime.GC()
		<-collected
	}
}
