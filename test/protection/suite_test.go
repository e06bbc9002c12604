/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package protection

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin client.Client
	// owner may do everything with the operator's types, by RBAC.
	owner client.Client
	// running is the operator, and settings what it was started with.
	running  *harness.Operator
	settings harness.OperatorOptions
)

func TestProtection(t *testing.T) {
	suite.Run(t, "What the operator keeps", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	binary := suite.Async(ctx, suite.Operator)
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	suite.Install(ctx, cluster)
	admin = suite.Client(cluster.Config(), suite.Deadline)
	suite.Kubectl(ctx, cluster, "create", "clusterrole", "owner", "--verb=*", "--resource=*.quota.sharedquota.dev")
	suite.Kubectl(ctx, cluster, "create", "clusterrolebinding", "owner", "--clusterrole=owner", "--user=vera")
	vera, err := cluster.User("vera")
	Expect(err).NotTo(HaveOccurred())
	owner = suite.Client(vera, suite.Deadline)

	settings = harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: suite.Kubeconfig(cluster), Args: []string{"--status-interval", "100ms"},
	}
	start(ctx)
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() { suite.ReportLog(running) })

var _ = AfterSuite(func() { suite.Stop(cluster, running) })

func start(ctx context.Context) {
	GinkgoHelper()
	var err error
	running, err = cluster.StartOperator(ctx, settings)
	Expect(err).NotTo(HaveOccurred())
	settings.WebhookPort = running.WebhookPort
}
