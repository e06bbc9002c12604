// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// story is what the demo tells. Each chapter builds on those before.
func story() []chapter {
	return []chapter{
		{title: "One quota for three namespaces", steps: quota()},
		{title: "Until it is used up", steps: usedUp()},
		{title: "What one namespace frees, another may use", steps: freed()},
		{title: "Controllers are held to it too", steps: controllers()},
		{title: "What the administrator sees", steps: administrator()},
		{title: "A limit is lowered, and raised", steps: limits()},
		{title: "A rollout in a full quota", steps: rollout()},
		{title: "What a project owner sees", steps: owner()},
		{title: "What a project owner decides", steps: subdivision()},
		{title: "A quota that watches first", steps: watching()},
		{title: "When the operator is down", steps: down()},
	}
}

// hard has the limits of a quota edited.
func hard(limits string, more ...string) string {
	return strings.Join(append([]string{"kubectl patch crq payments --type=merge"}, more...), " ") +
		` -p '{"spec":{"quota":{"hard":{` + limits + `}}}}'`
}

// searchIs has the search team's quota patched by a file.
func searchIs(file string) string {
	return "kubectl patch crq search --type=merge --patch-file " + file
}

// exceeds are the words with which a quota refuses one more of a resource that is used up to its limit.
func exceeds(quota, resource, limit string) []string {
	return []string{fmt.Sprintf(
		"exceeded quota: %[1]s, requested: %[2]s=1, used: %[2]s=%[3]s, limited: %[2]s=%[3]s", quota, resource, limit)}
}

func quota() []step {
	return []step{
		{
			say: "The payments team has the namespaces checkout, invoices and refunds. The label team says so. " +
				"The search team has one of its own, catalogue. The cluster serves a custom resource, Widget.",
			run: "kubectl apply -f team.yaml -f widget-crd.yaml",
		},
		{
			say: "The administrator limits what the payments team's namespaces hold together: " +
				"CPU, memory, pods, load balancers, deployments and widgets.",
			run: "cat quota.yaml",
		},
		{run: "kubectl apply -f quota.yaml"},
		{
			say: "The operator counts what there is, and has the API server ask it about " +
				"each request that the quota limits. From then on the quota is enforced.",
			run: "kubectl wait --for=condition=Ready --for=condition=Enforced crq/payments --timeout=60s",
		},
		{
			say: "As with a ResourceQuota, a pod must now say how much CPU and memory it " +
				"requests. One that doesn't is refused.",
			run:   "kubectl run bare --image=registry.example.com/bare -n checkout",
			fails: true,
			says:  []string{"failed quota: payments: must specify requests.cpu for: bare; requests.memory for: bare"},
		},
	}
}

func usedUp() []step {
	return []step{
		{
			say: "Each of the three namespaces creates a worker, which requests one CPU.",
			run: "for team in checkout invoices refunds; do kubectl create -f worker.yaml -n $team; done",
		},
		{
			say: "That makes three CPUs, and three is the limit. The next worker is refused " +
				"at once, in whichever namespace.",
			run:   "kubectl create -f worker.yaml -n refunds",
			fails: true,
			says:  exceeds("payments", "requests.cpu", "3"),
		},
		{
			say: "It is the same with anything else that the quota limits. One load balancer and one widget for the team:",
			run: "kubectl create service loadbalancer shop --tcp=443 -n checkout",
		},
		{
			run:   "kubectl create service loadbalancer shop --tcp=443 -n invoices",
			fails: true,
			says:  exceeds("payments", "services.loadbalancers", "1"),
		},
		{run: "kubectl create -f widget.yaml -n checkout"},
		{
			run:   "kubectl create -f widget.yaml -n invoices",
			fails: true,
			says:  exceeds("payments", "count/widgets.example.com", "1"),
		},
	}
}

func freed() []step {
	return []step{
		{
			say: "The worker in checkout goes. So one CPU is free again, and refunds gets its second worker.",
			run: "kubectl delete pods -l app=worker -n checkout",
		},
		{run: "kubectl create -f worker.yaml -n refunds", repeat: true},
	}
}

