// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package enforcement

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var api client.WithWatch

func TestEnforcement(t *testing.T) {
	suite.Run(t, "An operator without preflight, waiting and waking", suite.BuildTimeout+5*time.Minute)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	built := suite.Async(ctx, func(ctx context.Context) string { return suite.Build(ctx, dir, "./test/enforcement/operator") })
	var cluster *harness.Cluster
	cluster, api = suite.Start(ctx, harness.Options{})
	_, err := cluster.StartOperator(ctx, harness.OperatorOptions{Binary: <-built, Args: []string{"--status-interval", "100ms"}})
	Expect(err).NotTo(HaveOccurred())
}, NodeTimeout(suite.BuildTimeout))

// controlled is a pod that the ReplicaSet web controls: its owner would wait for room.
func controlled(namespace, name string) client.Object {
	pod := builders.Pod(namespace, name).Obj()
	web := &metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: "3f1c1f8e-7f0c-4a52-a9a5-0d5b3f3c1a11"}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	return pod
}

var _ = Describe("Enforcement alone", func() {
	It("admits what fits in two namespaces together, and refuses what doesn't", func(ctx SpecContext) {
		suite.Create(ctx, api, builders.Namespace("one").Label("team", "shop").Obj(), builders.Namespace("two").Label("team", "shop").Obj(),
			builders.Quota("shop").Label("team", "shop").Hard("pods", "2").Obj())
		suite.WaitUntilEnforced(ctx, api, "shop")
		Expect(api.Create(ctx, controlled("one", "first"))).To(Succeed())
		Expect(api.Create(ctx, controlled("two", "second"))).To(Succeed())
		Expect(api.Create(ctx, controlled("one", "third"))).To(suite.BeExceeded("shop", "pods"))

		By("admitting again once there is room")
		Expect(api.Delete(ctx, builders.Pod("two", "second").Obj())).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, controlled("one", "third")) }).Should(Succeed())
		Eventually(ctx, suite.Used(api, "shop", "pods")).Should(Equal("2"))
	}, SpecTimeout(2*suite.Deadline))

	It("neither judges workloads nor remembers who waits", func(ctx SpecContext) {
		suite.Create(ctx, api, builders.Namespace("full").Label("team", "full").Obj(),
			builders.Quota("full").Label("team", "full").Hard("pods", "0").Obj())
		suite.WaitUntilEnforced(ctx, api, "full")
		Expect(api.Create(ctx, controlled("full", "refused"))).To(suite.BeExceeded("full", "pods"))
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, configuration)).To(Succeed())
		for _, webhook := range configuration.Webhooks {
			Expect(*webhook.ClientConfig.URL).NotTo(ContainSubstring("workloads"))
		}
		Consistently(ctx, suite.Quota(api, "full"), time.Second).Should(HaveField("Status.Waiting", BeNil()))
	}, SpecTimeout(2*suite.Deadline))
})
