// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// planAnswer is what programs read.
type planAnswer struct {
	Kind   string `json:"kind"`
	Result string `json:"result"`
	Quotas []struct {
		Quota      string   `json:"quota"`
		Change     string   `json:"change"`
		Namespaces []string `json:"namespaces"`
		Joining    []string `json:"joining"`
		Resources  []struct {
			Resource string `json:"resource"`
			Used     string `json:"used"`
			UsedFrom string `json:"usedFrom"`
			Above    string `json:"above"`
		} `json:"resources"`
	} `json:"quotas"`
	Webhook struct {
		EntriesThen int `json:"entriesThen"`
	} `json:"webhook"`
	Overlaps []struct {
		Quota string `json:"quota"`
		With  string `json:"with"`
	} `json:"overlaps"`
	Notes  []string `json:"notes"`
	status int
}

// plan plans the quotas of a file as somebody.
func plan(ctx context.Context, kubeconfig, file string) planAnswer {
	GinkgoHelper()
	got := crqAs(ctx, kubeconfig, "plan", "-f", file, "-o", "json")
	answered := planAnswer{status: got.status}
	Expect(json.Unmarshal([]byte(got.stdout), &answered)).To(Succeed(), "%s%s", got.stdout, got.stderr)
	return answered
}

// quotaFile writes a file with one quota for the namespaces with this label of the team.
func quotaFile(name, label, hard string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name+".yaml")
	text := "apiVersion: quota.sharedquota.dev/v1\nkind: ClusterResourceQuota\nmetadata: {name: " + name + "}\n" +
		"spec: {selector: {labels: {matchLabels: {team: " + label + "}}}, quota: {hard: {" + hard + "}}}\n"
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

// unanswered demands that a plan failed before anything was planned.
func unanswered(got outcome, want string) {
	GinkgoHelper()
	Expect(got.status).To(Equal(2))
	Expect(got.stdout).To(BeEmpty())
	Expect(got.stderr).To(And(HavePrefix("error: "), ContainSubstring(want)))
}

