// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// publishing is how long it takes until what a replica knows is in its ConfigMap.
const publishing = 12 * time.Second

var _ = Describe("The history of a quota", func() {
	It("has peaks and refusals, which outlive the operator", longest, func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "3"))
		here, there := team.namespace(ctx), team.namespace(ctx)
		for i := range 3 {
			mustCreate(ctx, builders.Pod(here, fmt.Sprintf("p%d", i)).Obj())
		}
		refuse := func(namespace string) {
			GinkgoHelper()
			Expect(api.Create(ctx, builders.Pod(namespace, "more").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "3", "3")))
		}
		refuse(here)
		refuse(here)
		refuse(there)
		for i := range 2 {
			mustDelete(ctx, builders.Pod(here, fmt.Sprintf("p%d", i)).Obj())
		}
		eventuallyUses(ctx, quota, "pods=1")
		const want = "pods: peak 3/3/3 refused 3/3/3 short 1"
		remembers := func(ctx context.Context) string { return pastOf(mustGetQuota(ctx, quota)) }
		Eventually(ctx, remembers).Should(Equal(want))
		Expect(mustGetQuota(ctx, quota).Status.MostRefused).To(HaveValue(Equal(quotav1.MostRefused{Namespace: here, Requests: 2})))
		Eventually(ctx, view(quota.Name, there)).Should(HaveField("Status.RefusedToday", BeEquivalentTo(1)))
		Eventually(ctx, view(quota.Name, here)).Should(HaveField("Status.RefusedToday", BeEquivalentTo(2)))
		since := mustGetQuota(ctx, quota).Status.HistorySince
		Expect(since).NotTo(BeNil())
		Consistently(ctx, remembers).WithTimeout(publishing).Should(Equal(want)) // by then it is published

		By("killing it twice")
		for range 2 {
			restart(ctx)
			Consistently(ctx, remembers).WithTimeout(2 * time.Second).Should(Equal(want))
		}
		for i := range 2 {
			Eventually(ctx, func(ctx context.Context) error {
				return client.IgnoreAlreadyExists(api.Create(ctx, builders.Pod(there, fmt.Sprintf("q%d", i)).Obj()))
			}).Should(Succeed())
		}
		refuse(there)
		Eventually(ctx, remembers).Should(Equal("pods: peak 3/3/3 refused 4/4/4 short 1"))
		Expect(mustGetQuota(ctx, quota).Status.HistorySince).To(Equal(since))

		By("raising the limit")
		quota = mustGetQuota(ctx, quota)
		quota.Spec.Quota.Hard["pods"] = resource.MustParse("10")
		Expect(api.Update(ctx, quota)).To(Succeed())
		Eventually(ctx, remembers).Should(Equal("pods: peak 3/3/3 refused 4/4/4 short -6"))
		By("lowering it below the peak, and not below what is used")
		mustDelete(ctx, builders.Pod(there, "q0").Obj())
		eventuallyUses(ctx, quota, "pods=2")
		Expect(kubectlPatch(ctx, quota, `{"spec":{"quota":{"hard":{"pods":"2"}}}}`)).To(
			ContainSubstring("below the peak of the last 30 days (pods: 3/2)"))
	})

	It("begins anew with another quota of that name", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "0"))
		namespace := team.namespace(ctx)
		Expect(api.Create(ctx, builders.Pod(namespace, "p").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "0", "0")))
		Eventually(ctx, func(ctx context.Context) string { return pastOf(mustGetQuota(ctx, quota)) }).Should(ContainSubstring("refused 1/1/1"))
		mustDelete(ctx, quota)
		again := mustCreate(ctx, team.quota().Hard("pods", "5").Obj())
		waitUntilEnforced(ctx, again)
		Eventually(ctx, func(ctx context.Context) string { return pastOf(mustGetQuota(ctx, again)) }).Should(Equal("pods: peak 0/0/0"))
	})

	It("counts what modes and a trial would have refused", func(ctx SpecContext) {
		team := newTeam()
		quota := team.quota().Hard("pods", "1").Hard("services", "100").Obj()
		quota.Spec.Enforcement = quotav1.Enforcement{
			Overrides: []quotav1.EnforcementOverride{{Resource: "pods", Mode: quotav1.EnforcementWarn}}, WarnAt: 90,
		}
		quota.Spec.Trial.Hard = corev1.ResourceList{"secrets": resource.MustParse("1")}
		enforced := createQuota(ctx, quota)
		waitUntilEnforced(ctx, enforced)
		namespace := team.namespace(ctx)
		for i := range 3 {
			if i == 1 { // until the namespace is counted, nothing is judged
				eventuallyUses(ctx, enforced, "pods=1,services=0")
			}
			mustCreate(ctx, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
			mustCreate(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s%d", i)}})
		}
		Eventually(ctx, func(ctx context.Context) string { return pastOf(mustGetQuota(ctx, enforced)) }).Should(
			Equal("pods: peak 3/3/3 refused 2/2/2 short 2; secrets: peak 3/3/3; services: peak 0/0/0; trial of secrets: 2 short 2"))
		Eventually(ctx, view(enforced.Name, namespace)).Should(And(
			HaveField("Status.Modes", Equal(map[corev1.ResourceName]quotav1.EnforcementMode{"pods": quotav1.EnforcementWarn})),
			HaveField("Status.WarnAt", BeEquivalentTo(90)), HaveField("Status.RefusedToday", BeEquivalentTo(2))))
	})

	It("has who changed it, and not who failed to", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "16").Hard("secrets", "20"))
		refuseLimit(ctx, quota.Name, "17")
		edit := func(user string, change func(*quotav1.ClusterResourceQuotaSpec), options ...client.PatchOption) error {
			current := mustGetQuota(ctx, quota)
			changed := current.DeepCopy()
			change(&changed.Spec)
			return suite.Client(cluster.As(user, "system:masters"), deadline).Patch(ctx, changed, client.MergeFrom(current), options...)
		}
		pods := func(limit string) func(*quotav1.ClusterResourceQuotaSpec) {
			return func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Quota.Hard["pods"] = resource.MustParse(limit) }
		}
		Expect(edit("petra", pods("17"))).To(MatchError(ContainSubstring("not this limit")))
		Expect(edit("dora", pods("18"), client.DryRunAll)).To(Succeed())
		Expect(edit("olga", pods("20"))).To(Succeed())
		Expect(edit("ivan", func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Preflight = quotav1.PreflightOff })).To(Succeed())
		Expect(edit("ivan", func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Enforcement.Mode = quotav1.EnforcementAudit })).To(Succeed())
		Expect(edit("olga", pods("21"))).To(Succeed())
		// The generation of the change of preflight isn't shown.
		Eventually(ctx, func(ctx context.Context) []string { return changesOf(mustGetQuota(ctx, quota)) }).Should(Equal([]string{
			"5/olga/hard/pods/20/21", "4/ivan/mode//Deny/Audit", "2/olga/hard/pods/16/20",
		}))
		Eventually(ctx, eventsOn("ClusterResourceQuota", "", quota.Name)).Should(ConsistOf(
			"SpecChanged spec.quota.hard{pods} olga changed hard of pods from 16 to 20",
			"SpecChanged spec.enforcement.mode ivan changed mode from Deny to Audit",
			"SpecChanged spec.quota.hard{pods} olga changed hard of pods from 20 to 21"))
		By("killing the operator")
		restart(ctx)
		Expect(edit("ivan", pods("22"))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) []string { return changesOf(mustGetQuota(ctx, quota)) }).Should(Equal([]string{
			"6/ivan/hard/pods/21/22", "5/olga/hard/pods/20/21", "4/ivan/mode//Deny/Audit", "2/olga/hard/pods/16/20",
		}))
	})
})

