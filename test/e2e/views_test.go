// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

const (
	// many is how many namespaces a storm rages over: more than are written in a
	// round while totals change.
	many = 60
	// busy is how many of them objects come and go in.
	busy = 8
)

// written records all writes of one quota's views, in their order.
type written struct {
	mu    sync.Mutex
	views []quotav1.LocalResourceQuota
}

// recordViews records what is written from now on until the spec has ended.
func recordViews(ctx context.Context, quota string) *written {
	GinkgoHelper()
	list := &quotav1.LocalResourceQuotaList{}
	Expect(api.List(ctx, list)).To(Succeed())
	// The spec's own context ends before its clean-up.
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	events, err := watcher.Watch(watching, &quotav1.LocalResourceQuotaList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion},
	})
	Expect(err).NotTo(HaveOccurred())
	record := &written{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if view, isView := event.Object.(*quotav1.LocalResourceQuota); isView && view.Name == quota && event.Type != watch.Deleted {
				record.add(view)
			}
		}
	}()
	DeferCleanup(func() {
		events.Stop()
		cancel()
		<-done
	})
	return record
}

func (w *written) add(view *quotav1.LocalResourceQuota) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views = append(w.views, *view)
}

// all returns what has been written so far.
func (w *written) all() []quotav1.LocalResourceQuota {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.views)
}

func (w *written) count() int { return len(w.all()) }

// storm lets pods come and go in the first namespaces until it is stopped, and
// counts the changes.
func storm(ctx context.Context, namespaces []string) (changes *atomic.Int64, stop func()) {
	changes = &atomic.Int64{}
	calm := make(chan struct{})
	var group sync.WaitGroup
	for i, namespace := range namespaces[:busy] {
		group.Go(func() {
			defer GinkgoRecover()
			for n := 0; ; n++ {
				select {
				case <-calm:
					return
				default:
				}
				pod := builders.Pod(namespace, fmt.Sprintf("p%d-%d", i, n)).Obj()
				mustCreate(ctx, pod)
				if n%10 != 0 {
					mustDelete(ctx, pod)
					changes.Add(1)
				}
				changes.Add(1)
			}
		})
	}
	return changes, sync.OnceFunc(func() {
		close(calm)
		group.Wait()
	})
}

// stormy makes a team of many namespaces and its quota, and returns once each has
// a view.
func stormy(
	ctx context.Context, limit func(*builders.QuotaBuilder),
) (quota *quotav1.ClusterResourceQuota, namespaces []string) {
	GinkgoHelper()
	team := newTeam()
	builder := team.quota()
	limit(builder)
	quota = enforce(ctx, builder)
	for range many {
		namespaces = append(namespaces, team.namespace(ctx))
	}
	eventuallyAllShow(ctx, quota, namespaces)
	return quota, namespaces
}

// eventuallyAllShow returns once every view shows what is used now: of all, what
// the pods there are come to, and of the namespace's own.
func eventuallyAllShow(ctx context.Context, quota *quotav1.ClusterResourceQuota, namespaces []string) {
	GinkgoHelper()
	own := map[string]int64{}
	for _, pod := range podsOf(ctx, namespaces) {
		own[pod.Namespace]++
	}
	var total int64
	for _, number := range own {
		total += number
	}
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		list := &quotav1.LocalResourceQuotaList{}
		g.Expect(api.List(ctx, list)).To(Succeed())
		shown := 0
		for _, view := range list.Items {
			if view.Name != quota.Name {
				continue
			}
			shown++
			g.Expect(view.Status.Total.Used.Pods().Value()).To(Equal(total), "of all, in %s", view.Namespace)
			g.Expect(view.Status.Used.Pods().Value()).To(Equal(own[view.Namespace]), "of its own, in %s", view.Namespace)
			g.Expect(view.Status.Reserved).To(BeEmpty(), "in %s", view.Namespace)
		}
		g.Expect(shown).To(Equal(len(namespaces)))
	}).Should(Succeed())
}

// rounds is how many views were told of the same totals, for all totals that any was
// told of.
func rounds(writes []quotav1.LocalResourceQuota) map[string]int {
	rounds := map[string]int{}
	for _, view := range writes {
		rounds[view.Status.Summary+" reserved "+view.Status.ReservedSummary]++
	}
	return rounds
}

// typicalRound is how many views are told of the same totals, in the median.
func typicalRound(writes []quotav1.LocalResourceQuota) int {
	numbers := slices.Sorted(maps.Values(rounds(writes)))
	AddReportEntry("views told of the same totals", numbers)
	return numbers[len(numbers)/2]
}