var _ = Describe("kubectl crq plan", Ordered, func() {
	const team, shop, books = "planner", "planner-shop", "planner-books"

	BeforeAll(func(ctx SpecContext) {
		namespace(ctx, shop, "team", team)
		namespace(ctx, books, "team", team)
		enforced(ctx, builders.Quota(team).Label("team", team).Hard("pods", "5").Obj())
		mustCreate(ctx, builders.Pod(shop, "a").Request("cpu", "500m").Obj())
		mustCreate(ctx, builders.Pod(shop, "b").Request("cpu", "1").Obj())
		mustCreate(ctx, builders.Pod(books, "c").Request("cpu", "300m").Obj())
		mustCreate(ctx, builders.Service(shop, "front").Obj())
		uses(ctx, team, "pods: 3/5")
	})

	It("says what a lowered limit does, and that nothing is applied", func(ctx SpecContext) {
		got := crq(ctx, "plan", "-f", quotaFile(team, team, "pods: 2"))
		Expect(got.status).To(Equal(1), got.stderr)
		Expect(got.stdout).To(And(HavePrefix("Above the limit would be pods of planner by 1.\n"),
			ContainSubstring("By team=planner it selects 2 namespaces: planner-books, planner-shop.\n"),
			MatchRegexp(`pods +Deny +5 +2 +3 +1 +3\n`)))
		Expect(mustKubectl(ctx, "get", "crq", team, "-o", "jsonpath={.spec.quota.hard.pods}")).To(Equal("5"))
	})

	It("counts a new quota as the operator does then, and foresees the webhook configuration", func(ctx SpecContext) {
		file := quotaFile("planner-more", team, `requests.cpu: "4", services: 2, pods: 10, count/configmaps: 10`)
		planned := plan(ctx, cluster.Kubeconfig(), file)
		Expect(planned.status).To(BeZero())
		Expect(planned.Kind).To(Equal("Plan"))
		Expect(planned.Quotas).To(HaveLen(1))
		Expect(planned.Quotas[0].Change).To(Equal("new"))
		Expect(planned.Quotas[0].Joining).To(Equal([]string{books, shop}))
		Expect(planned.Overlaps).To(ConsistOf(And(HaveField("Quota", "planner-more"), HaveField("With", team))))

		mustKubectl(ctx, "apply", "-f", file)
		DeferCleanup(func(ctx SpecContext) { mustKubectl(ctx, "delete", "-f", file) })
		current := suite.WaitUntilEnforced(ctx, api, "planner-more")
		for _, limit := range planned.Quotas[0].Resources {
			Expect(limit.UsedFrom).To(Equal("count"))
			for name, used := range current.Status.Total.Used {
				if string(name) == limit.Resource {
					Expect(limit.Used).To(Equal(used.String()), limit.Resource)
				}
			}
		}
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		Expect(api.Get(ctx, client.ObjectKey{Name: reach.ConfigurationName}, configuration)).To(Succeed())
		Expect(configuration.Webhooks).To(HaveEach(HaveField("Name", Not(BeEmpty()))))
		entries := 0
		for _, webhook := range configuration.Webhooks {
			if strings.HasPrefix(webhook.Name, "objects") {
				entries++
			}
		}
		Expect(planned.Webhook.EntriesThen).To(Equal(entries))

		Expect(plan(ctx, cluster.Kubeconfig(), file).Quotas[0].Change).To(Equal("unchanged"))
	})

	DescribeTable("fails for what is wrong, as the API server would", func(ctx SpecContext, want, hard string) {
		file := quotaFile("planner-wrong", team, hard)
		unanswered(crq(ctx, "plan", "-f", file), want)
		Expect(kubectl(ctx, cluster.Kubeconfig(), nil, "apply", "--dry-run=server", "-f", file).status).NotTo(BeZero())
	},
		Entry("less than nothing", "spec.quota.hard[pods]: Invalid value", `pods: "-1"`),
		Entry("an unknown resource", "spec.quota.hard[pots]: Invalid value", `pots: 1`),
		Entry("too much", "must be less than 1e30", `requests.cpu: "1e31"`),
	)

	It("needs a file", func(ctx SpecContext) {
		unanswered(crq(ctx, "plan"), "--filename")
		unanswered(crq(ctx, "plan", "-f", "/nowhere"), "no such file")
	})

	It("says what the caller may not read", func(ctx SpecContext) {
		limited := viewer(ctx, "planner-vera", shop)
		file := quotaFile("planner-new", team, "pods: 2")
		unanswered(crqAs(ctx, limited, "plan", "-f", file), `cannot list resource "clusterresourcequotas"`)

		mustKubectl(ctx, "create", "clusterrole", "planner-quotas", "--verb=get,list", "--resource=clusterresourcequotas.quota.sharedquota.dev")
		mustKubectl(ctx, "create", "clusterrolebinding", "planner-quotas", "--clusterrole=planner-quotas", "--user=planner-vera")
		DeferCleanup(func(ctx SpecContext) {
			mustKubectl(ctx, "delete", "clusterrole,clusterrolebinding", "planner-quotas")
		})
		Eventually(ctx, func(ctx context.Context) int { return kubectl(ctx, limited, nil, "get", "crq").status }).Should(BeZero())
		planned := plan(ctx, limited, file)
		Expect(planned.status).To(Equal(2))
		Expect(planned.Result).To(Equal("unknown"))
		Expect(planned.Notes).To(ConsistOf(HavePrefix("You may not read the webhook configuration"),
			HavePrefix("You may not list namespaces"), HavePrefix("You may not list nodes")))
		known := plan(ctx, limited, quotaFile(team, team, "pods: 2"))
		Expect(known.status).To(Equal(1))
		Expect(known.Quotas[0].Namespaces).To(Equal([]string{books, shop}))
	})
})
