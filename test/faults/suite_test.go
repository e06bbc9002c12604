// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// reservationTTL is the shortest that the operator takes.
	reservationTTL = 40 * time.Second
	// buildTimeout covers builds of the operator from nothing.
	buildTimeout = 20 * time.Minute
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// api is the admin's client. It reads from the API server.
	api client.Client
	// truth is the judge.
	truth *judge.Judge
	// replicas are those of the operator.
	replicas *deployment
	// disruptions are what was broken when.
	disruptions = &load.Disruptions{}
	// worlds are those whose end is still to be judged; worldsMade counts all.
	worlds     []*world
	worldsMade int
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestFaults(t *testing.T) {
	suite.Run(t, "Replicas under faults", buildTimeout+stormDuration()+20*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	AddReportEntry("seed", fmt.Sprintf("FAULTS_SEED=%d", seed()))

	binary := suite.Async(ctx, suite.Operator)
	cluster, _ = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true, KeepDir: os.Getenv("FAULTS_KEEP") != ""})
	api = suite.Client(cluster.Config(), 0)
	var err error
	truth, err = judge.Start(context.WithoutCancel(ctx), cluster.EtcdURL())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(truth.Stop)
	replicas = newDeployment(ctx, <-binary)
	DeferCleanup(replicas.stop)
	replicas.start(ctx, replicas.places[0])
}, NodeTimeout(buildTimeout))

// A failure is told with what went wrong for the replicas last.
var _ = JustAfterEach(func() {
	if !CurrentSpecReport().Failed() || cluster == nil {
		return
	}
	said := suite.OperatorLogs(cluster)
	for _, name := range slices.Sorted(maps.Keys(said)) {
		lines := slices.DeleteFunc(said[name], func(line string) bool {
			return strings.Contains(line, `"level":"info"`) && !strings.Contains(line, "could not be decided")
		})
		AddReportEntry("the last troubles of "+name, strings.Join(lines[max(0, len(lines)-10):], "\n"), ReportEntryVisibilityFailureOrVerbose)
	}
})

// seed is what all randomness begins with.
func seed() uint64 {
	given, err := strconv.ParseUint(os.Getenv("FAULTS_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return given
}

// random returns a generator of its own for one purpose.
func random(purpose uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed(), purpose))
}

// stormDuration is how long faults of all kinds go on together.
func stormDuration() time.Duration {
	given, err := time.ParseDuration(strings.TrimSpace(os.Getenv("FAULTS_DURATION")))
	if err != nil {
		return 0
	}
	return given
}