func controllers() []step {
	return []step{
		{
			say: "The administrator grants the team more CPU. The limit of eight pods stays.",
			run: hard(`"requests.cpu":"6"`),
		},
		{
			say:  "Somebody deploys a web server with ten replicas. kubectl prints at once what the quota says to that.",
			run:  "kubectl create -f web.yaml -n checkout",
			says: []string{`Warning: quota payments: 10 pods can never fit \(5 fit now\)`, "pods 10 of 8"},
		},
		{
			say:    "Three workers run, so Kubernetes' own controllers get five pods out of ten.",
			run:    "kubectl get replicasets -n checkout",
			repeat: true,
			says:   []string{`\nweb-\S+ +10 +5 +0 `},
		},
		{
			say: "The plugin kubectl crq follows the chain from the deployment to the refusal, and says what would make " +
				"the pods fit. Its exit code is 1, because pods are missing.",
			run:    "kubectl crq why deployment/web -n checkout",
			repeat: true,
			fails:  true,
			says:   []string{`Deployment/web lacks 5 of its 10 pods: crq/payments is short of pods: 5\.`},
		},
	}
}

func administrator() []step {
	return []step{
		{
			say:    "How full is the quota, who uses most, and what was its peak?",
			run:    "kubectl crq top payments",
			repeat: true,
			says:   []string{`PEAK`, `pods +8 +0 +8 +8 +100%`, `pods +checkout +5 +62%`},
		},
		{
			say: "All of it: conditions, figures, each namespace's part, and what happened. The events in the " +
				"namespaces say whose requests were refused.",
			run:    "kubectl crq describe payments",
			repeat: true,
			says: []string{
				`Enforced +True +WebhookConfigured`, `refunds +pods: 2, requests.cpu: 2`,
				"LimitReached", "QuotaExceeded", "refused pods: exceeded quota: payments", "RequestIncomplete",
			},
		},
		{
			say:  "Why isn't the search team limited? No quota selects its label.",
			run:  "kubectl crq explain -n catalogue",
			says: []string{"team=search", "No ClusterResourceQuota covers it"},
		},
	}
}

func limits() []step {
	return []step{
		{
			say:  "Eight pods are used. What if the administrator allowed six? A dry run says it, and changes nothing.",
			run:  hard(`"pods":"6"`, "--dry-run=server"),
			says: []string{`Warning: .*below what is used: pods by 2 \(8/6\)`},
		},
		{
			say: "The administrator does it. Nothing is removed, and a condition says that more is used than allowed.",
			run: hard(`"pods":"6"`) + " && kubectl wait --for=condition=Exceeded crq/payments --timeout=60s",
		},
		{
			say: "Then the administrator gives the team more room after all: for twelve pods and eight CPUs.",
			run: hard(`"pods":"12","requests.cpu":"8"`),
		},
		{
			say: "The controller of the web server's ReplicaSet was refused pods, and pauses longer each time before it tries again. " +
				"The operator wakes it as soon as there is room: four more pods come.",
			run:    "kubectl get replicasets -n checkout",
			repeat: true,
			says:   []string{`\nweb-\S+ +10 +9 +0 `},
		},
		{
			say: "Ten replicas were too many. Five will do.",
			run: "kubectl scale deployment web --replicas=5 -n checkout && " +
				"kubectl wait --for=jsonpath='{.status.total.used.pods}'=8 crq/payments --timeout=60s",
		},
	}
}

