// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

func administrator() []step {
	return []step{
		{
			say:    "One line for the quota: which namespaces it selects, and what they use together.",
			run:    "kubectl get crq",
			within: soon,
			want: []check{succeeds, says("payments", "team=payments", "True", "count/deployments.apps: 1/1",
				"count/widgets.example.com: 1/1", "pods: 8/8", "requests.cpu: 4250m/6", "services.loadbalancers: 1/1")},
		},
		{
			say:    "The plugin kubectl crq says more. How full is the quota, and who uses most?",
			run:    "kubectl crq top payments",
			within: soon,
			want:   []check{succeeds, matches(`pods +8 +0 +8 +100%`), matches(`pods +checkout +5 +62%`)},
		},
		{
			say: "All of it: conditions, figures, each namespace's part, and what happened. Whose requests " +
				"were refused stands in the events of the namespaces.",
			run:    "kubectl crq describe payments",
			within: soon,
			want: []check{succeeds, matches(`Enforced +True +WebhookConfigured`), matches(`refunds +pods: 2, requests.cpu: 2`),
				says("LimitReached", "QuotaExceeded", "refused pods: exceeded quota: payments", "RequestIncomplete")},
		},
		{
			say:    "The ledger behind it holds what was admitted and not counted yet. A moment later, that is nothing.",
			run:    "kubectl crq reservations payments",
			within: soon,
			want:   []check{succeeds, says("Ledger of payments: nothing is reserved")},
		},
		{
			say:  "Why isn't the search team limited? By its label.",
			run:  "kubectl crq explain -n catalogue",
			want: []check{succeeds, says("team=search", "No ClusterResourceQuota covers it")},
		},
		{
			say:  "It is to be. It comes from OpenShift, with a quota of its own.",
			run:  "cat openshift.yaml",
			want: []check{succeeds},
		},
		{
			say: "The plugin converts what it can, and says in comments what became of the rest. The administrator " +
				"may apply it later.",
			run: "kubectl crq convert -f openshift.yaml",
			want: []check{succeeds, says("apiVersion: quota.sharedquota.dev/v1", `pods: "20"`,
				`count/imagestreams.image.openshift.io: "5"`, "OpenShift's name")},
		},
	}
}

func limits() []step {
	return []step{
		{
			say: "Eight pods are used. The administrator allows six from now on.",
			run: "kubectl patch crq payments --type=merge \\\n" +
				`    -p '{"spec": {"quota": {"hard": {"pods": "6"}}}}'`,
			want: []check{succeeds, says("patched")},
		},
		{
			say:  "Nothing is removed. A condition says that more is used than is allowed, and so does an event.",
			run:  "kubectl wait --for=condition=Exceeded crq/payments --timeout=60s",
			want: []check{succeeds},
		},
		{
			run:    "kubectl get events -n default --field-selector=reason=UsedAboveHard",
			within: soon,
			want: []check{succeeds, says("clusterresourcequota/payments",
				"pods: used 8, hard 6; nothing is removed, and requests for more are refused")},
		},
		{
			say: "And the team gets room after all: for twelve pods and eight CPUs.",
			run: "kubectl patch crq payments --type=merge \\\n" +
				`    -p '{"spec": {"quota": {"hard": {"pods": "12", "requests.cpu": "8"}}}}'`,
			want: []check{succeeds, says("patched")},
		},
		{
			run:  "kubectl wait --for=condition=Exceeded=false crq/payments --timeout=60s",
			want: []check{succeeds},
		},
		{
			say: "The web server's ReplicaSet was refused pods, and would have tried again minutes later. The operator wakes " +
				"it as soon as there is room: four more pods come.",
			run:    "kubectl get replicasets -n checkout",
			within: soon,
			want:   []check{succeeds, matches(`\nweb-\S+ +10 +9 +0 `)},
		},
		{
			run: "kubectl get replicasets -n checkout \\\n" +
				`    -o jsonpath='{.items[0].metadata.annotations.quota\.sharedquota\.dev/room}{"\n"}'`,
			want: []check{succeeds, matches(`^20\d\d-`)},
		},
		{
			say:  "Ten replicas were too many. Five will do.",
			run:  "kubectl scale deployment web --replicas=5 -n checkout",
			want: []check{succeeds, says("scaled")},
		},
		{
			run:    "kubectl get replicasets -n checkout",
			within: soon,
			want:   []check{succeeds, matches(`\nweb-\S+ +5 +5 +0 `)},
		},
	}
}

