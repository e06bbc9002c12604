// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	besideLabel = "beside"
	// besideHard is the limit that is enforced, besideTried the smaller one that a second quota tries, and besideAsked how many
	// pods are created at once.
	besideHard, besideTried, besideAsked = 60, 15, 100
	// usableWithin is how soon room must be usable that nothing holds.
	usableWithin = 5 * time.Second
)

// beside has two quotas on the same selector: docs/introduce.md. By its name, the one that tries is charged first.
type beside struct {
	tried, enforced string
	namespaces      []string
	rounds          int
}

func newBeside(ctx context.Context) *beside {
	GinkgoHelper()
	b := &beside{tried: "beside-a-tried", enforced: "beside-b-enforced"}
	for i := range 4 {
		b.namespaces = append(b.namespaces, fmt.Sprintf("beside-%d", i))
		Expect(api.Create(ctx, builders.Namespace(b.namespaces[i]).Label(besideLabel, "both").Obj())).To(Succeed())
	}
	Expect(api.Create(ctx, b.quota(b.enforced, besideHard).Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, api, b.enforced)
	return b
}

func (b *beside) quota(name string, pods int) *builders.QuotaBuilder {
	return builders.Quota(name).Label(besideLabel, "both").Hard("pods", fmt.Sprint(pods)).Hard("requests.cpu", "100")
}

func (b *beside) try(ctx context.Context) {
	GinkgoHelper()
	Expect(api.Create(ctx, b.quota(b.tried, besideTried).Enforcement(quotav1.EnforcementAudit, "").Obj())).To(Succeed())
}

// fill creates more pods at once than the limit allows, with something else done once some of them have been admitted. All
// others must be refused because the limit is used up, and not for another reason. On a machine that is busy, the ledger may
// hold twice for a moment what was granted from escrow, so that some are refused too early: they must find room at once when
// they try again, and then exactly as much is used as the limit allows.
func (b *beside) fill(ctx context.Context, meanwhile func(context.Context)) {
	GinkgoHelper()
	b.rounds++
	some := make(chan struct{}, besideAsked)
	answers := make([]error, besideAsked)
	create := func(i int, suffix string) error {
		name := fmt.Sprintf("p%d-%d%s", b.rounds, i, suffix)
		return api.Create(ctx, builders.Pod(b.namespaces[i%len(b.namespaces)], name).Request("cpu", "1m").Obj())
	}
	var clients sync.WaitGroup
	for i := range besideAsked {
		clients.Go(func() {
			if answers[i] = create(i, ""); answers[i] == nil {
				some <- struct{}{}
			}
		})
	}
	for range besideHard / 4 {
		Eventually(ctx, some).Should(Receive())
	}
	meanwhile(ctx)
	clients.Wait()
	admitted := 0
	for _, err := range answers {
		if err == nil {
			admitted++
			continue
		}
		Expect(err).To(MatchError(MatchRegexp(
			"denied the request: exceeded quota: %s, requested: pods=1, used: pods=[0-9]+, limited: pods=%d", b.enforced, besideHard)))
	}
	AddReportEntry("admitted at once", admitted)
	Expect(admitted).To(And(BeNumerically("<=", besideHard), BeNumerically(">=", besideHard*3/4)))
	for i := admitted; i < besideHard; i++ {
		Eventually(ctx, func() error { return create(i, "-again") }).WithTimeout(usableWithin).Should(Succeed())
	}
	Eventually(ctx, func() error { return create(0, "-more") }).Should(beRefused(ctx, b.enforced, corev1.ResourcePods, "1"))
	report, err := truth.Report(ctx)
	Expect(err).NotTo(HaveOccurred())
	lives := report.Quotas[b.enforced].Lives[corev1.ResourcePods]
	Expect(lives.Value()).To(BeEquivalentTo(besideHard))
}

// clear deletes all pods of some namespaces, and returns once a quota has only so many of the others'.
func (b *beside) clear(ctx context.Context, quota string, left int, namespaces ...string) {
	GinkgoHelper()
	for _, namespace := range namespaces {
		Expect(api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))).To(Succeed())
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		entries := b.ledger(ctx, quota).Entries
		g.Expect(entries.Reservations).To(BeEmpty())
		g.Expect(entries.Used.Pods().Value()).To(BeEquivalentTo(left))
	}).Should(Succeed())
}

func (b *beside) pods(ctx context.Context, namespace string) int {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return len(list.Items)
}