func rollout() []step {
	return []step{
		{
			say: "A limit of eight pods is reached again. But the administrator gives rollouts surge: room for a pod that replaces " +
				"another one.",
			run: `kubectl patch crq payments --type=merge --patch '{"spec":{"quota":{"hard":{"pods":"8"}},` +
				`"surge":{"hard":{"pods":"1","requests.cpu":"500m"}}}}'`,
		},
		{
			say: "The web server runs. No kubelet is here that could say so.",
			run: `kubectl get pods -l app=web -n checkout -o name | xargs -I{} kubectl patch {} -n checkout --subresource=status ` +
				`-p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'`,
		},
		{
			say: "It is rolled, and needs a new pod before an old one may go. The new one never becomes ready, because nothing runs it, " +
				"and a condition says whose rollout holds the surge.",
			run: "kubectl rollout restart deployment web -n checkout",
		},
		{
			run: `kubectl get crq payments -o jsonpath='{.status.conditions[?(@.type=="Exceeded")].message}'`, repeat: true,
			says: []string{"pods: used 9, hard 8; .*Deployment checkout/web since "},
		},
		{
			say:   "Nobody else gets a ninth pod.",
			run:   "kubectl create -f worker.yaml -n refunds",
			fails: true,
			says:  []string{"exceeded quota: payments, requested: pods=1", "used: pods=9", "limited: pods=8"},
		},
		{
			say: "The rollout is undone, and the quota is as it was before.",
			run: "kubectl rollout undo deployment web -n checkout",
		},
		{run: `kubectl patch crq payments --type=merge --patch '{"spec":{"quota":{"hard":{"pods":"12"}},"surge":null}}'`},
		{
			run: "kubectl wait --for=condition=Exceeded=false crq/payments --timeout=60s",
		},
	}
}

func owner() []step {
	return []step{
		{
			say: "Ivy owns invoices, and nothing else: the role project-owner, in that namespace.",
			run: "kubectl create rolebinding ivy --clusterrole=project-owner --user=ivy -n invoices",
		},
		{
			say: "She sees a view of the quota that covers her namespace: what all its namespaces use together, what hers " +
				"uses of it, and what is left. The events say what her namespace was refused, and what to do.",
			run:    "kubectl describe lrq payments -n invoices --as=ivy",
			repeat: true,
			says:   []string{`(?s)Available:.*Pods: +4\n`, "LimitReached", `refused services "shop"`, "ask the cluster's administrator"},
			hides:  []string{"checkout", "refunds"},
		},
		{
			say:   "Which quotas is she under? The plugin works with what she may read.",
			run:   "kubectl crq explain -n invoices --as=ivy",
			says:  []string{`pods +1 +8 +0 +12 +4 `},
			hides: []string{"checkout", "refunds"},
		},
		{
			say:   "The ClusterResourceQuota is not hers to read.",
			run:   "kubectl get crq --as=ivy",
			fails: true,
			says:  []string{`User "ivy" cannot list resource "clusterresourcequotas"`},
		},
	}
}

func subdivision() []step {
	return []step{
		{
			say: "Ivy wants invoices to leave something to the others. Project owners may divide what they get, by " +
				"ResourceQuotas of five agreed names.",
			run: "kubectl create quota default --hard=pods=3 -n invoices --as=ivy",
		},
		{
			say:   "Other names are the administrator's, to lock a namespace down by.",
			run:   "kubectl create quota mine --hard=pods=3 -n invoices --as=ivy",
			fails: true,
			says:  []string{"default, terminating, not-terminating, best-effort or not-best-effort"},
		},
		{
			say:    "Her next report is a job of two pods. Does it fit into both quotas? Nothing is created to find out.",
			run:    "kubectl crq fit -f report.yaml -n invoices --as=ivy",
			repeat: true,
			says:   []string{`It fits\.`, `crq/payments .*pods +2 +4 +-`, `quota/default .*pods +2 +2 +-`},
		},
		{
			say:   "Her audit is a job of eight pods. It doesn't fit, and the exit code is 1.",
			run:   "kubectl crq fit -f audit.yaml -n invoices --as=ivy",
			fails: true,
			says: []string{"It doesn't fit: crq/payments is short of pods: 4, requests.cpu: 250m; " +
				`quota/default is short of pods: 6\.`},
		},
		{
			say: "So she creates the report, and it gets its pods.",
			run: "kubectl create -f report.yaml -n invoices --as=ivy",
		},
		{run: "kubectl get quota default -n invoices --as=ivy", repeat: true, says: []string{"pods: 3/3"}},
		{
			say:   "The team has room for another worker, invoices doesn't: Ivy's own quota refuses it.",
			run:   "kubectl create -f worker.yaml -n invoices --as=ivy",
			fails: true,
			says:  exceeds("default", "pods", "3"),
		},
	}
}

