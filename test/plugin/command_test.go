// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// The story that these specs look at: a team with two namespaces under one quota,
// and another quota that covers neither.
const (
	team  = "tally"
	shop  = "tally-shop"
	books = "tally-books"
)

// owner is the kubeconfig of somebody who may view the shop, and nothing else.
var owner string

func tell(ctx context.Context) {
	GinkgoHelper()
	namespace(ctx, shop, "team", team, "tier", "test")
	namespace(ctx, books, "team", team)
	enforced(ctx, builders.Quota(team).Label("team", team).Hard("pods", "5").Hard("requests.cpu", "2").Hard("services", "1").Obj())
	enforced(ctx, builders.Quota("tally-prod").Label("team", team).Label("tier", "prod").Hard("pods", "1").Obj())
	for _, pod := range []*corev1.Pod{
		builders.Pod(shop, "a").Request("cpu", "500m").Obj(),
		builders.Pod(shop, "b").Request("cpu", "1").Obj(),
		builders.Pod(books, "c").Request("cpu", "300m").Obj(),
	} {
		mustCreate(ctx, pod)
	}
	mustCreate(ctx, builders.Service(shop, "front").Obj())
	uses(ctx, team, "pods: 3/5, requests.cpu: 1800m/2, services: 1/1")
	owner = viewer(ctx, "tally-vera", shop)
}

