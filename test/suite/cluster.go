// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

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
	result, err := cluster.KubectlIn(ctx, RepositoryRoot(), nil, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(BeZero(), "kubectl %v:\n%s%s", args, result.Stdout, result.Stderr)
	return result.Stdout
}

// Stop ends the operator, which must have run to the end, and then the cluster. Each is
// nil if it never started.
func Stop(cluster *harness.Cluster, operator *harness.Operator) {
	GinkgoHelper()
	if cluster == nil {
		return
	}
	if operator != nil {
		Expect(operator.Stop()).To(Succeed())
	}
	Expect(cluster.Stop()).To(Succeed())
}
