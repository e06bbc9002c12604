// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/judge"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	// wellWithin is how soon after a restore all must be well, without anybody's help.
	wellWithin = 90 * time.Second
	// restoredExit is the exit status of a replica that remembers another history.
	restoredExit = 3
	// leaseLostExit is that of a leader that couldn't renew its Lease in time.
	leaseLostExit = 1
	// reservationTTL is the shortest that the operator takes.
	reservationTTL = 40 * time.Second
	// buildTimeout covers builds of the operator from nothing.
	buildTimeout = 20 * time.Minute
	// lease is for how long a leader leads that doesn't renew its Lease.
	lease = 10 * time.Second
)

// restored is a cluster of its own, which is put back to a backup.
type restored struct {
	cluster    *harness.Cluster
	api        client.Client
	production *harness.Production
	replicas   []*harness.Supervised
	clients    *load.Load
	truth      *judge.Judge
	// restores counts them.
	restores int
}

var _ = Describe("A restored etcd", Ordered, ContinueOnFailure, func() {
	var r *restored
	BeforeAll(func(ctx SpecContext) {
		r = newRestored(ctx)
		DeferCleanup(r.stop)
		r.run(ctx)
		r.createTeams(ctx)
	}, NodeTimeout(buildTimeout))

	It("is noticed where more is written after it than was lost", func(ctx SpecContext) {
		r.copyAndRestore(ctx, time.Second, func() {
			// What the clients do as soon as the API server is back is more than this.
			r.limit(ctx, "red", 40)
			pass(ctx, lease/2) // a renewal of the Lease is lost
		})
		r.wantExact(ctx)
	}, NodeTimeout(5*time.Minute))

	It("takes back limits, labels, the token and the webhook configuration", func(ctx SpecContext) {
		r.copyAndRestore(ctx, lease+10*time.Second, func() {
			r.editAll(ctx)
			r.write(ctx, 3000)
		})
		r.wantExact(ctx)
	}, NodeTimeout(5*time.Minute))

	It("takes back nothing but writes that no quota is about, and what somebody still writes of them is found out", func(ctx SpecContext) {
		r.work(ctx)
		r.copyAndRestore(ctx, time.Second, func() { r.write(ctx, 3000) })
		r.writeLost(ctx, "blue")
		r.wantExact(ctx)
	}, NodeTimeout(5*time.Minute))
})

func newRestored(ctx context.Context) *restored {
	GinkgoHelper()
	r := &restored{}
	r.cluster, _ = suite.Start(ctx, harness.Options{Production: true})
	r.api = suite.Client(r.cluster.Config(), suite.Deadline)
	return r
}

