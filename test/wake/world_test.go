// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
	"github.com/sharedquota/shared-quota-operator/test/wake/crowd"
)

const (
	// refused is for how long workloads are refused at least: their controllers pause for about as long again.
	refused = 45 * time.Second
	// atOnce is how soon the pods of woken workloads must have come. It is what a machine busy with other suites
	// takes, and a third of what is left of the pauses.
	atOnce = 15 * time.Second
	// hog is the namespace of pods that hold room until it is to be free.
	hog = "hog"
)

// The quotas of the specs, each with a crowd.
var (
	whole  = crowd.Crowd{Name: "whole", Owners: 60, Namespaces: 20}
	partly = crowd.Crowd{Name: "partly", Owners: 60, Namespaces: 20}
	led    = crowd.Crowd{Name: "led", Owners: 9, Namespaces: 3}
	// began is when all of them had been refused.
	began time.Time
)

// begin lets everything be refused.
func begin(ctx context.Context) {
	GinkgoHelper()
	for _, all := range []*crowd.Crowd{&whole, &partly, &led} {
		all.API = admin
		Expect(all.Prepare(ctx)).To(Succeed())
		share(ctx, all.Name, fmt.Sprintf("%dm", all.Owners*100))
	}
	for _, all := range []*crowd.Crowd{&whole, &partly, &led} {
		fill(ctx, all.Name, all.Owners)
		Expect(all.Start(ctx)).To(Succeed())
	}
	beginKinds(ctx)
	beginDropped(ctx)
	beginClaims(ctx)
	for _, all := range []*crowd.Crowd{&whole, &partly, &led} {
		Eventually(ctx, waiting(all.Name)).Should(BeEquivalentTo(all.Owners), all.Name)
	}
	began = time.Now()
}

// share makes a quota for the namespaces of a crowd, and for one of its own in which something holds its room.
func share(ctx context.Context, name, cpu string) {
	GinkgoHelper()
	Expect(admin.Create(ctx, builders.Namespace(name+"-"+hog).Label("team", name).Obj())).To(Succeed())
	Expect(admin.Create(ctx, builders.Quota(name).Label("team", name).Hard("requests.cpu", cpu).Obj())).To(Succeed())
	suite.WaitUntilEnforced(ctx, admin, name)
}

// fill takes all room of a quota by two pods, each of which holds half of it.
func fill(ctx context.Context, name string, owners int) {
	GinkgoHelper()
	for _, pod := range []string{"first", "second"} {
		half := builders.Pod(name+"-"+hog, pod).Request("cpu", fmt.Sprintf("%dm", owners*100/2)).Obj()
		Eventually(ctx, func(ctx context.Context) error { return client.IgnoreAlreadyExists(admin.Create(ctx, half.DeepCopy())) }).Should(Succeed())
	}
}

// waiting returns how many workloads wait for room in a quota, as its status says.
func waiting(name string) func(context.Context) (int32, error) {
	return func(ctx context.Context) (int32, error) {
		quota := &quotav1.ClusterResourceQuota{}
		if err := admin.Get(ctx, types.NamespacedName{Name: name}, quota); err != nil {
			return 0, err
		}
		if quota.Status.Waiting == nil {
			return 0, nil
		}
		return quota.Status.Waiting.Owners, nil
	}
}

// waitingIn returns the workloads of a namespace that wait for room in a quota, as its view says.
func waitingIn(namespace, name string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		view := &quotav1.LocalResourceQuota{}
		if err := admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, view); err != nil {
			return nil, err
		}
		var owners []string
		for _, owner := range view.Status.Waiting {
			owners = append(owners, fmt.Sprintf("%s %s since %s, short of %v", owner.Kind, owner.Name, owner.Since.UTC().Format(time.TimeOnly), owner.Short))
		}
		return owners, nil
	}
}

// free makes room by deleting pods that hold it, once all were refused for long enough, and returns when.
func free(ctx context.Context, name string, pods ...string) time.Time {
	GinkgoHelper()
	Eventually(ctx, func() time.Duration { return time.Since(began) }).WithTimeout(2 * refused).Should(BeNumerically(">", refused))
	moment := time.Now()
	Expect(crowd.Free(ctx, admin, name+"-"+hog, pods...)).To(Succeed())
	return moment
}

// counted returns a counter of a quota, over all replicas.
func counted(ctx context.Context, metric, quota string) float64 {
	GinkgoHelper()
	sum := 0.0
	for _, replica := range replicas.Running {
		sum += scraped(ctx, replica, metric, quota)
	}
	return sum
}

func scraped(ctx context.Context, replica *harness.Operator, metric, quota string) float64 {
	GinkgoHelper()
	for _, series := range suite.Scrape(ctx, scraper, replica)[metric].GetMetric() {
		for _, label := range series.GetLabel() {
			if label.GetName() == "quota" && label.GetValue() == quota {
				return series.GetCounter().GetValue() + series.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// leads reports whether a replica leads.
func leads(ctx context.Context, replica *harness.Operator) bool {
	GinkgoHelper()
	series := suite.Scrape(ctx, scraper, replica)["sharedquota_counting_leader"].GetMetric()
	return len(series) == 1 && series[0].GetGauge().GetValue() == 1
}

// figures tells how long pods took.
func figures(after []time.Duration) string {
	return fmt.Sprintf("%d pods: p50 %s, p99 %s, last %s", len(after),
		crowd.Percentile(after, 50).Round(time.Millisecond), crowd.Percentile(after, 99).Round(time.Millisecond),
		crowd.Percentile(after, 100).Round(time.Millisecond))
}

// messageOf returns what a view says of workloads that wait.
func messageOf(view *quotav1.LocalResourceQuota) string {
	var parts []string
	for _, condition := range view.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s %s %s: %s", condition.Type, condition.Status, condition.Reason, condition.Message))
	}
	return strings.Join(parts, "\n")
}
