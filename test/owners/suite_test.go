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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// deadline is what anything may take on a machine that is busy with builds.
	deadline = 60 * time.Second
	poll     = 50 * time.Millisecond
	// buildTimeout covers a build of the operator from nothing.
	buildTimeout = 15 * time.Minute

	// operatorName is the user that config/default lets write.
	operatorName = "system:serviceaccount:shared-quota-system:shared-quota-manager"
)

// What the whole suite shares.
var (
	cluster *harness.Cluster
	scheme  = runtime.NewScheme()
	// admin is a member of system:masters, whom RBAC doesn't ask.
	admin   client.WithWatch
	running *harness.Operator
)

func TestOwners(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = buildTimeout + 10*time.Minute
	RunSpecs(t, "What the people of a namespace may see and do", suite, reporter)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(deadline)
	SetDefaultEventuallyPollingInterval(poll)
	EnforceDefaultTimeoutsWhenUsingContexts()

	binary := make(chan string, 1)
	go func() {
		defer GinkgoRecover()
		defer close(binary)
		path, err := harness.OperatorBinary(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		binary <- path
	}()
	var err error
	cluster, err = harness.Start(ctx, harness.Options{CRDDirs: []string{}})
	Expect(err).NotTo(HaveOccurred())
	_, err = cluster.StartControllerManager(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(quotav1.AddToScheme(scheme)).To(Succeed())
	admin = clientOf(cluster.Config())
	kubectl(ctx, "apply", "-k", "config/default")
	kubectl(ctx, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")

	// As a pod's token would make it.
	identity, err := cluster.User(operatorName, "system:serviceaccounts", "system:serviceaccounts:shared-quota-system")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := cluster.WriteKubeconfig("operator", identity)
	Expect(err).NotTo(HaveOccurred())
	running, err = cluster.StartOperator(ctx, harness.OperatorOptions{
		Binary: <-binary, Kubeconfig: kubeconfig, Args: []string{"--status-interval", "100ms"},
	})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(buildTimeout))

var _ = AfterSuite(func() {
	if cluster == nil {
		return
	}
	if running != nil {
		Expect(running.Stop()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
})

func clientOf(config *rest.Config) client.WithWatch {
	GinkgoHelper()
	config.Timeout = deadline
	made, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return made
}

// as returns the client of a user.
func as(user string, groups ...string) client.WithWatch { return clientOf(cluster.As(user, groups...)) }

// kubectl runs kubectl as admin in the repository's root, and returns what it says.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	root, err := harness.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	result, err := cluster.KubectlIn(ctx, root, nil, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), "kubectl %v:\n%s%s", args, result.Stdout, result.Stderr)
	return result.Stdout
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
