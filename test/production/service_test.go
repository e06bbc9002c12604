// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	quota     = "team"
	namespace = "team-web"
	hard      = 4
)

var _ = Describe("Replicas behind their Service", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(admin.Create(ctx, builders.Namespace(namespace).Label("team", quota).Obj())).To(Succeed())
		limits := builders.Quota(quota).Label("team", quota).Hard("count/configmaps", fmt.Sprint(hard)).Obj()
		// The API server hears of the Service's endpoints a moment after they are stored.
		Eventually(ctx, func(ctx context.Context) error { return admin.Create(ctx, limits) }).Should(Succeed())
		suite.WaitUntilEnforced(ctx, admin, quota)
		// Enforced is said a moment before the API server asks.
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			before := asked(ctx, replicas[0]) + asked(ctx, replicas[1])
			g.Expect(admin.Create(ctx, builders.ConfigMap(namespace, "probe"), client.DryRunAll)).To(Succeed())
			g.Expect(asked(ctx, replicas[0]) + asked(ctx, replicas[1])).To(BeNumerically(">", before))
		}).Should(Succeed())
	})

	It("admit what fits and refuse the rest, with the Service's name in the configuration alone", func(ctx SpecContext) {
		for i := range hard {
			Expect(create(ctx, i)).To(Succeed())
		}
		Expect(create(ctx, hard)).To(beRefused())
		Expect(suite.Kubectl(ctx, cluster, "get", "validatingwebhookconfigurations", "-o",
			"jsonpath={range .items[*].webhooks[*]}{.clientConfig.service.namespace}/{.clientConfig.service.name}{.clientConfig.url}{'\\n'}{end}")).
			To(MatchRegexp(`^(%s/%s\n)+$`, suite.Namespace, suite.WebhookService))
	})

	It("share the calls", suite.Since(sharedSince), func(ctx SpecContext) {
		wantAsked(ctx, replicas...)
		AddReportEntry("calls", counts(ctx))
	})

	It("act as their ServiceAccount, and elect the one that leads in their own namespace", func(ctx SpecContext) {
		review := &authenticationv1.SelfSubjectReview{}
		Expect(suite.Client(operator.Identity(), suite.Deadline).Create(ctx, review)).To(Succeed())
		Expect(review.Status.UserInfo.Username).To(Equal(suite.User))
		var leases coordinationv1.LeaseList
		Expect(admin.List(ctx, &leases, client.InNamespace(suite.Namespace))).To(Succeed())
		Expect(leases.Items).To(HaveLen(1))
		Expect(leases.Items[0].Spec.HolderIdentity).NotTo(HaveValue(BeEmpty()))
	})

	It("leave it to the leader to watch the views, which change all the time", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) int { return watches(ctx, "localresourcequotas") }).Should(Equal(1))
		Expect(watches(ctx, "quotaledgers")).To(Equal(len(replicas)))
	})

	It("are the only ones who write what they keep", func(ctx SpecContext) {
		ledger := &quotav1.QuotaLedger{ObjectMeta: builders.Meta("", quota)}
		forget := client.RawPatch(types.MergePatchType, []byte(`{"entries":{"used":null}}`))
		Expect(admin.Patch(ctx, ledger, forget)).To(MatchError(ContainSubstring("is written by the shared quota operator alone")))
	})

	It("lose no call when one of them stops, and none when it comes back", func(ctx SpecContext) {
		calls := 0
		stopped := make(chan error)
		go func() { stopped <- operator.Stop(replicas[0]) }()
		for done := false; !done; calls++ {
			select {
			case err := <-stopped:
				Expect(err).NotTo(HaveOccurred())
				done = true
			default:
			}
			Expect(create(ctx, hard)).To(beRefused())
		}
		AddReportEntry("calls while one stopped", calls)
		waitUntilReady(replicas[1])
		replicas[0] = start(ctx, 0)
		waitUntilReady(replicas...)
		wantAsked(ctx, replicas...)
	})

	It("answer for one that is killed", func(ctx SpecContext) {
		Expect(replicas[1].Kill()).To(Succeed())
		waitUntilReady(replicas[0])
		before := asked(ctx, replicas[0])
		// Calls that are handed to the address of the one that was killed fail, until
		// the API server has learned that it is gone.
		waitUntilAnswered(ctx)
		const calls = 20
		for range calls {
			Expect(create(ctx, hard)).To(beRefused())
		}
		Expect(asked(ctx, replicas[0])).To(BeNumerically(">", before+calls))
		replicas[1] = start(ctx, 1)
		waitUntilReady(replicas...)
		wantAsked(ctx, replicas...)
	})

	It("answer for one that is paused, once its probes fail", func(ctx SpecContext) {
		// A leader that is paused for longer than it may lead ends when it goes on.
		Eventually(ctx, leader).ShouldNot(Equal(-1))
		paused, other := replicas[1-leader(ctx)], replicas[leader(ctx)]
		paused.Pause()
		waitUntilReady(other)
		waitUntilAnswered(ctx)
		before := asked(ctx, other)
		Expect(create(ctx, hard)).To(beRefused())
		Expect(asked(ctx, other)).To(BeNumerically(">", before))
		paused.Resume()
		waitUntilReady(replicas...)
		wantAsked(ctx, replicas...)
	})

	It("are missed when there is none: what is limited is refused", func(ctx SpecContext) {
		for _, replica := range replicas {
			Expect(operator.Stop(replica)).To(Succeed())
		}
		waitUntilReady()
		Eventually(ctx, func(ctx context.Context) error { return create(ctx, hard) }).
			Should(MatchError(ContainSubstring(`no endpoints available for service "` + suite.WebhookService + `"`)))
		for i := range replicas {
			replicas[i] = start(ctx, i)
		}
		waitUntilReady(replicas...)
		Eventually(ctx, func(ctx context.Context) error { return create(ctx, hard) }).Should(beRefused())
	})
})

// create creates the object of a number.
func create(ctx context.Context, i int) error {
	return admin.Create(ctx, builders.ConfigMap(namespace, fmt.Sprintf("c%d", i)))
}

// waitUntilAnswered returns once many calls in a row are answered: a single one may be handed
// to the right replica by chance.
func waitUntilAnswered(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		for range 20 {
			g.Expect(create(ctx, hard)).To(beRefused())
		}
	}).Should(Succeed())
}

// sharedSince is the version of Kubernetes since which an API server chooses a replica for each call. An older one does for
// each connection, and a caller alone keeps to one.
const sharedSince = "1.37"

// wantAsked makes calls until each of the replicas was handed some. On a version before sharedSince it does nothing.
func wantAsked(ctx context.Context, asking ...*harness.Operator) {
	GinkgoHelper()
	if !suite.IsSince(ctx, sharedSince) {
		return
	}
	before := make([]int, len(asking))
	for i, replica := range asking {
		before[i] = asked(ctx, replica)
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		for range 10 {
			g.Expect(create(ctx, hard)).To(beRefused())
		}
		for i, replica := range asking {
			g.Expect(asked(ctx, replica)).To(BeNumerically(">", before[i]), replica.Name())
		}
	}).Should(Succeed())
}

// beRefused matches the refusal of one more than the quota allows.
func beRefused() OmegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("exceeded quota: "+quota)))
}
