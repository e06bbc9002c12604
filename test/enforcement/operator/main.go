// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operator is the operator without preflight, waiting and waking.
package main

import (
	"os"

	"github.com/sharedquota/shared-quota-operator/internal/manager"
)

func main() {
	os.Exit(manager.Main("dev", "", manager.People{}))
}
