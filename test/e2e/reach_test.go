// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// unanswered is what a client is told while no operator answers.
const unanswered = `failed calling webhook "objects.quota.sharedquota.dev"`

var _ = Describe("While no operator runs", func() {
	It("refuses what a quota limits, and nothing else", func(ctx SpecContext) {
		team := newTeam()
		enforce(ctx, team.quota().Hard("pods", "10").Hard("services", "10"))
		selected := team.namespace(ctx)
		other := mustCreate(ctx, builders.Namespace(team.nextName()).Obj()).Name
		system := mustGetNamespace(ctx, "kube-system")
		relabel(ctx, system, map[string]string{teamLabel: team.name})
		DeferCleanup(func(ctx SpecContext) { relabel(ctx, mustGetNamespace(ctx, "kube-system"), nil) })
		pod := mustCreate(ctx, builders.Pod(selected, "before").Obj())
		service := mustCreate(ctx, builders.Service(selected, "before").Obj())
		node := mustCreate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: team.name}})

		away(running.Kill)

		By("refusing, and saying why, what is limited where it is")
		Eventually(ctx, func(ctx context.Context) error {
			return api.Create(ctx, builders.Pod(selected, "probe").Obj(), client.DryRunAll)
		}).Should(MatchError(ContainSubstring(unanswered)))
		Expect(api.Create(ctx, builders.Service(selected, "probe").Obj())).To(MatchError(ContainSubstring(unanswered)))
		Expect(scrapeAPIServer(ctx).sum("apiserver_admission_webhook_rejection_count",
			"name", "objects.quota.sharedquota.dev", "error_type", "calling_webhook_error")).To(BeNumerically(">=", 2),
			"an alert is made of it")

		By("leaving other namespaces alone, and other resources")
		mustCreate(ctx, builders.Pod(other, "pod").Obj())
		mustCreate(ctx, builders.Service(other, "service").Obj())
		mustCreate(ctx, builders.ConfigMap(selected, "other"))
		mustCreate(ctx, builders.Deployment(selected, "other", 0))

		By("leaving protected namespaces alone, selected or not")
		mustDelete(ctx, mustCreate(ctx, builders.Pod("kube-system", "pod").Obj()))

		By("leaving alone what nodes and controllers do")
		node.Status.Phase = corev1.NodeRunning
		Expect(api.Status().Update(ctx, node)).To(Succeed())
		pod.Status.Phase = corev1.PodRunning
		Expect(api.Status().Update(ctx, pod)).To(Succeed())
		pod.Labels = map[string]string{"ready": "true"}
		Expect(api.Update(ctx, pod)).To(Succeed())
		service.Labels = map[string]string{"ready": "true"}
		Expect(api.Update(ctx, service)).To(Succeed())
		mustDelete(ctx, pod)
		mustDelete(ctx, node)

		By("going on once it is back")
		start(ctx)
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, builders.Pod(selected, "after").Obj()))
		}).Should(Succeed())
	})

	It("admits everything unchecked where that was chosen, and says so", func(ctx SpecContext) {
		DeferCleanup(restartWith, settings)
		ignoring := settings
		ignoring.Args = append(slices.Clip(settings.Args), "--failure-policy", "Ignore")
		restartWith(ctx, ignoring)
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		namespace := team.namespace(ctx)
		Expect(conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)).To(ContainSubstring("admitted unchecked"))
		Expect(api.Create(ctx, builders.Pod(namespace, "refused").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
		Expect(running.Kill()).To(Succeed())
		mustCreate(ctx, builders.Pod(namespace, "unchecked").Obj())
		Expect(scrapeAPIServer(ctx).sum("apiserver_admission_webhook_fail_open_count",
			"name", "objects.quota.sharedquota.dev")).To(BeNumerically(">=", 1), "an alert is made of it")
		start(ctx)
		eventuallyUses(ctx, quota, "pods=1")
	})
})

var _ = Describe("An operator that is removed with its namespace", func() {
	It("leaves no cluster that refuses pods", func(ctx SpecContext) {
		collector, err := cluster.StartControllerManager(ctx, "--controllers", "garbage-collector-controller")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(collector.Stop)
		own := mustCreate(ctx, builders.Namespace("operator-of-its-own").Obj())
		DeferCleanup(restartWith, settings)
		elsewhere := settings
		elsewhere.Args = append(slices.Clip(settings.Args), "--namespace", own.Name)
		restartWith(ctx, elsewhere)
		team := newTeam()
		enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		Eventually(ctx, func(ctx context.Context) []metav1.OwnerReference { return configuration(ctx).OwnerReferences }).
			Should(ConsistOf(HaveField("UID", own.UID)))

		Expect(running.Kill()).To(Succeed())
		Expect(api.Create(ctx, builders.Pod(namespace, "refused").Obj())).To(MatchError(ContainSubstring(unanswered)))
		Expect(api.Delete(ctx, own)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(api.Create(ctx, builders.Pod(namespace, "admitted").Obj()))
		}).Should(Succeed())
	})
})

