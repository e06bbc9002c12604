// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// view polls a quota's view in a namespace; nil is for none.
func view(quota, namespace string) func(ctx context.Context) (*quotav1.LocalResourceQuota, error) {
	return func(ctx context.Context) (*quotav1.LocalResourceQuota, error) {
		current := &quotav1.LocalResourceQuota{}
		err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: quota}, current)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return current, err
	}
}

var _ = Describe("The status of a quota", func() {
	It("holds the limits, the sum, and each namespace's part of it", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "10").Hard("requests.cpu", "2").Hard("secrets", "5"))
		busy, idle, quiet := team.namespace(ctx), team.namespace(ctx), team.namespace(ctx)
		mustCreate(ctx, builders.Pod(busy, "p1").Request("cpu", "250m").Obj())
		mustCreate(ctx, builders.Pod(busy, "p2").Request("cpu", "500m").Obj())
		mustCreate(ctx, builders.Pod(quiet, "p1").Request("cpu", "100m").Obj())
		mustCreate(ctx, builders.Secret(quiet, "s1"))
		eventuallyUses(ctx, quota, "pods=3,requests.cpu=850m,secrets=1")

		current := &quotav1.ClusterResourceQuota{}
		Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
		Expect(amounts(current.Status.Total.Hard)).To(Equal("pods=10,requests.cpu=2,secrets=5"))
		var parts []string
		for _, part := range current.Status.Namespaces {
			parts = append(parts, part.Namespace+": "+amounts(part.Status.Used))
			Expect(part.Status.Hard).To(Equal(current.Status.Total.Hard))
		}
		Expect(parts).To(Equal([]string{
			busy + ": pods=2,requests.cpu=750m,secrets=0",
			idle + ": pods=0,requests.cpu=0,secrets=0",
			quiet + ": pods=1,requests.cpu=100m,secrets=1",
		}))
		Expect(current.Status.ObservedGeneration).To(Equal(current.Generation))
		Expect(conditionOf(current, quotav1.ConditionReady)).To(HavePrefix("True Counted: "))
		Expect(conditionOf(current, quotav1.ConditionEnforced)).To(HavePrefix("True WebhookConfigured: "))
		Expect(conditionOf(current, quotav1.ConditionResourceUnavailable)).To(HavePrefix("False AllAvailable: "))
	})

	It("is for the generation that it observed", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		before := quota.Status.ObservedGeneration
		change(ctx, quota, hard("pods", "2"))
		Expect(quota.Status.ObservedGeneration).To(Equal(before + 1))
		Expect(amounts(quota.Status.Total.Hard)).To(Equal("pods=2"))
	})

	// The count has a pod a moment before the ledger settles its reservation.
	It("shows each pod as used or as reserved, and never more than the limit, while clients are at it", func(ctx SpecContext) {
		const limit, clients, versions = 12, 24, 30
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", strconv.Itoa(limit)))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx)}
		watched, err := watcher.Watch(ctx, &quotav1.ClusterResourceQuotaList{}, client.MatchingFields{"metadata.name": quota.Name})
		Expect(err).NotTo(HaveOccurred())
		defer watched.Stop()
		views, err := watcher.Watch(ctx, &quotav1.LocalResourceQuotaList{}, client.InNamespace(namespaces[0]))
		Expect(err).NotTo(HaveOccurred())
		defer views.Stop()

		loading, stop := context.WithCancel(ctx)
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		for i := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for loading.Err() == nil {
					pod := builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("client%d", i)).Generated().Obj()
					if api.Create(ctx, pod) == nil {
						mustDelete(ctx, pod)
					}
				}
			})
		}

		full := 0
		check := func(source string, used, reserved corev1.ResourceList) {
			sum := used.Pods().DeepCopy()
			sum.Add(*reserved.Pods())
			Expect(sum.Value()).To(BeNumerically("<=", limit), "%s: used %s, reserved %s", source, used.Pods(), reserved.Pods())
			if sum.Value() == limit {
				full++
			}
		}
		for seen := 0; seen < versions; {
			select {
			case event := <-watched.ResultChan():
				current := event.Object.(*quotav1.ClusterResourceQuota)
				check("the status", current.Status.Total.Used, current.Status.Reserved)
				seen++
			case event := <-views.ResultChan():
				current := event.Object.(*quotav1.LocalResourceQuota)
				check("a view", current.Status.Total.Used, current.Status.Reserved)
				Expect(current.Status.Used.Pods().Cmp(*current.Status.Total.Used.Pods())).To(BeNumerically("<=", 0),
					"here %s, in total %s", current.Status.Used.Pods(), current.Status.Total.Used.Pods())
			case <-ctx.Done():
				Fail("too few versions")
			}
		}
		Expect(full).To(BeNumerically(">", 0), "the quota must have been full at times")
	}, NodeTimeout(2*time.Minute))

	It("is what kubectl get shows", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().LabelIn("stage", "dev", "test").Hard("pods", "3").Hard("requests.cpu", "2"))
		namespace := builders.Namespace(team.nextName()).Label(teamLabel, team.name).Label("stage", "dev").Obj()
		mustCreate(ctx, namespace)
		mustCreate(ctx, builders.Pod(namespace.Name, "p1").Request("cpu", "300m").Obj())
		eventuallyUses(ctx, quota, "pods=1,requests.cpu=300m")

		columns := kubectlColumns(ctx, "get", "crq", quota.Name)
		Expect(columns).To(HaveLen(2), "a header and a line")
		Expect(columns[0]).To(Equal([]string{"NAME", "SELECTOR", "NAMESPACES", "ENFORCED", "AGE", "USED"}))
		Expect(columns[1]).To(HaveExactElements(
			quota.Name, "stage in (dev,test),team="+team.name, "1", "True", MatchRegexp(`^\d+m?s$`), "pods: 1/3, requests.cpu: 300m/2"))
	})
})

