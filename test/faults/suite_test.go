// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// reservationTTL is the shortest that the operator takes.
	reservationTTL = 56 * time.Second
	// clockAhead is by how much the second replica's clock is wrong.
	clockAhead = 20 * time.Second
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
	// evidence is what is known of requests and edits.
	evidence = newWitness()
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

	binaries := suite.Async(ctx, func(ctx context.Context) [2]string {
		return [2]string{suite.Operator(ctx), operatorAhead(ctx)}
	})
	startControlPlane(ctx)
	built := <-binaries
	replicas = newDeployment(ctx, built[0], built[1])
	replicas.start(ctx, replicas.places[0])
}, NodeTimeout(buildTimeout))

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	if replicas != nil {
		replicas.stop()
	}
	suite.CheckOperatorLogs(cluster)
	if truth != nil {
		Expect(truth.Stop()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
})

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

func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{
		CRDDirs: []string{}, Production: true, KeepDir: os.Getenv("FAULTS_KEEP") != "",
	})
	Expect(err).NotTo(HaveOccurred())
	config := rest.CopyConfig(cluster.Config())
	config.WarningHandlerWithContext = load.Warnings{}
	api = suite.Client(config, 0)
	truth, err = judge.Start(context.WithoutCancel(ctx), cluster.EtcdURL(), judge.Recording(),
		judge.Hearing(schema.GroupResource{Group: quotav1.GroupVersion.Group, Resource: "quotaledgers"}, evidence.readLedger))
	Expect(err).NotTo(HaveOccurred())
}

// operatorAhead returns one whose clock is ahead.
func operatorAhead(ctx context.Context) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "manager-ahead")
	binary, err := harness.BuildOperator(ctx, path, "-ldflags", "-X main.clockOffset="+clockAhead.String())
	Expect(err).NotTo(HaveOccurred())
	return binary
}

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
