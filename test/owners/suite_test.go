// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package owners

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin   client.WithWatch
	running *harness.Operator
)

func TestOwners(t *testing.T) {
	suite.Run(t, "What the people of a namespace may see and do", suite.BuildTimeout+10*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	binary := suite.Async(ctx, suite.Operator)
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	admin = suite.Client(cluster.Config(), suite.Deadline)
	suite.Install(ctx, cluster)
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: suite.Kubeconfig(cluster), Args: []string{"--status-interval", "100ms"},
	})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(suite.BuildTimeout))

// A failure is told with what the operator said last.
var _ = JustAfterEach(func() { suite.ReportLog(running) })

var _ = AfterSuite(func() { suite.Stop(cluster, running) })

// as returns the client of a user.
func as(user string, groups ...string) client.WithWatch {
	GinkgoHelper()
	return suite.Client(cluster.As(user, groups...), suite.Deadline)
}

// namespace makes a namespace.
func namespace(ctx context.Context, name string) string {
	GinkgoHelper()
	Expect(admin.Create(ctx, builders.Namespace(name).Obj())).To(Succeed())
	return name
}

// granted gives a user a ClusterRole in a namespace, and returns the user's client.
// It takes effect a moment later.
func granted(ctx context.Context, namespace, role, user string) client.WithWatch {
	GinkgoHelper()
	Expect(admin.Create(ctx, bindingOf(namespace, role, user))).To(Succeed())
	return as(user)
}

func bindingOf(namespace, role, user string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: builders.Meta(namespace, role+"-"+user),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// grantedEverywhere gives a user a ClusterRole in all namespaces.
func grantedEverywhere(ctx context.Context, role, user string) client.WithWatch {
	GinkgoHelper()
	binding := bindingOf("", role, user)
	everywhere := &rbacv1.ClusterRoleBinding{ObjectMeta: binding.ObjectMeta, RoleRef: binding.RoleRef, Subjects: binding.Subjects}
	Expect(admin.Create(ctx, everywhere)).To(Succeed())
	return as(user)
}

// notBeAllowed matches RBAC's answer to who hasn't the right.
func notBeAllowed(verb, resource string) gomegatypes.GomegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("cannot %s resource %q", verb, resource)))
}
