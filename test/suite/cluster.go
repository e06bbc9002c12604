// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// clusters are those that run.
var clusters []*harness.Cluster //nolint:gochecknoglobals // a report of Ginkgo's can't be given any

// Start starts a control plane, and returns it with its admin's client. Both end with the suite, the container or the
// spec that it is called for. Whatever was started must have run to that end, and logged nothing that no operator may.
func Start(ctx context.Context, options harness.Options) (*harness.Cluster, client.WithWatch) {
	GinkgoHelper()
	cluster, err := harness.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	clusters = append(clusters, cluster)
	DeferCleanup(func() {
		clusters = slices.DeleteFunc(clusters, func(one *harness.Cluster) bool { return one == cluster })
		stopped := cluster.StopStarted()
		checkOperatorLogs(cluster)
		Expect(errors.Join(stopped, cluster.Stop())).To(Succeed())
	})
	return cluster, Client(cluster.Config(), Deadline)
}

// StartControllers runs Kubernetes' controllers; all of them unless args say otherwise.
func StartControllers(ctx context.Context, cluster *harness.Cluster, args ...string) {
	GinkgoHelper()
	_, err := cluster.StartControllerManager(ctx, args...)
	Expect(err).NotTo(HaveOccurred())
}

// Create creates objects. The API server hears of replicas that were started a moment later, so what it can't have
// judged is tried again.
func Create(ctx context.Context, api client.Client, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Eventually(ctx, func(ctx context.Context) error {
			err := api.Create(ctx, object)
			if apierrors.IsAlreadyExists(err) {
				return StopTrying("it is there already").Wrap(err)
			}
			return err
		}).Should(Succeed(), "%T %s", object, object.GetName())
	}
}

// Client returns a client that reads from the API server. timeout is for each request,
// a watch included; 0 sets no limit.
func Client(config *rest.Config, timeout time.Duration) client.WithWatch {
	GinkgoHelper()
	limited := rest.CopyConfig(config)
	limited.Timeout = timeout
	made, err := client.NewWithWatch(limited, client.Options{Scheme: scheme()})
	Expect(err).NotTo(HaveOccurred())
	return made
}

// scheme has Kubernetes' own types, CRDs and ours.
func scheme() *runtime.Scheme {
	GinkgoHelper()
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, quotav1.AddToScheme,
	} {
		Expect(add(types)).To(Succeed())
	}
	return types
}

// Kubectl runs kubectl as admin in the repository's root, and returns what it prints.
func Kubectl(ctx context.Context, cluster *harness.Cluster, args ...string) string {
	GinkgoHelper()
	return KubectlStdin(ctx, cluster, "", args...)
}

// KubectlStdin is Kubectl that reads this.
func KubectlStdin(ctx context.Context, cluster *harness.Cluster, stdin string, args ...string) string {
	GinkgoHelper()
	result, err := cluster.KubectlIn(ctx, RepositoryRoot(), strings.NewReader(stdin), args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), "kubectl %v:\n%s%s", args, result.Stdout, result.Stderr)
	return result.Stdout
}
