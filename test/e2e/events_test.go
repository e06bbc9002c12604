// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// eventsOn returns the events of one object in its namespace, or in default where
// it has none, each as reason, path and note.
func eventsOn(kind, namespace, name string) func(ctx context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		where := namespace
		if where == "" {
			where = corev1.NamespaceDefault
		}
		list := &eventsv1.EventList{}
		if err := api.List(ctx, list, client.InNamespace(where)); err != nil {
			return nil, err
		}
		var found []string
		for i := range list.Items {
			event := &list.Items[i]
			if event.Regarding.Kind == kind && event.Regarding.Name == name {
				found = append(found, strings.Join([]string{event.Reason, event.Regarding.FieldPath, event.Note}, " "))
			}
		}
		return found, nil
	}
}

// says runs kubectl, and returns what it prints, with each run of spaces as one.
func says(args ...string) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		result, err := cluster.Kubectl(ctx, nil, args...)
		if err == nil && result.ExitCode != 0 {
			err = fmt.Errorf("kubectl %v: %s", args, result.Stderr)
		}
		return strings.Join(strings.Fields(result.Stdout), " "), err
	}
}

var _ = Describe("The events of a quota", func() {
	It("tell of refusals, each owner of their own namespace's", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		here, there := team.namespace(ctx), team.namespace(ctx)
		for _, namespace := range []string{here, there} {
			Eventually(ctx, view(quota.Name, namespace)).Should(Not(BeNil()))
			Expect(api.Create(ctx, builders.Pod(namespace, "web").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
		}
		words := exceeded(quota.Name, "pods", "1", "0", "0")

		By("describing the quota")
		Eventually(ctx, says("describe", "crq", quota.Name)).Should(And(
			ContainSubstring("Warning QuotaExceeded"), ContainSubstring(`refused pods: %s; delete unneeded objects`, words)))
		Consistently(ctx, says("get", "events", "-n", "default", "--field-selector", "involvedObject.name="+quota.Name, "-o", "yaml"),
			2*time.Second, 200*time.Millisecond).ShouldNot(Or(ContainSubstring(here), ContainSubstring(there), ContainSubstring(`"web"`)))
		By("describing the view")
		Eventually(ctx, says("describe", "lrq", quota.Name, "-n", here)).Should(And(
			ContainSubstring("Warning QuotaExceeded"),
			ContainSubstring(`refused pods "web": %s; used is what all namespaces that share the quota use`, words),
			Not(ContainSubstring(there))))
		By("listing what happened in the namespace")
		Eventually(ctx, says("get", "events", "-n", here, "-o", "wide")).Should(And(
			ContainSubstring("Warning QuotaExceeded localresourcequota/%s status.total.hard{pods}", quota.Name),
			Not(ContainSubstring(there))))
		all, err := says("get", "events", "-n", here, "-o", "yaml")(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(all).NotTo(ContainSubstring(there))
	})

	It("are few however much is refused", Serial, func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		namespace := team.namespace(ctx)
		Eventually(ctx, view(quota.Name, namespace)).Should(Not(BeNil()))
		Expect(api.Create(ctx, builders.Pod(namespace, "dry").Obj(), client.DryRunAll)).To(HaveOccurred())
		var pods []*corev1.Pod
		for i := range 200 {
			pods = append(pods, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
		}
		for _, result := range createAtOnce(ctx, pods) {
			Expect(result.err).To(BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
		}
		onQuota := eventsOn("ClusterResourceQuota", "", quota.Name)
		onView := eventsOn("LocalResourceQuota", namespace, quota.Name)
		Eventually(ctx, onQuota).Should(HaveLen(1))
		Eventually(ctx, onView).Should(HaveLen(1))
		Consistently(ctx, onQuota, 2*time.Second, 200*time.Millisecond).Should(ConsistOf(Not(ContainSubstring(`"dry"`))))
		Expect(onView(ctx)).To(HaveLen(1))
	})

	It("tell of a request that doesn't say enough", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("limits.cpu", "1"))
		namespace := team.namespace(ctx)
		Expect(api.Create(ctx, builders.Pod(namespace, "web").Obj())).To(HaveOccurred())
		Eventually(ctx, eventsOn("LocalResourceQuota", namespace, quota.Name)).Should(ConsistOf(
			`RequestIncomplete  refused pods "web": failed quota: ` + quota.Name + ": must specify limits.cpu for: app; " +
				"state it in the object, or let a LimitRange in the namespace give it"))
	})

	It("tell when a limit comes near, is reached, and is lowered below what is used", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5").Hard("secrets", "0"))
		here, there := team.namespace(ctx), team.namespace(ctx)
		fill := func(namespace, name, used string) {
			mustCreate(ctx, builders.Pod(namespace, name).Obj())
			eventuallyUses(ctx, quota, used)
			// A view that is written less often passes over a level.
			for _, owner := range []string{here, there} {
				Eventually(ctx, func(ctx context.Context) (string, error) {
					current, err := view(quota.Name, owner)(ctx)
					if current == nil {
						return "", err
					}
					return amounts(current.Status.Total.Used), err
				}).Should(Equal(used))
			}
		}
		for i := range 3 {
			fill(here, fmt.Sprintf("p%d", i), fmt.Sprintf("pods=%d,secrets=0", i+1))
		}
		fill(there, "p3", "pods=4,secrets=0")
		const (
			near    = "pods: used 4, hard 5; delete unneeded objects, or raise spec.quota.hard, before requests are refused"
			reached = "pods: used 5, hard 5; requests for more are refused: delete unneeded objects, or raise spec.quota.hard"
			above   = "pods: used 5, hard 3; nothing is removed, and requests for more are refused: " +
				"delete unneeded objects, or raise spec.quota.hard"
			path = " spec.quota.hard{pods} "
		)
		onQuota := eventsOn("ClusterResourceQuota", "", quota.Name)
		Eventually(ctx, onQuota).Should(ConsistOf("NearLimit" + path + near))
		fill(here, "p4", "pods=5,secrets=0")
		Eventually(ctx, onQuota).Should(ConsistOf("NearLimit"+path+near, "LimitReached"+path+reached))
		Eventually(ctx, condition(quota, quotav1.ConditionExceeded)).Should(HavePrefix("False WithinLimits"))

		By("lowering the limit")
		change(ctx, quota, hard("pods", "3"))
		Eventually(ctx, condition(quota, quotav1.ConditionExceeded)).Should(Equal("True UsedAboveHard: pods: used 5, hard 3; " +
			"nothing is removed, and requests for more are refused, until used is below hard: " +
			"delete unneeded objects, or raise spec.quota.hard"))
		Eventually(ctx, onQuota).Should(ConsistOf("NearLimit"+path+near, "LimitReached"+path+reached, "UsedAboveHard"+path+above))
		Eventually(ctx, says("describe", "crq", quota.Name)).Should(And(
			ContainSubstring("Warning NearLimit"), ContainSubstring("Warning LimitReached"), ContainSubstring("Warning UsedAboveHard")))

		By("looking into each namespace")
		for _, namespace := range []string{here, there} {
			for _, reason := range []string{"NearLimit", "LimitReached", "UsedAboveHard"} {
				Eventually(ctx, says("describe", "lrq", quota.Name, "-n", namespace)).Should(ContainSubstring("Warning " + reason))
			}
		}
		Expect(says("get", "events", "-n", here, "-o", "yaml")(ctx)).NotTo(ContainSubstring(there))

		By("making room")
		for _, pod := range []string{"p0", "p1"} {
			mustDelete(ctx, builders.Pod(here, pod).Obj())
		}
		Expect(says("wait", "--for=condition=Exceeded=false", "--timeout=30s", "crq", quota.Name)(ctx)).To(ContainSubstring("condition met"))
		Expect(onQuota(ctx)).To(HaveLen(3), "what was told is not told again")
	})
})
