// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager is the shared quota operator: it counts, enforces and reports
// what namespaces share under ClusterResourceQuotas.
package main

import (
	"os"

	"github.com/sharedquota/shared-quota-operator/internal/manager"
)

// The linker sets these.
//
//nolint:gochecknoglobals // the linker sets nothing else
var (
	// version is that of a release.
	version = "dev"
	// clockOffset names the environment variable that says by how much this program's clock is wrong, as a duration. It
	// is empty but in binaries that tests link with -X main.clockOffset=CLOCK_OFFSET.
	clockOffset string
)

func main() {
	os.Exit(manager.Main(version, clockOffset, manager.People{Preflight: true, Waiting: true}))
}
