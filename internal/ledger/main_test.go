// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"flag"
	"os"
	"testing"
)

// TestMain makes properties run long enough to find defects that take several
// unlikely steps: measured by breaking each rule of the ledger in turn, 2000 runs
// find every one of them. It takes about two seconds.
func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if !chosen {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
