// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// namespace is where the administrator has OLM install the operator: another
	// one than the bundle suggests.
	namespace   = "quota-elsewhere"
	inNamespace = client.InNamespace(namespace)
)

// What the whole suite shares.
var (
	given   bundle
	cluster *harness.Cluster
	// admin is a member of system:masters.
	admin client.Client
	// operator is the operator's user, through admin's connection.
	operator client.Client
	replicas *suite.Replicas
	audit    suite.Audit
	// path is the operator's binary.
	path string
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestOLM(t *testing.T) {
	suite.Run(t, "The OLM bundle", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	given = readBundle()
	binary := suite.Async(ctx, suite.Operator)
	user := "system:serviceaccount:" + namespace + ":" + given.account()
	var flags map[string]string
	audit, flags = suite.NewAudit(user)
	cluster, admin = suite.Start(ctx, harness.Options{CRDDirs: []string{olmTypes()}, Production: true, APIServerFlags: flags})
	suite.StartControllers(ctx, cluster)
	as := cluster.As(user, "system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	operator = suite.Client(as, suite.Deadline)
	suite.Create(ctx, admin, builders.Namespace(namespace).Label("pod-security.kubernetes.io/enforce", "restricted").Obj())
	install(ctx, given)
	suite.KubectlStdin(ctx, cluster, inOurNamespace("config/olm/extras.yaml"), "apply", "--validate=strict", "-f", "-")

	path = <-binary
	runReplicas(ctx)
	DeferCleanup(func() { replicas.End() })
}, NodeTimeout(suite.BuildTimeout))

// runReplicas runs the pods of the Deployment.
func runReplicas(ctx context.Context) {
	GinkgoHelper()
	replicas = suite.RunReplicas(ctx, cluster, namespace, func(string) string { return path })
}
