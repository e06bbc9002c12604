// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// team is the name of a quota and its namespace, and hard how many ConfigMaps it allows.
const (
	team = "team"
	hard = 4
)

var _ = Describe("Replicas behind their Service", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		fresh(ctx, []string{"--shutdown-delay-duration=5s"}, nil, nil) // as by default
		limited(ctx, builders.Quota(team).Hard("count/configmaps", strconv.Itoa(hard)))
		// Enforced is said a moment before the API server asks.
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			before := asked(ctx, replicas.Running...)
			g.Expect(admin.Create(ctx, builders.ConfigMap(team, "probe"), client.DryRunAll)).To(Succeed())
			g.Expect(asked(ctx, replicas.Running...)).To(BeNumerically(">", before))
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
		wantAsked(ctx)
	})

	It("act as their ServiceAccount, and elect the one that leads in their own namespace", func(ctx SpecContext) {
		review := &authenticationv1.SelfSubjectReview{}
		Expect(suite.Client(replicas.Identity(), suite.Deadline).Create(ctx, review)).To(Succeed())
		Expect(review.Status.UserInfo.Username).To(Equal(suite.User))
		var leases coordinationv1.LeaseList
		Expect(admin.List(ctx, &leases, client.InNamespace(suite.Namespace))).To(Succeed())
		Expect(leases.Items).To(HaveLen(1))
		Expect(leases.Items[0].Spec.HolderIdentity).NotTo(HaveValue(BeEmpty()))
	})

	It("leave it to the leader to watch the views, which change all the time", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) int { return watches(ctx, "localresourcequotas") }).Should(Equal(1))
		Expect(watches(ctx, "quotaledgers")).To(Equal(len(replicas.Running)))
	})

	It("are the only ones who write what they keep", func(ctx SpecContext) {
		ledger := &quotav1.QuotaLedger{ObjectMeta: builders.Meta("", team)}
		Expect(admin.Patch(ctx, ledger, suite.Merge(`{"entries":{"used":null}}`))).To(suite.BeProtected())
	})

	It("lose no call when one of them stops, and none when it comes back", func(ctx SpecContext) {
		calls := 0
		stopped := make(chan struct{})
		go func() {
			defer GinkgoRecover()
			defer close(stopped)
			replicas.Stop(replicas.Running[0])
		}()
		for done := false; !done; calls++ {
			select {
			case <-stopped:
				done = true
			default:
			}
			Expect(create(ctx, hard)).To(beRefused())
		}
		AddReportEntry("calls while one stopped", calls)
		replicas.WaitUntilReady()
		replicas.Add(ctx)
		wantAsked(ctx)
	})

	It("answer for one that is killed", func(ctx SpecContext) {
		replicas.Kill(replicas.Running[1])
		replicas.WaitUntilReady()
		before := asked(ctx, replicas.Running...)
		// Calls that are handed to the address of the one that was killed fail, until
		// the API server has learned that it is gone.
		waitUntilAnswered(ctx)
		const calls = 20
		for range calls {
			Expect(create(ctx, hard)).To(beRefused())
		}
		Expect(asked(ctx, replicas.Running...)).To(BeNumerically(">", before+calls))
		replicas.Add(ctx)
		wantAsked(ctx)
	})

	It("answer for one that is paused, once its probes fail", func(ctx SpecContext) {
		// A leader that is paused for longer than it may lead ends when it goes on.
		Eventually(ctx, leader).ShouldNot(Equal(-1))
		paused, other := replicas.Running[1-leader(ctx)], replicas.Running[leader(ctx)]
		paused.Pause()
		Eventually(replicas.Ready).Should(ConsistOf(other))
		waitUntilAnswered(ctx)
		before := asked(ctx, other)
		Expect(create(ctx, hard)).To(beRefused())
		Expect(asked(ctx, other)).To(BeNumerically(">", before))
		paused.Resume()
		replicas.WaitUntilReady()
		wantAsked(ctx)
	})

	It("end if another was elected while they stood still, and write nothing any more", func(ctx SpecContext) {
		Eventually(ctx, leader).ShouldNot(Equal(-1))
		deposed := replicas.Running[leader(ctx)]
		held := holder(ctx)
		deposed.Pause()
		DeferCleanup(deposed.Resume)
		Eventually(ctx, holder).WithTimeout(40 * time.Second).ShouldNot(Equal(held))
		// The successor replaces the token, which a client may have been told.
		var version string
		Eventually(ctx, func(ctx context.Context) bool {
			before := version
			version = configurationVersion(ctx)
			return before == version
		}).WithPolling(5 * time.Second).Should(BeTrue())
		successor := holder(ctx)

		deposed.Resume()
		began := time.Now()
		replicas.WaitUntilEnded(deposed)
		AddReportEntry("it ended after", time.Since(began).Round(10*time.Millisecond))
		Expect(os.ReadFile(deposed.Log())).To(ContainSubstring("another replica was elected while this one, the leader, stood still"))
		Expect(holder(ctx)).To(Equal(successor), "it gives up no Lease but its own")
		Consistently(ctx, configurationVersion).WithTimeout(2 * time.Second).Should(Equal(version))
		replicas.WaitUntilReady()
		replicas.Add(ctx)
		wantAsked(ctx)
	})

	It("are missed when there is none: what is limited is refused", func(ctx SpecContext) {
		replicas.StopAll()
		replicas.WaitUntilReady()
		Eventually(ctx, func(ctx context.Context) error { return create(ctx, hard) }).
			Should(MatchError(ContainSubstring(`no endpoints available for service "` + suite.WebhookService + `"`)))
		replicas.Scale(ctx, 2)
		Eventually(ctx, func(ctx context.Context) error { return create(ctx, hard) }).Should(beRefused())
	})
})

// create creates the object of a number.
func create(ctx context.Context, i int) error {
	return admin.Create(ctx, builders.ConfigMap(team, fmt.Sprintf("c%d", i)))
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
func wantAsked(ctx context.Context) {
	GinkgoHelper()
	if !suite.IsSince(ctx, sharedSince) {
		return
	}
	before := map[string]int{}
	for _, replica := range replicas.Running {
		before[replica.Name()] = asked(ctx, replica)
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		for range 10 {
			g.Expect(create(ctx, hard)).To(beRefused())
		}
		for _, replica := range replicas.Running {
			g.Expect(asked(ctx, replica)).To(BeNumerically(">", before[replica.Name()]), replica.Name())
		}
	}).Should(Succeed())
}

// beRefused matches the refusal of one more than the quota allows.
func beRefused() OmegaMatcher {
	return suite.BeExceeded(team, "count/configmaps")
}

// holder is who leads by the Lease.
func holder(ctx context.Context) string {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	Expect(admin.Get(ctx, client.ObjectKey{Namespace: suite.Namespace, Name: "shared-quota-operator"}, lease)).To(Succeed())
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

func configurationVersion(ctx context.Context) string {
	GinkgoHelper()
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: webhookconfig.ConfigurationName}, current)).To(Succeed())
	return current.ResourceVersion
}
