// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// Serial, because it keeps both cores busy: beside other specs, creating such a quota may take the ten seconds that the
// API server gives a webhook.
var _ = Describe("Selectors that are too large for the webhook configuration", Serial, func() {
	const soon = 90 * time.Second // on slow cores

	It("are widened: each quota is enforced, and the token and the certificate are replaced", longest, func(ctx SpecContext) {
		own, _ := suite.Start(ctx, harness.Options{})
		options := harness.OperatorOptions{Binary: settings.Binary}
		operator, err := own.StartOperator(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		admin := suite.Client(own.Config(), deadline)

		// configured returns the configuration, which is below 1 MiB.
		configured := func(g Gomega, ctx context.Context) *webhookConfiguration {
			current := &webhookConfiguration{}
			g.Expect(admin.Get(ctx, client.ObjectKey{Name: webhookconfig.ConfigurationName}, current)).To(Succeed())
			text, err := json.Marshal(current)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(text)).To(BeNumerically("<", 1<<20))
			return current
		}
		wantEnforced := func(sort string) {
			GinkgoHelper()
			began := time.Now()
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				var all quotav1.ClusterResourceQuotaList
				g.Expect(admin.List(ctx, &all)).To(Succeed())
				for i := range all.Items {
					g.Expect(conditionOf(&all.Items[i], quotav1.ConditionEnforced)).To(HavePrefix("True"), all.Items[i].Name)
				}
			}).WithPolling(500 * time.Millisecond).WithTimeout(soon).Should(Succeed())
			AddReportEntry(sort+": enforced after", time.Since(began).Round(100*time.Millisecond))
			configured(Default, ctx)
		}
		wantLimited := func(namespace string) {
			GinkgoHelper()
			Expect(admin.Create(ctx, builders.Namespace(namespace).Obj())).To(Succeed())
			Expect(admin.Create(ctx, builders.ConfigMap(namespace, "fits"))).To(Succeed())
			Expect(admin.Create(ctx, builders.ConfigMap(namespace, "is-too-much"))).To(MatchError(ContainSubstring("exceeded quota")))
		}
		// Names are as long as names can be.
		name := func(sort string, quota, i int) string {
			return fmt.Sprintf("%s-%0*d-%03d", sort, 63-len(sort)-len("--000"), i, quota)
		}
		for _, of := range []struct {
			sort         string
			quotas, each int
		}{{"thousand", 24, 1000}, {"most", 1, 13_000}, {"many", 30, 800}} {
			var creating errgroup.Group
			creating.SetLimit(4)
			for i := range of.quotas {
				names := make([]string, 0, of.each)
				for j := range of.each {
					names = append(names, name(of.sort, i, j))
				}
				quota := builders.Quota(fmt.Sprint(of.sort, "-", i)).Hard("configmaps", "1").LabelIn("kubernetes.io/metadata.name", names...).Obj()
				creating.Go(func() error { return admin.Create(ctx, quota) })
			}
			Expect(creating.Wait()).To(Succeed())
			wantEnforced(of.sort)
			wantLimited(name(of.sort, 0, 0))
			if of.quotas > 1 {
				wantLimited(name(of.sort, of.quotas-1, of.each-1))
			}
		}
		Expect(admin.Create(ctx, builders.Namespace("selected-by-none").Obj())).To(Succeed())
		for i := range 3 {
			Expect(admin.Create(ctx, builders.ConfigMap("selected-by-none", fmt.Sprint("free-", i)))).To(Succeed())
		}

		By("starting an operator with another certificate")
		entry := configured(Default, ctx).Webhooks[0].ClientConfig
		Expect(operator.Kill()).To(Succeed())
		_, err = own.StartOperator(ctx, options)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			replaced := configured(g, ctx).Webhooks[0].ClientConfig
			g.Expect(replaced.CABundle).NotTo(Equal(entry.CABundle))
			g.Expect(ptr.Deref(replaced.URL, "")).NotTo(Equal(ptr.Deref(entry.URL, "")))
		}).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			return admin.Create(ctx, builders.ConfigMap(name("most", 0, 0), "is-too-much"))
		}).Should(MatchError(ContainSubstring("exceeded quota")))
		wantEnforced("another certificate")
	})
})
