// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	gomegatypes "github.com/onsi/gomega/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// settle is how long a replica that could write its configuration again would take for it at most.
const settle = 3 * time.Second

// runDeployment runs the replicas of the Deployment of a namespace.
func runDeployment(ctx context.Context, namespace string, args ...string) *suite.Replicas {
	GinkgoHelper()
	release := func(image string) string {
		if strings.HasSuffix(image, ":v2") {
			return next
		}
		return binary
	}
	return suite.RunReplicas(ctx, cluster, namespace, release, args...)
}

// configurationIsGone reports whether there is no webhook configuration of the operator.
func configurationIsGone(ctx context.Context) bool {
	err := admin.Get(ctx, client.ObjectKey{Name: "shared-quota"}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	return apierrors.IsNotFound(err)
}

func balancer(namespace, name string) *corev1.Service {
	return builders.Service(namespace, name).Type(corev1.ServiceTypeLoadBalancer, 80).Obj()
}

// beFull matches the refusal of a load balancer by the first quota, of which two are used.
func beFull() gomegatypes.GomegaMatcher { return beUsed("2") }

// beOver is beFull with three that are used.
func beOver() gomegatypes.GomegaMatcher { return beUsed("3") }

func beUsed(used string) gomegatypes.GomegaMatcher {
	return suite.BeExceededAt(quotaName, "services.loadbalancers", used, "2")
}