// pastOf puts the history of a quota into one line. Each resource's must take 200 bytes at most.
func pastOf(quota *quotav1.ClusterResourceQuota) string {
	GinkgoHelper()
	line := ""
	for i := range quota.Status.History {
		seen := &quota.Status.History[i]
		text, err := json.Marshal(seen)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)-len(seen.Resource)).To(BeNumerically("<=", 200), string(text))
		Expect(seen.Peak.At.IsZero()).To(BeFalse())
		if i > 0 {
			line += "; "
		}
		peak := &seen.Peak
		line += fmt.Sprintf("%s: peak %s/%s/%s", seen.Resource, peak.Day.String(), peak.Week.String(), peak.Month.String())
		if seen.Refused != nil {
			line += fmt.Sprintf(" refused %d/%d/%d short %s", seen.Refused.Day, seen.Refused.Week, seen.Refused.Month, seen.Refused.Shortfall.String())
		}
	}
	if quota.Status.Trial != nil {
		for _, tried := range quota.Status.Trial.WouldRefuse {
			line += fmt.Sprintf("; trial of %s: %d short %s", tried.Resource, tried.Requests, tried.LargestShortfall.String())
		}
	}
	return line
}

func changesOf(quota *quotav1.ClusterResourceQuota) []string {
	var lines []string
	for _, change := range quota.Status.Changes {
		lines = append(lines, fmt.Sprintf("%d/%s/%s/%s/%s/%s",
			change.Generation, change.By, change.Field, change.Resource, change.From, change.To))
	}
	return lines
}

// refuseLimit has another webhook refuse a limit of pods of one quota, until the spec has ended.
func refuseLimit(ctx context.Context, quota, limit string) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(request.Body).Decode(review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not this limit"}}
		review.Request = nil
		_ = json.NewEncoder(writer).Encode(review) // the API server notices
	}))
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "refuses-" + quota},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "refuses-limit.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{quotav1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"clusterresourcequotas"},
				},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "limit", Expression: fmt.Sprintf("object.metadata.name == %q && string(object.spec.quota.hard.pods) == %q", quota, limit),
			}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	Expect(api.Create(ctx, configuration)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, configuration))).To(Succeed())
		server.Close()
	})
	Eventually(ctx, func(ctx context.Context) error {
		current := &quotav1.ClusterResourceQuota{}
		if err := api.Get(ctx, client.ObjectKey{Name: quota}, current); err != nil {
			return err
		}
		current.Spec.Quota.Hard["pods"] = resource.MustParse(limit)
		return api.Update(ctx, current, client.DryRunAll)
	}).Should(MatchError(ContainSubstring("not this limit")), "the API server loads a configuration a moment later")
}