func owner() []step {
	return []step{
		{
			say:  "Ivy owns invoices, and nothing else: the role project-owner, in that namespace.",
			run:  "kubectl create rolebinding ivy --clusterrole=project-owner --user=ivy -n invoices",
			want: []check{succeeds},
		},
		{
			say: "She sees a view of the quota that covers her namespace, under its name: what all its namespaces use " +
				"together, and what hers uses of it. No other namespace is named.",
			run:    "kubectl get lrq -n invoices -o wide --as=ivy",
			within: soon,
			want: []check{succeeds, says("payments", "pods: 8/12", "requests.cpu: 4250m/8", "pods: 1, requests.cpu: 1"),
				doesNotSay("checkout", "refunds")},
		},
		{
			say:    "In detail, with what is left. The events say what her namespace was refused, and what to do.",
			run:    "kubectl describe lrq payments -n invoices --as=ivy",
			within: soon,
			want: []check{succeeds, matches(`(?s)Available:.*Pods: +4\n`), doesNotSay("checkout", "refunds"),
				says("LimitReached", `refused services "shop"`, "ask the cluster's administrator")},
		},
		{
			say:  "Which quotas is she under, and what is left? The plugin works with what she may read.",
			run:  "kubectl crq explain -n invoices --as=ivy",
			want: []check{succeeds, matches(`pods +1 +8 +0 +12 +4 `), doesNotSay("checkout", "refunds")},
		},
		{
			say:  "The ClusterResourceQuota is not hers to read.",
			run:  "kubectl get crq --as=ivy",
			want: []check{refused, says(`User "ivy" cannot list resource "clusterresourcequotas"`)},
		},
	}
}

func subdivision() []step {
	return []step{
		{
			say: "Ivy wants invoices to leave something to the others. Project owners may divide what they get, by " +
				"ResourceQuotas of five agreed names.",
			run:  "kubectl create quota default --hard=pods=3 -n invoices --as=ivy",
			want: []check{succeeds},
		},
		{
			say:  "Other names are the administrator's, to lock a namespace down by.",
			run:  "kubectl create quota mine --hard=pods=3 -n invoices --as=ivy",
			want: []check{refused, says("default, terminating, not-terminating, best-effort or not-best-effort")},
		},
		{
			say:  "Her next report is a job of two pods, each with half a CPU.",
			run:  "cat report.yaml",
			want: []check{succeeds},
		},
		{
			say:    "Does it fit? It is asked of both quotas, and nothing is created.",
			run:    "kubectl crq fit -f report.yaml -n invoices --as=ivy",
			within: soon,
			want:   []check{succeeds, says("It fits."), matches(`crq/payments .*pods +2 +4 +-`), matches(`quota/default .*pods +2 +2 +-`)},
		},
		{
			say: "The audit is one of eight. It doesn't fit, and the exit code is 1.",
			run: "kubectl crq fit -f audit.yaml -n invoices --as=ivy",
			want: []check{answersNo, says("It doesn't fit: crq/payments is short of pods: 4, requests.cpu: 250m; " +
				"quota/default is short of pods: 6.")},
		},
		{
			say:  "So she creates the report, and it gets its pods.",
			run:  "kubectl create -f report.yaml -n invoices --as=ivy",
			want: []check{succeeds},
		},
		{
			run:    "kubectl get quota default -n invoices --as=ivy",
			within: soon,
			want:   []check{succeeds, says("pods: 3/3")},
		},
		{
			say:  "The team has room for another worker, invoices doesn't: Ivy's own quota refuses it.",
			run:  "kubectl create -f worker.yaml -n invoices --as=ivy",
			want: []check{refused, says("exceeded quota: default, requested: pods=1, used: pods=3, limited: pods=3")},
		},
	}
}
