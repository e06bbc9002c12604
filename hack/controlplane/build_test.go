// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

func TestCountCompiled(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	for name, test := range map[string]struct {
		output   string
		compiled int64
		rest     []string
	}{
		"nothing":  {},
		"packages": {output: "errors\nk8s.io/api/core/v1\n", compiled: 2},
		"what failed stands for itself": {output: "errors\n# example.org/broken\nmain.go:3:1: syntax error\n", compiled: 1,
			rest: []string{"# example.org/broken", "main.go:3:1: syntax error"}},
		"what follows a line that is too long is read, so that nobody waits": {output: "errors\n" + long + "\nerrors\n", compiled: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var compiled atomic.Int64
			output := strings.NewReader(test.output)
			rest := countCompiled(output, &compiled)
			if !slices.Equal(rest, test.rest) || compiled.Load() != test.compiled || output.Len() > 0 {
				t.Errorf("got %q and %d packages, and %d bytes are left; want %q and %d", rest, compiled.Load(), output.Len(), test.rest, test.compiled)
			}
		})
	}
}
