// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// watching plays how a quota is introduced without breaking anybody.
func watching() []step {
	return slices.Concat(audited(), warned(), denied())
}

// searchIs has the search team's quota patched by a file.
func searchIs(file string) string {
	return "kubectl patch crq search --type=merge --patch-file " + file
}

// searchExceeds is what the search team is told of one worker too many.
func searchExceeds(cpu string) string {
	return "exceeded quota: search, requested: requests.cpu=1, used: requests.cpu=" + cpu + ", limited: requests.cpu=" + cpu
}

func audited() []step {
	return []step{
		{
			say: "Nobody knows how much the search team needs. So its quota only watches, in the mode Audit. " +
				"It begins with one CPU, a guess.",
			run:  "cat search.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl apply -f search.yaml",
			want: []check{succeeds},
		},
		{
			run:  "kubectl wait --for=condition=Ready --for=condition=Enforced crq/search --timeout=60s",
			want: []check{succeeds},
		},
		{
			say:  "The team creates two workers, and is not refused.",
			run:  "kubectl create -f worker.yaml -n catalogue",
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f worker.yaml -n catalogue",
			want: []check{succeeds},
		},
		{
			say:    "The administrator reads what would have been refused, and how much is needed.",
			run:    "kubectl crq recommend search",
			within: soon,
			want:   []check{succeeds, matches(`requests\.cpu +2 +1 +2 `)},
		},
	}
}

func warned() []step {
	return []step{
		{
			say:  "A limit of two CPUs, then. First it warns. One more worker would be too many.",
			run:  "cat warn.yaml",
			want: []check{succeeds},
		},
		{
			run:  searchIs("warn.yaml"),
			want: []check{succeeds},
		},
		{
			run:  "kubectl wait --for=condition=Enforced crq/search --timeout=60s",
			want: []check{succeeds},
		},
		{
			run:    "kubectl create -f worker.yaml -n catalogue",
			within: soon,
			want:   []check{succeeds, says("Warning: " + searchExceeds("2") + " (admitted, because the quota only warns)")},
		},
	}
}

func denied() []step {
	return []step{
		{
			say: "The team agrees on three. From now on the quota is enforced, from the moment that the edit is answered. " +
				"That needs no new count.",
			run:  searchIs("deny.yaml"),
			want: []check{succeeds},
		},
		{
			run:  "kubectl create -f worker.yaml -n catalogue",
			want: []check{refused, says(searchExceeds("3"))},
		},
		{
			say:    "Events say who changed what. The last ten changes are also in status.changes.",
			run:    "kubectl get events -n default --field-selector reason=SpecChanged",
			within: soon,
			want:   []check{succeeds, says("hard of requests.cpu from 1 to 2", "hard of requests.cpu from 2 to 3")},
		},
		{
			say:  "If the operator is ever down, the search team would rather exceed its quota than stand still.",
			run:  searchIs("admit.yaml"),
			want: []check{succeeds},
		},
		{
			run:  "kubectl wait --for=condition=Enforced crq/search --timeout=60s",
			want: []check{succeeds},
		},
	}
}
