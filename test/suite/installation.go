// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// What config/default installs.
const (
	// Namespace is the operator's own.
	Namespace = "shared-quota-system"
	// ServiceAccount is the operator's, in its namespace, and User who that is to the
	// API server.
	ServiceAccount = "shared-quota-manager"
	User           = "system:serviceaccount:" + Namespace + ":" + ServiceAccount
	// CertSecret is the Secret for the webhook's certificate that its Role names.
	CertSecret = "shared-quota-webhook-cert"
	// Deployment is the operator's, and WebhookService the Service through which the API
	// server reaches it.
	Deployment     = "shared-quota-manager"
	WebhookService = "shared-quota-webhook"
)

// Install applies config/default, and returns once its types are served.
func Install(ctx context.Context, cluster *harness.Cluster) {
	GinkgoHelper()
	InstallFrom(ctx, cluster, "config/default")
}

// InstallFrom applies a kustomization that installs what config/default does, but for
// what it leaves out, and returns once its types are served.
func InstallFrom(ctx context.Context, cluster *harness.Cluster, kustomization string) {
	GinkgoHelper()
	Kubectl(ctx, cluster, "apply", "-k", kustomization)
	Kubectl(ctx, cluster, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")
}

// Identity is the operator with the rights that config/default gives it, as a pod's
// token would make it.
func Identity(cluster *harness.Cluster) *rest.Config {
	GinkgoHelper()
	identity, err := cluster.User(User, "system:serviceaccounts", "system:serviceaccounts:"+Namespace)
	Expect(err).NotTo(HaveOccurred())
	return identity
}

// Kubeconfig returns the path of a kubeconfig file with the operator's Identity.
func Kubeconfig(cluster *harness.Cluster) string {
	GinkgoHelper()
	path, err := cluster.WriteKubeconfig("operator", Identity(cluster))
	Expect(err).NotTo(HaveOccurred())
	return path
}