func watching() []step {
	return []step{
		{
			say: "The search team is to be limited as well, and nobody knows how much it needs. So its quota only watches, in " +
				"the mode Audit. It begins with one CPU, a guess. A dry run says what it would do.",
			run:  "cat search.yaml && kubectl apply -f search.yaml --dry-run=server",
			says: []string{"Warning: .*mode is Audit, which refuses nothing", "selects the namespace catalogue"},
		},
		{run: "kubectl apply -f search.yaml"},
		{run: "kubectl wait --for=condition=Ready --for=condition=Enforced crq/search --timeout=60s"},
		{
			say: "The team creates two workers, and is not refused.",
			run: "kubectl create -f worker.yaml -n catalogue && kubectl create -f worker.yaml -n catalogue",
		},
		{
			say:    "The column PEAK tells the administrator how much the team needed at once.",
			run:    "kubectl crq top search",
			repeat: true,
			says:   []string{`requests\.cpu +2 +0 +2 +1 +200%`},
		},
		{
			say: "A limit of two CPUs, then. First it warns.",
			run: searchIs("warn.yaml") + " && kubectl wait --for=condition=Enforced crq/search --timeout=60s",
		},
		{
			say:    "One more worker is too many. It is admitted, and whoever creates it is warned.",
			run:    "kubectl create -f worker.yaml -n catalogue",
			repeat: true,
			says:   []string{"Warning: " + exceeds("search", "requests.cpu", "2")[0] + ` \(admitted, because the quota only warns: make`},
		},
		{
			say: "The team agrees on three. The quota refuses from the moment that this edit is answered, without a new count. " +
				"If the operator is ever down, the team would rather exceed its quota than stand still: whenUnavailable is Admit.",
			run: "cat deny.yaml && " + searchIs("deny.yaml"),
		},
		{
			run:   "kubectl create -f worker.yaml -n catalogue",
			fails: true,
			says:  exceeds("search", "requests.cpu", "3"),
		},
		{
			say: "Enforced is True again once the API server, too, knows what to do while the operator is down.",
			run: "kubectl wait --for=condition=Enforced crq/search --timeout=60s",
		},
	}
}

func down() []step {
	return []step{
		{say: "An operator may crash. Here it is stopped.", run: stopOperator},
		{
			say: "Nobody can tell now whether another pod fits the payments team's quota, so it is refused: " +
				"unless its spec says otherwise, a quota doesn't fail open.",
			run:    "kubectl create -f worker.yaml -n refunds",
			repeat: true,
			fails:  true,
			says:   []string{`failed calling webhook "objects\.quota\.sharedquota\.dev"`},
		},
		{
			say: "The search team, whose quota says Admit, gets its worker.",
			run: "kubectl create -f worker.yaml -n catalogue",
		},
		{
			say: "The payments team goes on, too, with all that its quota doesn't limit.",
			run: "kubectl create configmap settings --from-literal=mode=safe -n invoices",
		},
		{
			say: "The operator comes back, and knows what is used: a worker fits, a second load balancer doesn't.",
			run: startOperator,
		},
		{run: "kubectl create -f worker.yaml -n refunds", repeat: true},
		{
			run:   "kubectl create service loadbalancer shop --tcp=443 -n refunds",
			fails: true,
			says:  exceeds("payments", "services.loadbalancers", "1"),
		},
		{
			say:    "It also counts what the search team got meanwhile, and tells the administrator.",
			run:    "kubectl get events -n default --field-selector reason=AdmittedWhileUnavailable",
			repeat: true,
			says:   []string{"requests.cpu: used 4, hard 3"},
		},
	}
}
