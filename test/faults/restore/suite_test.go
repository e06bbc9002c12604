// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// binary is the operator.
var binary string

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestRestore(t *testing.T) {
	suite.Run(t, "Restored backups", buildTimeout+20*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	binary = suite.Operator(ctx)
}, NodeTimeout(buildTimeout))
