/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import "time"

// chapter is a part of the story.
type chapter struct {
	title string
	steps []step
}

// step is one command of the story, and what must come of it.
type step struct {
	// say is what the story tells before the command.
	say string
	// run is the command as a person would type it.
	run string
	// within is for how long the command is repeated until it comes out as
	// told; 0 means that it must do so the first time.
	within time.Duration
	// want is what the command's result must satisfy.
	want []check
}

// soon is for what the operator or a controller does on its own account. It
// takes a moment; the rest is for a machine that is busy.
const soon = 60 * time.Second

// story is what the demo tells. Each chapter builds on those before.
func story() []chapter {
	return []chapter{
		{title: "A team with three namespaces", steps: team()},
		{title: "One quota for all of them", steps: quota()},
		{title: "Until it is used up", steps: usedUp()},
		{title: "What the administrator sees", steps: administrator()},
		{title: "What a project owner sees", steps: owner()},
		{title: "What one namespace frees, another may use", steps: freed()},
		{title: "Controllers are held to it too", steps: controllers()},
		{title: "When the operator is down", steps: down()},
	}
}

func team() []step {
	return []step{
		{
			say: "The payments team has the namespaces checkout, invoices and refunds. " +
				"The label team says so. The search team has one of its own.",
			run:  "kubectl apply -f team.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl get namespaces -l team -L team",
			want: []check{succeeds, says("checkout", "invoices", "refunds", "catalogue")},
		},
		{
			say:  "The team also uses a custom resource, Widget.",
			run:  "kubectl apply -f widget-crd.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl wait --for=condition=Established crd/widgets.example.com",
			want: []check{succeeds},
		},
	}
}

func quota() []step {
	return []step{
		{
			say: "The administrator limits what the team's namespaces hold together: " +
				"CPU, memory, pods, load balancers, deployments and widgets.",
			run:  "cat quota.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl apply -f quota.yaml",
			want: []check{succeeds},
		},
		{
			say: "The operator counts what there is, and has the API server ask it about " +
				"each request that the quota limits. From then on the quota is enforced.",
			run:  "kubectl wait --for=condition=Ready crq/payments --timeout=60s",
			want: []check{succeeds},
		},
		{
			run:  "kubectl wait --for=condition=Enforced crq/payments --timeout=60s",
			want: []check{succeeds},
		},
		{
			say: "As with a ResourceQuota, a pod must now say how much CPU and memory it " +
				"requests. One that doesn't is refused.",
			run:  "kubectl run bare --image=registry.example.com/bare -n checkout",
			want: []check{refused, says("failed quota: payments: must specify requests.cpu for: bare; requests.memory for: bare")},
		},
		{
			say:  "The search team isn't touched: the quota doesn't select its namespace.",
			run:  "kubectl run bare --image=registry.example.com/bare -n catalogue",
			want: []check{succeeds},
		},
	}
}

func usedUp() []step {
	return []step{
		{
			say:  "Each of the three namespaces creates a worker, which requests one CPU.",
			run:  "cat worker.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f worker.yaml -n checkout",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f worker.yaml -n invoices",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f worker.yaml -n refunds",
			want: []check{succeeds},
		},
		{
			say: "That makes three CPUs, and three is the limit. The next worker is refused " +
				"at once, in whichever namespace.",
			run:  "kubectl create -f worker.yaml -n refunds",
			want: []check{refused, exceeds("requests.cpu", "3")},
		},
		{
			say:  "It is the same with anything else that the quota limits. One load balancer for the team:",
			run:  "kubectl create service loadbalancer shop --tcp=443 -n checkout",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create service loadbalancer shop --tcp=443 -n invoices",
			want: []check{refused, exceeds("services.loadbalancers", "1")},
		},
		{
			say:  "And two widgets:",
			run:  "kubectl create -f widget.yaml -n checkout",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f widget.yaml -n invoices",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f widget.yaml -n refunds",
			want: []check{refused, exceeds("count/widgets.example.com", "2")},
		},
	}
}

func administrator() []step {
	return []step{
		{
			say:    "One line for the quota: what is used, of what, in how many namespaces.",
			run:    "kubectl get crq",
			within: soon,
			want: []check{succeeds, says("payments", "team=payments", "count/widgets.example.com: 2/2", "pods: 3/8",
				"requests.cpu: 3/3", "requests.memory: 768Mi/4Gi", "services.loadbalancers: 1/1", "True")},
		},
		{
			say: "The status also has each namespace's part.",
			run: "kubectl get crq payments -o jsonpath='{range .status.namespaces[*]}\n" +
				`{.namespace}: pods={.status.used.pods} cpu={.status.used.requests\.cpu}{end}'`,
			within: soon,
			want:   []check{succeeds, says("checkout: pods=1 cpu=1", "invoices: pods=1 cpu=1", "refunds: pods=1 cpu=1")},
		},
	}
}

