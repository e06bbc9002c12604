// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// buildTimeout covers builds of the operator from nothing.
	buildTimeout = 20 * time.Minute
	// reservationTTL is longer than the suite takes, so that what is in flight stays.
	reservationTTL = 30 * time.Minute
)

// releases are builds of the operator.
type releases struct {
	// now is this release. It knows encoding 2 alone.
	now string
	// next reads encoding 3, and writes 2; afterNext writes 3.
	next, afterNext string
}

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// api is the admin's client. It reads from the API server.
	api   client.WithWatch
	built releases
	// truth is the judge.
	truth *judge.Judge
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestUpgrade(t *testing.T) {
	suite.Run(t, "Releases of the operator", buildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	builds := suite.Async(ctx, build)
	cluster, _ = suite.Start(ctx, harness.Options{CRDDirs: []string{}, Production: true})
	suite.StartControllers(ctx, cluster)
	api = suite.Client(cluster.Config(), 0) // a watch lasts as long as a rollout
	var err error
	truth, err = judge.Start(context.WithoutCancel(ctx), cluster.EtcdURL())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(truth.Stop)
	built = <-builds
}, NodeTimeout(buildTimeout))

// build makes all releases.
func build(ctx context.Context) releases {
	GinkgoHelper()
	const raised = "-X github.com/sharedquota/shared-quota-operator/internal/ledgerstore.raised=yes"
	dir := GinkgoT().TempDir()
	made := releases{
		next: filepath.Join(dir, "next"), afterNext: filepath.Join(dir, "after-next"),
	}
	overlay := suite.NextRelease(dir)
	var builds errgroup.Group
	builds.Go(func() (err error) { made.now, err = harness.OperatorBinary(ctx, dir); return err })
	for path, flags := range map[string][]string{
		made.next:      {"-overlay", overlay},
		made.afterNext: {"-overlay", overlay, "-ldflags", raised},
	} {
		builds.Go(func() error { _, err := harness.BuildOperator(ctx, path, flags...); return err })
	}
	Expect(builds.Wait()).To(Succeed())
	return made
}
