// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// listable returns what a quota calls the kinds that the API server serves in namespaces,
// and lists; without Events, on which Kubernetes keeps no quota, and the operator's own,
// which nobody else writes. The operator counts ResourceClaims of resource.k8s.io/v1 alone.
func listable(ctx context.Context) []corev1.ResourceName {
	GinkgoHelper()
	asking, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	served, err := asking.ServerPreferredNamespacedResourcesWithContext(ctx)
	Expect(err).NotTo(HaveOccurred())
	var names []corev1.ResourceName
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range list.APIResources {
			if version.Group != quotav1.GroupVersion.Group && kind.Kind != "Event" && slices.Contains(kind.Verbs, "list") {
				names = append(names, corev1.ResourceName("count/"+version.WithResource(kind.Name).GroupResource().String()))
			}
		}
	}
	Expect(len(names)).To(BeNumerically(">", 30), "%v", names)
	if !suite.IsSince(ctx, devicesSince) {
		names = slices.DeleteFunc(names, func(name corev1.ResourceName) bool { return name == "count/resourceclaims.resource.k8s.io" })
	}
	return names
}

// countAll has the operator count them all for a while.
func countAll(ctx context.Context, names []corev1.ResourceName) {
	GinkgoHelper()
	mustCreate(ctx, builders.Namespace("kinds").Label("team", "kinds").Obj())
	limits := builders.Quota("kinds").Label("team", "kinds")
	for _, name := range names {
		limits.Hard(name, "1000")
	}
	quota := limits.Obj()
	mustCreate(ctx, quota)
	counted := suite.WaitUntilEnforced(ctx, admin, quota.Name)
	Expect(counted).To(beCountable())
	Expect(counted.Status.Total.Used).To(HaveLen(len(names)))
	Expect(admin.Delete(ctx, quota)).To(Succeed())
	namespace := builders.Namespace("kinds").Obj()
	Expect(admin.Delete(ctx, namespace)).To(Succeed())
	Eventually(ctx, suite.Gone(admin, namespace)).Should(BeTrue())
}

func beCountable() gomegatypes.GomegaMatcher {
	return suite.HaveCondition(quotav1.ConditionResourceUnavailable, HavePrefix("False AllAvailable: "))
}