var _ = Describe("The local views of a quota that is used all the time", Serial, func() {
	It("are written now and then, and agree soon after", func(ctx SpecContext) {
		quota, namespaces := stormy(ctx, func(quota *builders.QuotaBuilder) { quota.Hard("pods", "100k") })
		record := recordViews(ctx, quota.Name)
		changes, stop := storm(ctx, namespaces)
		defer stop()
		// The first round may be of all views, and totals may come again, so a few rounds
		// have no median that says anything.
		Eventually(ctx, func() int { return len(rounds(record.all())) }).Should(BeNumerically(">=", 25), "while it rages")
		Eventually(ctx, changes.Load).Should(BeNumerically(">=", 200))
		raging := record.all()
		stop()
		eventuallyAllShow(ctx, quota, namespaces)
		writes := record.count()
		AddReportEntry("changes and writes", fmt.Sprintf("%d and %d", changes.Load(), writes))

		// All are written where the totals stood still for a moment.
		Expect(typicalRound(raging)).To(BeNumerically("<=", 5))
		Expect(writes).To(BeNumerically("<", changes.Load()*many/10), "for every change and view")
		quiet := map[string]bool{}
		for _, view := range raging {
			quiet[view.Namespace] = quiet[view.Namespace] || slices.Index(namespaces, view.Namespace) >= busy
		}
		Expect(quiet).To(ContainElement(true), "the quiet namespaces' views are written, too")
	})

	It("that ran out goes before what else changed", func(ctx SpecContext) {
		quota, namespaces := stormy(ctx, func(quota *builders.QuotaBuilder) { quota.Hard("pods", "100k").Hard("secrets", "1") })
		record := recordViews(ctx, quota.Name)
		_, stop := storm(ctx, namespaces)
		defer stop()
		Eventually(ctx, record.count).Should(BeNumerically(">=", 20), "while it rages")
		secret := mustCreate(ctx, builders.Secret(namespaces[many-1], "last"))
		wantInformedFirst(ctx, record, namespaces, "0")
		mustDelete(ctx, secret)
		wantInformedFirst(ctx, record, namespaces, "1")
	})
})

var _ = Describe("What a local view says is available", func() {
	It("never rises while objects only come: none is both used and reserved", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "100"))
		namespace := team.namespace(ctx)
		Eventually(ctx, view(quota.Name, namespace)).ShouldNot(BeNil())
		record := recordViews(ctx, quota.Name)
		for n := range 10 {
			mustCreate(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", n)).Obj())
			eventuallyAllShow(ctx, quota, []string{namespace})
		}
		var available []int64
		for _, view := range record.all() {
			available = append(available, view.Status.Available.Pods().Value())
		}
		Expect(len(available)).To(BeNumerically(">=", 5))
		Expect(slices.IsSortedFunc(available, func(a, b int64) int { return cmp.Compare(b, a) })).To(BeTrue(), "%v", available)
	})
})

// wantInformedFirst waits until each view has been written with so many secrets
// available, and fails if others were written again and again in between.
func wantInformedFirst(ctx context.Context, record *written, namespaces []string, available string) {
	GinkgoHelper()
	before := record.count()
	var since []quotav1.LocalResourceQuota
	Eventually(ctx, func(g Gomega) {
		informed := map[string]bool{}
		all := record.all()[before:]
		// From the first on that tells of it.
		start := slices.IndexFunc(all, func(view quotav1.LocalResourceQuota) bool { return secretsLeft(view) == available })
		g.Expect(start).NotTo(Equal(-1))
		since = nil
		for _, view := range all[start:] {
			since = append(since, view)
			if informed[view.Namespace] = true; len(informed) == len(namespaces) {
				break
			}
		}
		g.Expect(informed).To(HaveLen(len(namespaces)))
	}).Should(Succeed())
	AddReportEntry("writes until all were told", len(since))
	// 30 a round, 25 of them for it.
	Expect(len(since)).To(BeNumerically("<=", len(namespaces)*30/25+20), "writes until all were told")
}

func secretsLeft(view quotav1.LocalResourceQuota) string {
	left := view.Status.Available[corev1.ResourceSecrets]
	return left.String()
}

var _ = Describe("A namespace that is no longer selected", func() {
	It("loses its view at once, however rarely views are written", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "10"))
		staying := team.namespace(ctx)
		leaving := mustCreate(ctx, builders.Namespace(team.nextName()).Label(teamLabel, team.name).Obj())
		for _, name := range []string{staying, leaving.Name} {
			Eventually(ctx, view(quota.Name, name)).ShouldNot(BeNil())
		}
		usual := slices.Clone(settings.Args)
		settings.Args = append(settings.Args, "--status-interval", "60s")
		DeferCleanup(func(ctx SpecContext) {
			settings.Args = usual
			restart(ctx)
		})
		restart(ctx)
		By("writing the views, which rest from then on")
		Eventually(ctx, func(ctx context.Context) error { return api.Create(ctx, builders.Pod(staying, "p1").Obj()) }).Should(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			current, err := view(quota.Name, leaving.Name)(ctx)
			return amounts(current.Status.Available), err
		}).Should(Equal("pods=9"))

		relabel(ctx, leaving, nil)
		Eventually(ctx, view(quota.Name, leaving.Name)).WithTimeout(20 * time.Second).Should(BeNil())
		Expect(view(quota.Name, staying)(ctx)).NotTo(BeNil())
	})
})