var _ = Describe("kubectl crq", Ordered, func() {
	BeforeAll(func(ctx SpecContext) { tell(ctx) })

	It("is found by kubectl, and says what it can do", func(ctx SpecContext) {
		Expect(mustCrq(ctx, "--help")).To(ContainSubstring("ClusterResourceQuotas"))
	})

	DescribeTable("shows an administrator", func(ctx SpecContext, golden string, args ...string) {
		wantGolden(golden, mustCrq(ctx, args...))
	},
		Entry("a quota", "top", "top", team),
		Entry("more of it", "top-wide", "top", team, "-o", "wide", "--sort-by", "usage"),
		Entry("the name of a quota", "top-name", "top", team, "-o", "name"),
		Entry("which quotas cover a namespace", "explain", "explain", "-n", shop),
		Entry("the names of those", "explain-name", "explain", "-n", shop, "-o", "name"),
		Entry("that none covers it", "explain-free", "explain"),
	)

	It("shows all quotas, sorted by name", func(ctx SpecContext) {
		lines := strings.Split(mustCrq(ctx, "top"), "\n")
		Expect(lines).To(ContainElement(MatchRegexp(`^tally +services +1 +0 +1 +1 +100% +tally-shop 1$`)))
		Expect(lines).To(ContainElement(MatchRegexp(`^tally-prod +pods +0 +0 +0 +1 +0% +-$`)))
	})

	It("prints the objects of the API as JSON and YAML", func(ctx SpecContext) {
		one := &quotav1.ClusterResourceQuota{}
		Expect(json.Unmarshal([]byte(mustCrq(ctx, "top", team, "-o", "json")), one)).To(Succeed())
		Expect(one.Kind).To(Equal("ClusterResourceQuota"))
		Expect(one.Status.Total.Used.Pods().Value()).To(BeEquivalentTo(3))
		all := &quotav1.ClusterResourceQuotaList{}
		Expect(json.Unmarshal([]byte(mustCrq(ctx, "top", "-o", "json")), all)).To(Succeed())
		Expect(all.Items).To(ContainElements(HaveField("Name", team), HaveField("Name", "tally-prod")))
		Expect(mustCrq(ctx, "top", team, "-o", "yaml")).To(ContainSubstring("\n  name: " + team + "\n"))
		Expect(mustCrq(ctx, "top", team, "-o", "jsonpath={.status.summary}")).To(HavePrefix("pods: 3/5"))
	})

	It("describes quotas with their events", func(ctx SpecContext) {
		Eventually(ctx, func(ctx context.Context) string { return mustCrq(ctx, "describe", team) }).
			Should(MatchRegexp(`Warning +LimitReached +\d+s +shared-quota-operator .*services: used 1, hard 1`))
		description, _, found := strings.Cut(mustCrq(ctx, "describe", team), "Events:")
		Expect(found).To(BeTrue())
		wantGolden("describe", description)
	})

	It("describes those quotas that are there, and fails for the others", func(ctx SpecContext) {
		got := crq(ctx, "describe", "tallly", team)
		Expect(got.status).To(Equal(1))
		Expect(got.stdout).To(HavePrefix("Name: "))
		Expect(got.stderr).To(Equal("error: clusterresourcequotas.quota.sharedquota.dev \"tallly\" not found; did you mean tally?\n"))
	})

	Describe("to somebody who may view one namespace", func() {
		It("explains what is left, from the local views", func(ctx SpecContext) {
			Eventually(ctx, func(ctx context.Context) string { return mustSucceed(crqAs(ctx, owner, "explain", "-n", shop)) }).
				Should(MatchRegexp(`requests.cpu +1500m`))
			wantGolden("explain-owner", mustSucceed(crqAs(ctx, owner, "explain", "-n", shop)))
			Expect(mustSucceed(crqAs(ctx, owner, "explain", "-n", shop, "-o", "name"))).To(Equal("localresourcequota.quota.sharedquota.dev/tally\n"))
		})

		It("is the same by impersonation", func(ctx SpecContext) {
			Expect(mustCrq(ctx, "explain", "-n", shop, "--as", "tally-vera")).To(ContainSubstring("from its LocalResourceQuotas"))
		})

		DescribeTable("says which right is missing", func(ctx SpecContext, want string, args ...string) {
			got := crqAs(ctx, owner, args...)
			Expect(got.status).To(Equal(1))
			Expect(got.stdout).To(BeEmpty())
			Expect(got.stderr).To(And(HavePrefix("error: "), ContainSubstring(want)))
		},
			Entry("to see quotas", `cannot list resource "clusterresourcequotas"`, "top"),
			Entry("to see one", `cannot get resource "clusterresourcequotas"`, "describe", team),
			Entry("to see a ledger", `cannot get resource "quotaledgers"`, "reservations", team),
			Entry("to see another namespace", "ask an administrator for the role view, edit or admin in the namespace", "explain", "-n", books),
		)

		It("completes nothing that they can't read", func(ctx SpecContext) {
			Expect(mustSucceed(crqAs(ctx, owner, "__complete", "top", ""))).To(Equal(":4\n"))
		})
	})

	DescribeTable("fails, and says what to do about it", func(ctx SpecContext, want string, args ...string) {
		got := crq(ctx, args...)
		Expect(got.status).To(Equal(1))
		Expect(got.stderr).To(And(HavePrefix("error: "), ContainSubstring(want)))
	},
		Entry("without such a command", `unknown command "nonsense"`, "nonsense"),
		Entry("without such a format", `unknown output format "fancy": -o takes wide, json, yaml,`, "top", "-o", "fancy"),
		Entry("without such an order", "use --sort-by name or --sort-by usage", "top", "--sort-by", "age"),
		Entry("without such a namespace", `namespaces "tally-nowhere" not found`, "explain", "-n", "tally-nowhere"),
		Entry("without an API server", "see that --kubeconfig, KUBECONFIG or --context name the cluster that you mean", "top", "--server", "https://127.0.0.1:1"),
		Entry("without time", "give it longer with --request-timeout", "top", "--request-timeout", "1ns"),
		Entry("to watch in another format", "--watch shows tables", "top", "--watch", "-o", "json"),
		Entry("to watch what isn't there", "not found", "top", "--watch", "tally-nowhere"),
	)

	It("says that the operator isn't installed", func(ctx SpecContext) {
		bare, err := harness.Start(ctx, harness.Options{CRDDirs: []string{}})
		Expect(err).NotTo(HaveOccurred())
		defer func() { Expect(bare.Stop()).To(Succeed()) }()
		for _, args := range [][]string{{"top"}, {"describe", "x"}, {"explain"}, {"reservations", "x"}} {
			got := crqAs(ctx, bare.Kubeconfig(), args...)
			Expect(got.status).To(Equal(1))
			Expect(got.stderr).To(ContainSubstring("is the shared quota operator installed here?"), "%v", args)
		}
	})

	DescribeTable("completes", func(ctx SpecContext, want []string, args ...string) {
		got := kubectl(ctx, cluster.Kubeconfig(), nil, append([]string{"__complete", "crq"}, args...)...)
		Expect(strings.Split(strings.TrimSpace(mustSucceed(got)), "\n")).To(Equal(append(want, ":4")))
	},
		Entry("quotas", []string{"tally", "tally-prod"}, "top", "tall"),
		Entry("more quotas", []string{"tally-prod"}, "describe", "tally", "tall"),
		Entry("one quota, where one is taken", nil, "reservations", "tally", "tall"),
		Entry("namespaces", []string{books, shop}, "explain", "-n", "tally-"),
		Entry("orders", []string{"name", "usage"}, "top", "--sort-by", ""),
	)

	// The last one, for what it reserves stays for a while.
	It("lists what was admitted and never came", func(ctx SpecContext) {
		Expect(mustCrq(ctx, "reservations", team)).To(Equal("Ledger of tally: nothing is reserved; what was admitted has been observed.\n"))
		suite.RefuseAll(ctx, api, books)
		Expect(api.Create(ctx, builders.Pod(books, "d").Request("cpu", "100m").Obj())).To(MatchError(ContainSubstring(suite.Refusing)))
		Expect(mustCrq(ctx, "reservations", team)).To(MatchRegexp("^Ledger of tally: 1 reservation, of pods: 1, requests.cpu: 100m.\n" +
			`NAMESPACE +OBJECT +ATTEMPT +EXPIRES +AMOUNTS` + "\n" + `tally-books +pods/d +create +in \d+s(, doubtful)? +pods: 1, requests.cpu: 100m` + "\n$"))
		var view struct {
			Kind         string `json:"kind"`
			Intact       bool   `json:"intact"`
			Known        bool   `json:"known"`
			Reservations []struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
				Attempt   string `json:"attempt"`
			} `json:"reservations"`
		}
		Expect(json.Unmarshal([]byte(mustCrq(ctx, "reservations", team, "-o", "json")), &view)).To(Succeed())
		Expect(view.Kind).To(Equal("Reservations"))
		Expect(view.Intact && view.Known).To(BeTrue())
		Expect(view.Reservations).To(ConsistOf(And(HaveField("Name", "d"), HaveField("Namespace", books), HaveField("Attempt", "create"))))
		Eventually(ctx, func(ctx context.Context) string { return mustCrq(ctx, "top", team) }).Should(MatchRegexp(`pods +3 +1 +4 +5 +80%`))
	})
})