func owner() []step {
	return []step{
		{
			say:  "Ivy may look at invoices, and at nothing else: Kubernetes' own role view, in that namespace.",
			run:  "kubectl create rolebinding ivy --clusterrole=view --user=ivy -n invoices",
			want: []check{succeeds},
		},
		{
			say:    "She sees the quota that covers her namespace, under its name.",
			run:    "kubectl get localresourcequota -n invoices --as=ivy",
			within: soon,
			want:   []check{succeeds, says("payments", "pods: 3/8", "requests.cpu: 3/3"), doesNotSay("checkout", "refunds")},
		},
		{
			say: "In detail: the quota's limits and usage in total, what is left, and what " +
				"her own namespace uses. No other namespace is named.",
			run:    "kubectl get localresourcequota payments -n invoices --as=ivy \\\n    -o jsonpath-as-json='{.status}'",
			within: soon,
			want:   []check{succeeds, says(`"available"`, `"used"`, `"pods": "5"`), doesNotSay("checkout", "refunds")},
		},
		{
			say:  "The ClusterResourceQuota is not hers to read.",
			run:  "kubectl get crq --as=ivy",
			want: []check{refused, says(`User "ivy" cannot list resource "clusterresourcequotas"`)},
		},
	}
}

func freed() []step {
	return []step{
		{
			say:  "The worker in checkout goes. So one CPU is free again.",
			run:  "kubectl delete pods -l app=worker -n checkout",
			want: []check{succeeds, says("deleted")},
		},
		{
			say:    "Refunds was refused a second worker before. Now it gets one.",
			run:    "kubectl create -f worker.yaml -n refunds",
			within: soon,
			want:   []check{succeeds},
		},
		{
			run:  "kubectl get pods -l app=worker --all-namespaces",
			want: []check{succeeds, matches(`(?s)^NAMESPACE[^\n]*\ninvoices [^\n]*\nrefunds [^\n]*\nrefunds [^\n]*\n$`)},
		},
	}
}

func controllers() []step {
	return []step{
		{
			say: "The administrator grants the team more CPU. The limit of eight pods stays.",
			run: "kubectl patch crq payments --type=merge \\\n" +
				`    -p '{"spec": {"quota": {"hard": {"requests.cpu": "6"}}}}'`,
			want: []check{succeeds, says("patched")},
		},
		{
			say:  "Somebody deploys a web server with ten replicas.",
			run:  "kubectl create -f web.yaml -n checkout",
			want: []check{succeeds},
		},
		{
			say:    "Three workers run, so Kubernetes' own controllers get five pods out of ten.",
			run:    "kubectl get replicasets -n checkout",
			within: soon,
			want:   []check{succeeds, matches(`\nweb-\S+ +10 +5 +0 `)},
		},
		{
			say: "The deployment says why.",
			run: "kubectl get deployment web -n checkout \\\n" +
				`    -o jsonpath='{.status.conditions[?(@.type=="ReplicaFailure")].message}'`,
			within: soon,
			want:   []check{succeeds, exceeds("pods", "8")},
		},
		{
			say:  "And it was the team's only one.",
			run:  "kubectl create deployment api --image=registry.example.com/api -n refunds",
			want: []check{refused, exceeds("count/deployments.apps", "1")},
		},
		{
			say:    "The whole team, once more:",
			run:    "kubectl get crq",
			within: soon,
			want:   []check{succeeds, says("count/deployments.apps: 1/1", "pods: 8/8", "requests.cpu: 4250m/6")},
		},
	}
}

func down() []step {
	return []step{
		{
			say:  "An operator may crash. Here it is stopped.",
			run:  stopOperator,
			want: []check{succeeds},
		},
		{
			say: "Nobody can tell now whether another pod fits the team's quota, so it is refused: " +
				"a quota that fails open is not a quota.",
			run:    "kubectl create -f worker.yaml -n invoices",
			within: soon,
			want:   []check{unanswered},
		},
		{
			say:  "The search team, whom no quota limits, notices nothing. Nor does kube-system.",
			run:  "kubectl create -f worker.yaml -n catalogue",
			want: []check{succeeds},
		},
		{
			say:  "Nor is the payments team kept from what its quota doesn't limit.",
			run:  "kubectl create configmap settings --from-literal=mode=safe -n invoices",
			want: []check{succeeds},
		},
		{
			say:  "The operator comes back, and knows what is used.",
			run:  startOperator,
			want: []check{succeeds},
		},
		{
			run:    "kubectl create -f worker.yaml -n invoices",
			within: soon,
			want:   []check{refused, exceeds("pods", "8")},
		},
	}
}