// run installs the operator and runs two replicas.
func (r *restored) run(ctx context.Context) {
	GinkgoHelper()
	suite.Install(ctx, r.cluster)
	var err error
	r.production, err = r.cluster.StartProduction(ctx, suite.Namespace, suite.Deployment, suite.WebhookService)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.production.Close)
	for i := range 2 {
		replica, err := r.production.Supervise(ctx, harness.ReplicaOptions{
			Binary: binary, Address: harness.Address(harness.Addresses - 1 - i),
			Args: []string{
				"--status-interval", "200ms", "--reservation-ttl", reservationTTL.String(), "--shutdown-delay-duration", "0s",
			},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(replica.Stop)
		r.replicas = append(r.replicas, replica)
	}
}

// stop ends the replicas, whose addresses another cluster may need.
func (r *restored) stop() {
	GinkgoHelper()
	for _, replica := range r.replicas {
		Expect(replica.Stop()).To(Succeed())
	}
}

// createTeams makes two quotas of ten pods, for two namespaces each.
func (r *restored) createTeams(ctx context.Context) {
	GinkgoHelper()
	for _, team := range []string{"red", "blue"} {
		for _, part := range []string{"a", "b"} {
			suite.Create(ctx, r.api, builders.Namespace(team+"-"+part).Label("team", team).Obj())
		}
		suite.Create(ctx, r.api, builders.Quota(team).Label("team", team).Hard("pods", "10").Obj())
		suite.WaitUntilEnforced(ctx, r.api, team)
	}
}

// judge has a judge follow etcd from now on: what lives above a limit is no violation, and what comes on top of it is.
func (r *restored) judge(ctx context.Context) {
	GinkgoHelper()
	var err error
	r.truth, err = judge.Start(context.WithoutCancel(ctx), r.cluster.EtcdURL())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(r.truth.Stop)
}

func (r *restored) wantNothingOver(ctx context.Context) {
	GinkgoHelper()
	report, err := r.truth.Report(ctx)
	Expect(err).NotTo(HaveOccurred())
	for name, quota := range report.Quotas {
		Expect(quota.Violations).To(BeEmpty(), "quota %s, and %d more", name, quota.MoreViolations)
	}
}

// wantFull fills each quota to its limit of ten, and not beyond. So many live already.
func (r *restored) wantFull(ctx context.Context, living map[string]int) {
	GinkgoHelper()
	for _, team := range []string{"red", "blue"} {
		suite.WaitUntilEnforced(ctx, r.api, team)
		for i := range 10 - living[team] {
			Expect(r.api.Create(ctx, builders.Pod(team+"-b", fmt.Sprintf("full-%d", i)).Obj())).To(Succeed())
		}
		Expect(r.api.Create(ctx, builders.Pod(team+"-a", "beyond").Obj())).To(suite.BeExceededAt(team, "pods", "10", "10"))
	}
}

// work sets clients to work who always want more than there is.
func (r *restored) work(ctx context.Context) {
	plan := load.Plan{Rest: 100 * time.Millisecond, Seed: uint64(GinkgoRandomSeed())}
	for range 4 {
		plan.Pods = append(plan.Pods, "red-a", "red-b", "blue-a", "blue-b")
	}
	r.clients = load.Start(ctx, r.api, plan)
}

// copyAndRestore copies etcd's data, lets something happen that is lost, and puts the copy back. The API server is
// away for so long, and for as long as it takes to start; clients work from then on.
func (r *restored) copyAndRestore(ctx context.Context, outage time.Duration, lost func()) {
	GinkgoHelper()
	backup, err := r.cluster.CopyEtcd()
	Expect(err).NotTo(HaveOccurred())
	lost()
	start, err := r.cluster.RestoreEtcd(backup)
	Expect(err).NotTo(HaveOccurred())
	r.judge(ctx)
	pass(ctx, outage)
	if r.clients == nil {
		r.work(ctx)
	}
	Expect(start()).To(Succeed())
}

// editAll raises a limit and fills it, lowers another, moves a namespace and replaces the token.
func (r *restored) editAll(ctx context.Context) {
	GinkgoHelper()
	r.limit(ctx, "red", 90)
	for i := range 90 {
		suite.Create(ctx, r.api, builders.Pod("red-a", fmt.Sprintf("lost-%d", i)).Obj())
	}
	r.limit(ctx, "blue", 5)
	Expect(r.api.Patch(ctx, builders.Namespace("blue-b").Obj(), merging(`{"metadata":{"labels":{"team":"red"}}}`))).To(Succeed())
	Expect(r.api.Patch(ctx, builders.Namespace("red-b").Obj(), merging(`{"metadata":{"labels":{"team":"none"}}}`))).To(Succeed())
	before := suite.CallersToken(ctx, r.api)
	suite.ReplaceCallersToken(ctx, r.api)
	Eventually(func() string { return suite.CallersToken(ctx, r.api) }).ShouldNot(Equal(before))
}

// writeLost writes a ledger as a process does that remembers a later spec of the quota.
func (r *restored) writeLost(ctx context.Context, team string) {
	GinkgoHelper()
	r.unprotect(ctx)
	store := ledgerstore.New(r.api)
	Eventually(ctx, func(ctx context.Context) error {
		current, err := store.Load(ctx, team, machine.Load{})
		if err != nil {
			return err
		}
		current.State.Generation += 5
		_, err = store.Swap(ctx, team, current.Version, current.State)
		return err
	}).Should(Succeed())
	Eventually(ctx, suite.Quota(r.api, team)).Should(suite.HaveCondition(quotav1.ConditionReady, HavePrefix("False "+quotav1.ReasonLedgerLost)))
}

func (r *restored) limit(ctx context.Context, team string, pods int) {
	GinkgoHelper()
	Expect(r.api.Patch(ctx, builders.Quota(team).Obj(), merging(fmt.Sprintf(`{"spec":{"quota":{"hard":{"pods":"%d"}}}}`, pods)))).To(Succeed())
	suite.WaitUntilEnforced(ctx, r.api, team)
}

// write makes so many writes that no quota is about.
func (r *restored) write(ctx context.Context, count int) {
	GinkgoHelper()
	var writing errgroup.Group
	writing.SetLimit(20)
	for i := range count {
		writing.Go(func() error {
			return r.api.Create(ctx, &corev1.ConfigMap{ObjectMeta: builders.Meta("default", fmt.Sprintf("filler-%d", i))})
		})
	}
	Expect(writing.Wait()).To(Succeed())
}

// wantExact wants all to be well again in time: the clients are answered by what is stored now, each quota fills to
// its limit and not beyond, and every replica has begun anew.
func (r *restored) wantExact(ctx context.Context) {
	GinkgoHelper()
	back := time.Now()
	defer func() { r.clients = nil }()
	left := func() time.Duration { return time.Until(back.Add(wellWithin)) }
	Eventually(func() int { return r.clients.Tally.Count(load.Succeeded) }).WithTimeout(left()).Should(BeNumerically(">", 0))
	AddReportEntry("something is admitted after", time.Since(back).Round(100*time.Millisecond))
	pass(ctx, 10*time.Second)
	r.clients.Stop()
	AddReportEntry("what clients met", r.clients.Tally.String())
	r.empty(ctx)
	agree := func(ctx context.Context) error { return r.truth.Agrees(ctx, r.api) }
	Eventually(ctx, agree).WithTimeout(left()).Should(Succeed())
	AddReportEntry("all is exact after", time.Since(back).Round(100*time.Millisecond))
	r.wantFull(ctx, nil)
	Expect(left()).To(BeNumerically(">", 0))
	r.wantNothingOver(ctx)
	r.restores++
	for _, replica := range r.replicas {
		exits := replica.Exits()
		Expect(exits).To(HaveLen(r.restores))
		Expect(exits).To(HaveEach(Or(Equal(restoredExit), Equal(leaseLostExit))))
	}
	r.empty(ctx)
	Eventually(ctx, agree).Should(Succeed())
}

// empty deletes all pods.
func (r *restored) empty(ctx context.Context) {
	GinkgoHelper()
	for _, team := range []string{"red", "blue"} {
		for _, part := range []string{"a", "b"} {
			Expect(r.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(team+"-"+part), client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
}

func merging(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }

func pass(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}
