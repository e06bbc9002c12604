// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
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
	// later is this release, long after reservations made now have expired.
	later string
}

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// api is the admin's client. It reads from the API server.
	api   client.WithWatch
	built releases
	// truth is the judge.
	truth *judge.Judge
	// replicas are those of the operator.
	replicas *deployment
)

func TestUpgrade(t *testing.T) {
	suite.Run(t, "Releases of the operator", buildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	builds := suite.Async(ctx, build)
	startControlPlane(ctx)
	built = <-builds
	replicas = newDeployment(suite.Kubeconfig(cluster))
}, NodeTimeout(buildTimeout))

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	if replicas != nil {
		replicas.remove()
		Expect(replicas.balancer.Close()).To(Succeed())
	}
	if truth != nil {
		Expect(truth.Stop()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
})

func startControlPlane(ctx context.Context) {
	GinkgoHelper()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{
		CRDDirs: []string{},
		// Replicas share the calls only where each has a connection.
		APIServerEnv: []string{"DISABLE_HTTP2=1"},
	})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	// A watch lasts as long as a rollout.
	api = suite.Client(cluster.Config(), 0)
	truth, err = judge.Start(context.WithoutCancel(ctx), cluster.EtcdURL())
	Expect(err).NotTo(HaveOccurred())
}

// build makes all releases.
func build(ctx context.Context) releases {
	GinkgoHelper()
	const raised = "-X github.com/sharedquota/shared-quota-operator/internal/ledgerstore.raised=yes"
	dir := GinkgoT().TempDir()
	made := releases{
		next: filepath.Join(dir, "next"), afterNext: filepath.Join(dir, "after-next"), later: filepath.Join(dir, "later"),
	}
	overlay := suite.NextRelease(dir)
	var builds errgroup.Group
	builds.Go(func() (err error) { made.now, err = harness.OperatorBinary(ctx, dir); return err })
	for path, flags := range map[string][]string{
		made.next:      {"-overlay", overlay},
		made.afterNext: {"-overlay", overlay, "-ldflags", raised},
		made.later:     {"-ldflags", "-X main.clockOffset=1h"},
	} {
		builds.Go(func() error { _, err := harness.BuildOperator(ctx, path, flags...); return err })
	}
	Expect(builds.Wait()).To(Succeed())
	return made
}

// install applies what is installed. Each spec that needs it does, for another one may
// have removed it.
func install(ctx context.Context) {
	GinkgoHelper()
	suite.Install(ctx, cluster)
}
