// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A namespace whose requests fail after they were admitted", func() {
	It("leaves most of what is free to the others, and is told why", func(ctx SpecContext) {
		const room, attempts, clients = 50, 60, 20
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", fmt.Sprint(room)))
		failing, others := team.namespace(ctx), team.namespace(ctx)
		suite.RefuseAll(ctx, api, failing)
		create := func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(failing, "client").Generated().Obj())
		}
		Expect(create(ctx)).To(MatchError(ContainSubstring(suite.Refusing)))

		By("showing who holds room for what doesn't appear")
		doubtful := func(ctx context.Context) []quotav1.DoubtfulReservations {
			current := &quotav1.ClusterResourceQuota{}
			Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
			return current.Status.Doubtful
		}
		one := corev1.ResourceList{"pods": resource.MustParse("1")}
		Eventually(ctx, doubtful).Should(ConsistOf(quotav1.DoubtfulReservations{Namespace: failing, Count: 1, Amounts: one}))

		By("letting it try over and over")
		var group sync.WaitGroup
		for range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for range attempts / clients {
					Expect(create(ctx)).NotTo(Succeed())
				}
			})
		}
		group.Wait()
		Expect(reservations(ctx, quota)).To(HaveLen(room / 5))

		By("telling it, of two refusals the API server shows any")
		refusing := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		refusing.Name = suite.Refusing + "-" + failing
		Expect(api.Delete(ctx, refusing)).To(Succeed())
		Eventually(ctx, create).Should(BeRefused(fmt.Sprintf("too much in doubt for quota: %s, requested: pods=1, "+
			"held for missing objects: pods=10, allowed for missing objects: pods=10 (requests in this namespace were admitted and their "+
			"objects don't appear: find out what refuses these objects, such as another webhook or a policy, correct it, and try again "+
			"once their reservations have expired, by default after a minute)", quota.Name)))

		By("letting others have what is free")
		for i := range room - room/5 {
			mustCreate(ctx, builders.Pod(others, fmt.Sprintf("p%d", i)).Obj())
		}
		Expect(doubtful(ctx)).To(HaveLen(1))
	})
})