var _ = Describe("The reach of the webhook", func() {
	It("is each quota's namespaces and resources, and a request meets one entry", func(ctx SpecContext) {
		first, second := newTeam(), newTeam()
		enforce(ctx, first.quota().Hard("pods", "1"))
		both := enforce(ctx, second.quota().Hard("configmaps", "9"))
		Expect(entries(ctx)).To(ConsistOf(
			fmt.Sprintf("pods pods/resize in %s", first.name),
			fmt.Sprintf("configmaps in %s", second.name),
		))

		By("splitting where two quotas meet")
		overlapping := enforce(ctx, builders.Quota(second.nextName()).Label(teamLabel, second.name).Hard("pods", "0"))
		Expect(entries(ctx)).To(ConsistOf(
			fmt.Sprintf("pods pods/resize in %s", first.name),
			fmt.Sprintf("configmaps pods pods/resize in %s", second.name),
		))
		Expect(api.Create(ctx, builders.Pod(second.namespace(ctx), "pod").Obj())).To(
			MatchError(ContainSubstring(exceeded(overlapping.Name, "pods", "1", "0", "0"))))

		By("following what goes")
		mustDelete(ctx, both)
		Eventually(ctx, entries).Should(ConsistOf(
			fmt.Sprintf("pods pods/resize in %s", first.name),
			fmt.Sprintf("pods pods/resize in %s", second.name),
		))
	})

	It("is wider than the quota's namespaces where annotations select, and says so", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "0").Obj()
		quota.Spec.Selector.AnnotationSelector = map[string]string{"example.com/owner": "me"}
		quota = createQuota(ctx, quota)
		waitUntilEnforced(ctx, quota)
		Expect(conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)).To(ContainSubstring("namespaces that are not selected"))
		mustCreate(ctx, builders.Pod(team.namespace(ctx), "pod").Obj())
	})

	It("is also that of a quota that is invalid, and the quota says what is refused", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "500m").Obj()
		createUnvalidated(ctx, quota)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionEnforced)).To(
				HavePrefix("False InvalidSpec: every request for what spec.quota.hard names is refused"))
			g.Expect(conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionReady)).To(ContainSubstring("must be an integer"))
			current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
			g.Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, current)).To(Succeed())
			g.Expect(entries(ctx)).To(ConsistOf("pods pods/resize in " + team.name))
		}).Should(Succeed())
	})

	It("leaves out protected namespaces, and the quota says which", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		relabel(ctx, mustGetNamespace(ctx, "kube-public"), map[string]string{teamLabel: team.name})
		DeferCleanup(func(ctx SpecContext) { relabel(ctx, mustGetNamespace(ctx, "kube-public"), nil) })
		Eventually(ctx, func(ctx context.Context) string {
			return conditionOf(mustGetQuota(ctx, quota), quotav1.ConditionProtectedSelected)
		}).Should(And(HavePrefix("True ProtectedNamespaces: "), ContainSubstring("kube-public")))
		mustDelete(ctx, mustCreate(ctx, builders.Pod("kube-public", "pod").Obj()))
	})
})

func mustGetQuota(ctx context.Context, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	GinkgoHelper()
	current := &quotav1.ClusterResourceQuota{}
	Expect(api.Get(ctx, client.ObjectKeyFromObject(quota), current)).To(Succeed())
	return current
}

func configuration(ctx context.Context) *admissionregistrationv1.ValidatingWebhookConfiguration {
	GinkgoHelper()
	current := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	Expect(api.Get(ctx, client.ObjectKey{Name: "shared-quota"}, current)).To(Succeed())
	return current
}

// generated are the entries of a configuration but for that of probes, and for the token in
// their paths: both are others each time that the configuration is written anew.
func generated(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	entries := slices.DeleteFunc(slices.Clone(configuration.Webhooks), func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return webhook.Name == "probe.quota.sharedquota.dev"
	})
	for i, entry := range entries {
		entries[i].ClientConfig.URL = ptr.To(suite.WithoutCallersToken(*entry.ClientConfig.URL))
	}
	return entries
}

// enforcing are the entries of a configuration that enforce quotas.
func enforcing(is *admissionregistrationv1.ValidatingWebhookConfiguration) []admissionregistrationv1.ValidatingWebhook {
	return slices.DeleteFunc(generated(is), func(webhook admissionregistrationv1.ValidatingWebhook) bool {
		return !strings.HasPrefix(webhook.Name, "objects")
	})
}

// entries are what is asked about and in the namespaces of which teams.
func entries(ctx context.Context) []string {
	GinkgoHelper()
	var entries []string
	for _, webhook := range enforcing(configuration(ctx)) {
		text := ""
		for _, rule := range webhook.Rules {
			text += rule.Resources[0] + " "
		}
		for _, requirement := range webhook.NamespaceSelector.MatchExpressions {
			if requirement.Key == teamLabel {
				text += "in " + strings.Join(requirement.Values, ",")
			}
		}
		entries = append(entries, text)
	}
	return entries
}
