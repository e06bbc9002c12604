// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
		{title: "What one namespace frees, another may use", steps: freed()},
		{title: "Controllers are held to it too", steps: controllers()},
		{title: "What the administrator sees", steps: administrator()},
		{title: "A limit is lowered, and raised", steps: limits()},
		{title: "What a project owner sees", steps: owner()},
		{title: "What a project owner decides", steps: subdivision()},
		{title: "A quota that watches first", steps: watching()},
		{title: "When the operator is down", steps: down()},
	}
}

func team() []step {
	return []step{
		{
			say: "The payments team has the namespaces checkout, invoices and refunds. " +
				"The label team says so. The search team has one of its own. Both use a custom resource, Widget.",
			run:  "kubectl apply -f team.yaml -f widget-crd.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl get namespaces -l team -L team",
			want: []check{succeeds, says("checkout", "invoices", "refunds", "catalogue")},
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
			run:  "kubectl wait --for=condition=Ready --for=condition=Enforced crq/payments --timeout=60s",
			want: []check{succeeds},
		},
		{
			say: "As with a ResourceQuota, a pod must now say how much CPU and memory it " +
				"requests. One that doesn't is refused.",
			run:  "kubectl run bare --image=registry.example.com/bare -n checkout",
			want: []check{refused, says("failed quota: payments: must specify requests.cpu for: bare; requests.memory for: bare")},
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
			say:  "And one widget:",
			run:  "kubectl create -f widget.yaml -n checkout",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f widget.yaml -n invoices",
			want: []check{refused, exceeds("count/widgets.example.com", "1")},
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
			say:  "Somebody deploys a web server with ten replicas. kubectl prints at once what the quota says to that.",
			run:  "kubectl create -f web.yaml -n checkout",
			want: []check{succeeds, says("Warning: quota payments: 10 pods can never fit (5 fit now)", "pods 10 of 8")},
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
			say: "The plugin follows the chain from the deployment to the sentence that unblocks it. Its exit code is 1, " +
				"because pods are missing.",
			run:    "kubectl crq why deployment/web -n checkout",
			within: soon,
			want:   []check{answersNo, says("Deployment/web lacks 5 of its 10 pods: crq/payments is short of pods: 5.")},
		},
		{
			say:  "And it was the team's only one.",
			run:  "kubectl create deployment api --image=registry.example.com/api -n refunds",
			want: []check{refused, exceeds("count/deployments.apps", "1")},
		},
	}
}

func down() []step {
	return []step{
		{
			say:  "If no operator answered now, what would be refused?",
			run:  "kubectl crq outage",
			want: []check{succeeds, says("checkout", "invoices", "refunds")},
		},
		{
			say:  "An operator may crash. Here it is stopped.",
			run:  stopOperator,
			want: []check{succeeds},
		},
		{
			say: "Nobody can tell now whether another pod fits the payments team's quota, so it is refused: " +
				"unless its spec says otherwise, a quota doesn't fail open.",
			run:    "kubectl create -f worker.yaml -n refunds",
			within: soon,
			want:   []check{unanswered},
		},
		{
			say:  "The search team, whose quota says Admit, gets its worker. Nor does kube-system notice anything.",
			run:  "kubectl create -f worker.yaml -n catalogue",
			want: []check{succeeds},
		},
		{
			say:  "Nor is the payments team kept from what its quota doesn't limit.",
			run:  "kubectl create configmap settings --from-literal=mode=safe -n invoices",
			want: []check{succeeds},
		},
		{
			say:  "The operator comes back, and knows what is used: a worker fits, a second deployment doesn't.",
			run:  startOperator,
			want: []check{succeeds},
		},
		{
			run:    "kubectl create -f worker.yaml -n refunds",
			within: soon,
			want:   []check{succeeds},
		},
		{
			run:  "kubectl create deployment api --image=registry.example.com/api -n refunds",
			want: []check{refused, exceeds("count/deployments.apps", "1")},
		},
		{
			say:    "It also counts what the search team got meanwhile, and tells the administrator.",
			run:    "kubectl get events -n default --field-selector reason=AdmittedWhileUnavailable",
			within: soon,
			want:   []check{succeeds, says("requests.cpu: used 4, hard 3")},
		},
	}
}
