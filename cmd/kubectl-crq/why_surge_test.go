// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// surging is the view of a quota of 4 pods, of whose surge this many are taken, by these workloads of the namespace.
func surging(surge, taken string, workloads ...quotav1.SurgingWorkload) quotav1.LocalResourceQuota {
	used := amounts("pods", "4")["pods"]
	used.Add(amounts("pods", taken)["pods"])
	made := view("team", amounts("pods", "4"), amounts("pods", used.String()), nil)
	made.Status.Surge = &quotav1.SurgeStatus{Hard: amounts("pods", surge), Used: amounts("pods", taken), Workloads: workloads}
	return made
}

func TestWhyOfSurge(t *testing.T) {
	const refused = "Error creating: exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=4"
	proved := refused + outcomes.SurgeTaken.Text("pods=1")
	broken := quotav1.SurgingWorkload{Kind: "Deployment", Namespace: "shop", Name: "broken", Since: metav1.NewTime(noon.Add(-time.Hour))}
	const raise = "Ask an administrator to raise spec.surge.hard of ClusterResourceQuota team to pods: 2."
	const undo = "Wait until Deployment/broken, which holds surge, has replaced its pods, or undo that: kubectl rollout undo deployment/broken -n shop."
	const others = "Wait until rollouts in other namespaces have ended, or ask those who may read the quota for their names: kubectl crq describe team."
	const larger = "Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1. Its pods ask for more than those that they " +
		"replace, or have other claims, so that they get no surge."
	for name, test := range map[string]struct {
		view     quotav1.LocalResourceQuota
		message  string
		rolls    bool
		cause    render.Cause
		summary  string
		remedies []string
	}{
		"a workload of the namespace holds it": {
			surging("1", "1", broken), proved, true, render.QuotaShort,
			"Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1. Its pods replace others, and of the surge for " +
				"that, pods: 1, this is taken: pods: 1.", []string{undo, raise},
		},
		"workloads of other namespaces hold it": {
			surging("1", "1"), proved, true, render.QuotaShort,
			"Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1. Its pods replace others, and of the surge for " +
				"that, pods: 1, this is taken: pods: 1.", []string{others, raise},
		},
		"there is none, though it is configured": {
			surging("0", "0"), refused, true, render.QuotaShort,
			"Deployment/web lacks 4 pods of the new template: crq/team is short of pods: 1. Its pods replace others, and the surge for " +
				"that, none, is less than they need.", []string{"Ask an administrator to raise spec.surge.hard of ClusterResourceQuota team to pods: 1."},
		},
		"the pods are larger than those that they replace": {surging("1", "0"), refused + outcomes.SurgeGrows.Text(), true, render.QuotaShort, larger, nil},
		"it has been given back": {
			surging("1", "0"), proved, true, render.FitsNow,
			"Deployment/web lacks 4 pods of the new template, and there is room now: its controller tries again by itself, at the latest in about 55s.", nil,
		},
		"others hold it, and these pods may take none": {
			surging("1", "1", broken), refused, false, render.QuotaShort,
			"Deployment/web lacks 3 of its 4 pods: crq/team is short of pods: 4. Surge of crq/team is taken (pods: 1), and nothing else " +
				"that takes any is admitted until it has been given back.", []string{undo},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scene, older := newScene(t), []*appsv1.ReplicaSet(nil)
			if test.rolls {
				cpu := "250m"
				if test.summary == larger {
					cpu = "100m"
				}
				older = append(older, scene.olderPods(cpu, &appsv1.RollingUpdateDeployment{
					MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
				}))
			}
			scene.limited(test.view)
			scene.refused(test.message, 5)
			got, err := scene.diagnosed(t, older...)
			if err != nil {
				t.Fatal(err)
			}
			if got.Cause != test.cause || got.Summary != test.summary {
				t.Errorf("got %s: %s\nwant %s: %s", got.Cause, got.Summary, test.cause, test.summary)
			}
			if diff := cmp.Diff(test.remedies, got.Remedies[:min(len(test.remedies), len(got.Remedies))]); test.remedies != nil && diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// Workloads of other namespaces are for those who may read the quota.
func TestWhySaysWhoHoldsSurge(t *testing.T) {
	scene := newScene(t)
	older := scene.olderPods("250m", &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))})
	scene.limited(surging("1", "1"))
	found, err := scene.diagnosed(t, older)
	if err != nil {
		t.Fatal(err)
	}
	if text := render.WhyText(found, render.Style{}, noon); strings.Contains(text, "SURGE HELD BY") || !strings.Contains(text, "SURGE") {
		t.Errorf("got %s", text)
	}
	quota := &quotav1.ClusterResourceQuota{}
	quota.Status.Surge = &quotav1.SurgeStatus{Workloads: []quotav1.SurgingWorkload{
		{Kind: "DaemonSet", Namespace: "tools", Name: "agent", Since: metav1.NewTime(noon.Add(-time.Hour))},
	}}
	found.Quotas[0].HeldBy(quota, mostHolders)
	const want = `
  SURGE   TAKEN   OF   LEFT
  pods    1       1    0

  SURGE HELD BY     IN NAMESPACE   FOR
  DaemonSet/agent   tools          60m
`
	if text := render.WhyText(found, render.Style{}, noon); !strings.Contains(text, want) {
		t.Errorf("got %s", text)
	}
}
