// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
	"github.com/sharedquota/shared-quota-operator/test/wake/crowd"
)

const (
	woken        = "sharedquota_owners_woken_total"
	refusedAgain = "sharedquota_owners_refused_again_total"
)

func viewOf(ctx context.Context, namespace, name string) *quotav1.LocalResourceQuota {
	GinkgoHelper()
	view := &quotav1.LocalResourceQuota{}
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, view)).To(Succeed())
	return view
}

func watchPods(ctx context.Context, of crowd.Crowd) *crowd.Arrivals {
	GinkgoHelper()
	arrivals, err := of.Watch(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(arrivals.Stop)
	return arrivals
}

func count(arrivals *crowd.Arrivals, moment time.Time) func() (int, error) {
	return func() (int, error) {
		after, err := arrivals.Since(moment)
		return len(after), err
	}
}

var _ = Describe("Workloads that were refused", Ordered, func() {
	It("are shown in the quota, and in each namespace those of that namespace", func(ctx SpecContext) {
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			view := &quotav1.LocalResourceQuota{}
			g.Expect(admin.Get(ctx, types.NamespacedName{Namespace: "whole-1", Name: "whole"}, view)).To(Succeed())
			g.Expect(messageOf(view)).To(MatchRegexp("^Blocked True WaitingForRoom: 3 workloads wait for room, the first since " +
				`\S+Z: \w+ owner-\d+ is short of requests.cpu: 100m; each is woken as soon as it fits: ` +
				"delete unneeded objects in any namespace that shares the quota, or ask for a higher limit$"))
			g.Expect(view.Status.Waiting).To(HaveLen(3))
		}).Should(Succeed())
		Expect(messageOf(viewOf(ctx, "whole-"+hog, "whole"))).To(BeEmpty())
	})

	It("have a view that does not change while their refusals go on", func(ctx SpecContext) {
		before := viewOf(ctx, "whole-2", "whole")
		Eventually(ctx, func() time.Duration { return time.Since(began) }).WithTimeout(refused).Should(BeNumerically(">", refused/2))
		Expect(viewOf(ctx, "whole-2", "whole").Status).To(Equal(before.Status))
	})

	It("all get their pods at once when there is room for all", func(ctx SpecContext) {
		arrivals := watchPods(ctx, whole)
		moment := free(ctx, whole.Name, "first", "second")
		Eventually(ctx, count(arrivals, moment)).WithTimeout(2 * refused).Should(Equal(whole.Owners))
		after, err := arrivals.Since(moment)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("room for all", figures(after), ReportEntryVisibilityAlways)
		Expect(crowd.Percentile(after, 99)).To(BeNumerically("<", atOnce), figures(after))
		Eventually(ctx, waiting(whole.Name)).Should(BeZero())
		Eventually(ctx, func(ctx context.Context) string { return messageOf(viewOf(ctx, "whole-1", "whole")) }).Should(
			Equal("Blocked False NoneWaiting: no workload of this namespace waits for room"))
		Expect(counted(ctx, refusedAgain, whole.Name)).To(BeNumerically("<", 0.1*counted(ctx, woken, whole.Name)))
	})

	It("are woken by half when there is room for half", func(ctx SpecContext) {
		arrivals := watchPods(ctx, partly)
		moment := free(ctx, partly.Name, "first")
		Eventually(ctx, count(arrivals, moment)).WithTimeout(2 * refused).Should(Equal(partly.Owners / 2))
		after, err := arrivals.Since(moment)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("room for half", figures(after), ReportEntryVisibilityAlways)
		Expect(crowd.Percentile(after, 99)).To(BeNumerically("<", atOnce), figures(after))
		Consistently(ctx, count(arrivals, moment)).WithTimeout(3 * time.Second).Should(Equal(partly.Owners / 2))
		Eventually(ctx, waiting(partly.Name)).Should(BeEquivalentTo(partly.Owners / 2))
		again, wakes := counted(ctx, refusedAgain, partly.Name), counted(ctx, woken, partly.Name)
		AddReportEntry("room for half", fmt.Sprintf("%.0f wakes, %.0f refused again", wakes, again), ReportEntryVisibilityAlways)
		Expect(wakes).To(BeNumerically(">=", partly.Owners/2))
		Expect(again).To(BeNumerically("<", 0.1*wakes))
	})

	It("don't wait any more once they are deleted", func(ctx SpecContext) {
		for i := range partly.Namespaces {
			for _, kind := range []client.Object{
				builders.ReplicaSet("", ""), builders.StatefulSet("", ""), builders.Job("", ""),
			} {
				Expect(admin.DeleteAllOf(ctx, kind, client.InNamespace(partly.Namespace(i)),
					client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
			}
		}
		Eventually(ctx, waiting(partly.Name)).Should(BeZero())
	})

	It("can't be forged to have others woken", func(ctx SpecContext) {
		victim := builders.ReplicaSet("whole-0", "victim")
		Expect(admin.Create(ctx, victim)).To(Succeed())
		Expect(admin.Create(ctx, builders.Namespace("forged").Label("team", "forged").Obj())).To(Succeed())
		share(ctx, "forged", "200m")
		fill(ctx, "forged", 2)
		for i, owner := range []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: victim.Name, UID: victim.UID, Controller: ptr.To(true)},
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "nobody", UID: "0", Controller: ptr.To(true)},
			{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "1", Controller: ptr.To(true)},
		} {
			pod := builders.Pod("forged", fmt.Sprintf("p%d", i)).Request("cpu", "100m").Obj()
			pod.OwnerReferences = []metav1.OwnerReference{owner}
			Expect(admin.Create(ctx, pod)).To(suite.BeExceeded("forged", "requests.cpu"))
		}
		Eventually(ctx, waiting("forged")).Should(BeEquivalentTo(2))
		Expect(crowd.Free(ctx, admin, "forged-"+hog, "first", "second")).To(Succeed())
		Eventually(ctx, waiting("forged")).Should(BeZero())
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(victim), victim)).To(Succeed())
		Expect(victim.Annotations).NotTo(HaveKey(quotav1.RoomAnnotation))
	})

	It("are woken by a new leader", func(ctx SpecContext) {
		leader := kill(ctx)
		Eventually(ctx, holder).ShouldNot(Equal(leader))
		suite.WaitUntilEnforced(ctx, admin, led.Name)
		Eventually(ctx, waiting(led.Name)).Should(BeEquivalentTo(led.Owners))
		arrivals := watchPods(ctx, led)
		moment := free(ctx, led.Name, "first", "second")
		Eventually(ctx, count(arrivals, moment)).WithTimeout(2 * refused).Should(Equal(led.Owners))
		after, err := arrivals.Since(moment)
		Expect(err).NotTo(HaveOccurred())
		AddReportEntry("after another leader was killed", figures(after), ReportEntryVisibilityAlways)
		Expect(crowd.Percentile(after, 99)).To(BeNumerically("<", atOnce), figures(after))
	})
})

// holder returns who leads.
func holder(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := admin.Get(ctx, types.NamespacedName{Namespace: suite.Namespace, Name: "shared-quota-operator"}, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), err
}

// kill ends the leader without warning, starts another replica, and returns who led.
func kill(ctx context.Context) string {
	GinkgoHelper()
	before, err := holder(ctx)
	Expect(err).NotTo(HaveOccurred())
	leader := slices.IndexFunc(replicas.Running, func(replica *harness.Operator) bool { return leads(ctx, replica) })
	Expect(leader).NotTo(Equal(-1), "nobody leads")
	replicas.Kill(replicas.Running[leader])
	replicas.Add(ctx)
	return before
}
