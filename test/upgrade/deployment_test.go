// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"

	. "github.com/onsi/ginkgo/v2"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// replicas are those of the operator, and release the program that those are which start from now on.
var (
	replicas *suite.Replicas
	release  string
)

// begin installs the operator, and runs replicas of a release until the spec has ended. Each spec does, for another one
// may have removed it.
func begin(ctx context.Context, of string) {
	GinkgoHelper()
	suite.Install(ctx, cluster)
	runInstalled(ctx, of)
}

// runInstalled is begin with what is installed already, and with further arguments.
func runInstalled(ctx context.Context, of string, args ...string) {
	GinkgoHelper()
	release = of
	replicas = suite.RunReplicas(ctx, cluster, suite.Namespace, func(string) string { return release },
		// In a shorter time, clients that send little may not have used each of their connections once more.
		append([]string{"--shutdown-delay-duration=3s", "--status-interval=100ms", "--reservation-ttl=" + reservationTTL.String()}, args...)...)
	DeferCleanup(replicas.End)
}

// roll replaces the replicas one by one by those of a release, and calls between while
// replicas of both releases run.
func roll(ctx context.Context, to string, between func()) {
	GinkgoHelper()
	release = to
	replicas.Roll(ctx, between)
}