var _ = Describe("A local view", func() {
	It("shows the quota in each selected namespace, and nothing of any other namespace", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5").Hard("requests.cpu", "2"))
		here := team.namespace(ctx)
		there := mustCreate(ctx, builders.Namespace(team.nextName()).Label(teamLabel, team.name).Obj())
		mustCreate(ctx, builders.Pod(here, "p1").Request("cpu", "250m").Obj())
		mustCreate(ctx, builders.Pod(there.Name, "p1").Request("cpu", "1").Obj())
		mustCreate(ctx, builders.Pod(there.Name, "p2").Request("cpu", "123m").Obj())

		Eventually(ctx, func(g Gomega, ctx context.Context) {
			current, err := view(quota.Name, here)(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current).NotTo(BeNil())
			g.Expect(amounts(current.Status.Total.Hard)).To(Equal("pods=5,requests.cpu=2"))
			g.Expect(amounts(current.Status.Total.Used)).To(Equal("pods=3,requests.cpu=1373m"))
			g.Expect(amounts(current.Status.Available)).To(Equal("pods=2,requests.cpu=627m"))
			g.Expect(amounts(current.Status.Used)).To(Equal("pods=1,requests.cpu=250m"))
			g.Expect(amounts(current.Status.Reserved)).To(BeEmpty())
			g.Expect(current.Status.Summary).To(Equal("pods: 3/5, requests.cpu: 1373m/2"))
			text, err := yaml.Marshal(current)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(text)).NotTo(ContainSubstring(there.Name))
			g.Expect(string(text)).NotTo(ContainSubstring("1123m"), "what the other namespace uses")
		}).Should(Succeed())

		By("taking the label of the other namespace away")
		relabel(ctx, there, nil)
		Eventually(ctx, view(quota.Name, there.Name)).Should(BeNil())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			current, err := view(quota.Name, here)(ctx)
			return amounts(current.Status.Total.Used), err
		}).Should(Equal("pods=1,requests.cpu=250m"))
	})

	It("that someone edits or deletes is written again", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5"))
		namespace := team.namespace(ctx)
		Eventually(ctx, view(quota.Name, namespace)).Should(Not(BeNil()))

		mustDelete(ctx, &quotav1.LocalResourceQuota{ObjectMeta: builders.Meta(namespace, quota.Name)})
		Eventually(ctx, view(quota.Name, namespace)).Should(Not(BeNil()))
		current, err := view(quota.Name, namespace)(ctx)
		Expect(err).NotTo(HaveOccurred())
		before := current.DeepCopy()
		current.Status.Summary = "all yours"
		Expect(api.Patch(ctx, current, client.MergeFrom(before))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) (string, error) {
			current, err := view(quota.Name, namespace)(ctx)
			return current.Status.Summary, err
		}).Should(Equal("pods: 0/5"))
	})

	It("is what a project owner gets from kubectl", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5").Hard("requests.cpu", "2").Scopes(corev1.ResourceQuotaScopeNotBestEffort).
			ScopeSelector(corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "high", "low"))
		here, there := team.namespace(ctx), team.namespace(ctx)
		for _, namespace := range []string{here, there} {
			mustCreate(ctx, builders.Pod(namespace, "p1").Request("cpu", "100m").Obj())
		}
		idle := team.namespace(ctx)
		eventuallyUses(ctx, quota, "pods=2,requests.cpu=200m")
		age := MatchRegexp(`^\d+m?s$`)
		for namespace, used := range map[string]string{here: "pods: 1, requests.cpu: 100m", idle: "none"} {
			Eventually(ctx, func(g Gomega, ctx context.Context) {
				columns := kubectlColumns(ctx, "get", "lrq", "-n", namespace)
				g.Expect(columns).To(HaveLen(2), "a header and a line")
				g.Expect(columns[0]).To(Equal([]string{"NAME", "AGE", "USED", "USED HERE"}))
				g.Expect(columns[1]).To(HaveExactElements(Equal(quota.Name), age, Equal("pods: 2/5, requests.cpu: 200m/2"), Equal(used)))
			}).Should(Succeed())
		}
		wide := kubectlColumns(ctx, "get", "lrq", "-n", here, "-o", "wide")
		Expect(wide[0]).To(Equal([]string{"NAME", "AGE", "USED", "USED HERE", "RESERVED", "SCOPES"}))
		Expect(wide[1][4:]).To(Equal([]string{"none", "NotBestEffort, PriorityClass notin (high,low)"}))
	})
})

// kubectlColumns returns what kubectl prints, line by line, each split where at
// least three spaces, or the width of a column, set the columns apart.
func kubectlColumns(ctx context.Context, args ...string) [][]string {
	GinkgoHelper()
	result, err := cluster.Kubectl(ctx, nil, args...)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.ExitCode).To(Equal(0), result.Stderr)
	var lines [][]string
	for line := range strings.Lines(result.Stdout) {
		var columns []string
		for part := range strings.SplitSeq(strings.TrimRight(line, "\n"), "   ") {
			if part = strings.TrimSpace(part); part != "" {
				columns = append(columns, part)
			}
		}
		lines = append(lines, columns)
	}
	return lines
}