func (b *beside) ledger(ctx context.Context, quota string) *quotav1.QuotaLedger {
	GinkgoHelper()
	ledger := ledgerOf(quota)
	Expect(api.Get(ctx, client.ObjectKeyFromObject(ledger), ledger)).To(Succeed())
	return ledger
}

// wouldRefuse is how many pods the quota that tries would have refused, by the metrics of all replicas.
func (b *beside) wouldRefuse(ctx context.Context, scraper string) int {
	GinkgoHelper()
	sum := 0
	for _, place := range replicas.up() {
		for _, metric := range suite.Scrape(ctx, scraper, place.running)["sharedquota_admission_would_refuse_total"].GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["quota"] == b.tried && labels["resource"] == "pods" && labels["mode"] == "Audit" {
				sum += int(metric.GetCounter().GetValue())
			}
		}
	}
	return sum
}

// loseLedger deletes the ledger of the quota that tries, as only the operator may, and returns its UID.
func (b *beside) loseLedger(ctx context.Context) types.UID {
	GinkgoHelper()
	ledger := b.ledger(ctx, b.tried)
	Expect(suite.Client(replicas.production.Identity(), suite.Deadline).Delete(ctx, ledger)).To(Succeed())
	return ledger.UID
}

func (b *beside) abolish(ctx context.Context) {
	GinkgoHelper()
	for _, name := range []string{b.tried, b.enforced} {
		Expect(api.Delete(ctx, builders.Quota(name).Obj())).To(Succeed())
	}
}

// tryBeside plays how a smaller limit is tried beside the one that is enforced, under load.
func tryBeside(ctx context.Context) {
	GinkgoHelper()
	nothing := func(context.Context) {}
	b := newBeside(ctx)
	enforced, scraper := b.ledger(ctx, b.enforced).UID, suite.Scraper(ctx, cluster)
	By("filling it alone")
	b.fill(ctx, nothing)
	b.clear(ctx, b.enforced, 0, b.namespaces...)

	By("filling it while the other one begins to count")
	b.fill(ctx, b.try)
	suite.WaitUntilEnforced(ctx, api, b.tried)
	b.clear(ctx, b.enforced, 0, b.namespaces...)
	b.clear(ctx, b.tried, 0)

	By("filling it while the other one judges")
	b.fill(ctx, nothing)
	// A replica doesn't know yet what others have granted from escrow in the last second.
	Expect(b.wouldRefuse(ctx, scraper)).To(And(BeNumerically(">", 0), BeNumerically("<=", besideAsked)))
	Eventually(ctx, func(ctx context.Context) string {
		return suite.Kubectl(ctx, cluster, "get", "events", "-n", b.namespaces[0], "-o", "jsonpath={.items[*].message}",
			"--field-selector", "reason=WouldExceed,involvedObject.name="+b.tried)
	}).Should(ContainSubstring("exceeded quota: " + b.tried))

	By("creating as many as were deleted, one after the other")
	freed := b.pods(ctx, b.namespaces[0])
	b.clear(ctx, b.enforced, besideHard-freed, b.namespaces[0])
	b.clear(ctx, b.tried, besideHard-freed)
	before := b.wouldRefuse(ctx, scraper)
	for i := range freed {
		Expect(api.Create(ctx, builders.Pod(b.namespaces[0], fmt.Sprintf("again-%d", i)).Request("cpu", "1m").Obj())).To(Succeed())
	}
	Expect(b.wouldRefuse(ctx, scraper) - before).To(Equal(freed))
	b.clear(ctx, b.enforced, 0, b.namespaces...)

	By("filling it while the ledger of the other one is lost, and afterwards")
	var lost types.UID
	b.fill(ctx, func(ctx context.Context) { lost = b.loseLedger(ctx) })
	b.clear(ctx, b.enforced, 0, b.namespaces...)
	b.fill(ctx, nothing)
	b.clear(ctx, b.enforced, 0, b.namespaces...)
	Eventually(ctx, func(ctx context.Context) (types.UID, error) {
		made := ledgerOf(b.tried)
		err := api.Get(ctx, client.ObjectKeyFromObject(made), made)
		return made.UID, err
	}).ShouldNot(Equal(lost))
	Expect(b.ledger(ctx, b.enforced).UID).To(Equal(enforced))

	report := wantNothingOver(ctx)
	peak := report.Quotas[b.tried].Peak[corev1.ResourcePods]
	Expect(peak.Value()).To(BeEquivalentTo(besideHard), "the most that the other one has counted")
	b.abolish(ctx)
}
