// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// row takes the amounts that are requested, in the end, with the whole surge, and
// available; the last is empty if it isn't known.
func row(limit *fitting.Limit, name corev1.ResourceName, requested, inTheEnd, withSurge, available string) fitting.Row {
	made := fitting.Row{
		Limit: limit, Resource: name, Requested: resource.MustParse(requested),
		InTheEnd: resource.MustParse(inTheEnd), WholeSurge: resource.MustParse(withSurge),
	}
	if available == "" {
		return made
	}
	made.Counted, made.Available = true, resource.MustParse(available)
	if made.Shortfall = made.Requested.DeepCopy(); made.Requested.Cmp(made.Available) > 0 {
		made.Shortfall.Sub(made.Available)
	} else {
		made.Shortfall = resource.Quantity{}
	}
	return made
}

func item(object client.Object, count int64, when fitting.When) fitting.Item {
	kind := "Job"
	if _, ok := object.(*corev1.Pod); ok {
		kind = "Pod"
	}
	return fitting.Item{Kind: kind, Object: object, Count: count, When: when}
}

func TestFitText(t *testing.T) {
	team := &fitting.Limit{Source: fitting.Shared, Name: "team", Namespaces: []string{"shop", "shop-test"}}
	own := &fitting.Limit{Source: fitting.Native, Name: "own", Namespaces: []string{"shop"}}
	other := &fitting.Limit{Source: fitting.Native, Name: "own", Namespaces: []string{"shop-test"}}
	pod := &corev1.Pod{}
	demands := []fitting.Demand{
		{Kind: "Deployment", Namespace: "shop", Name: "web", Items: []fitting.Item{{Kind: "Deployment", Object: pod, Old: pod, Count: 1}},
			Pods: &fitting.Pods{New: []fitting.Item{item(pod, 1, "")}, Old: []fitting.Group{{Count: 2}}, Wanted: 5, Present: 1}},
		{Kind: "CronJob", Namespace: "shop", Name: "nightly", Items: []fitting.Item{item(pod, 3, fitting.AtEachRun)}},
	}
	for name, test := range map[string]struct {
		verdict  fitting.Verdict
		unviewed []string
		notes    []string
		wide     bool
		want     string
	}{
		"it fits": {
			verdict: fitting.Verdict{Rows: []fitting.Row{row(team, "pods", "5", "5", "5", "7"), row(own, "requests.cpu", "500m", "500m", "500m", "1")}},
			want: `It fits.

QUOTA       NAMESPACE        RESOURCE       REQUESTED   AVAILABLE   SHORTFALL
crq/team    shop,shop-test   pods           5           7           -
quota/own   shop             requests.cpu   500m        1           -
`,
		},
		"a quota may be unknown": {
			unviewed: []string{"shop"},
			verdict:  fitting.Verdict{Rows: []fitting.Row{row(own, "requests.cpu", "500m", "500m", "500m", "1")}},
			want: `It fits into the quotas that are known.

QUOTA       NAMESPACE   RESOURCE       REQUESTED   AVAILABLE   SHORTFALL
quota/own   shop        requests.cpu   500m        1           -
`,
		},
		"nothing limits it": {want: "It fits: no quota limits what these manifests add.\n"},
		"it doesn't fit": {
			verdict: fitting.Verdict{
				Rows: []fitting.Row{
					row(team, "pods", "5", "5", "5", "3"), row(team, "requests.cpu", "2", "2", "2", "-500m"),
					row(own, "services", "1", "1", "1", "0"), row(other, "services", "2", "2", "2", "0"),
				},
				Refusals: []fitting.Refusal{{Kind: "Deployment", Namespace: "shop", Name: "web", Refused: "Pod", Message: "failed quota: team: must specify limits.cpu for: main"}},
			},
			notes: []string{"One.", "Two."},
			want: `It doesn't fit: crq/team is short of pods: 2, requests.cpu: 2500m; quota/own is short of services: 1; quota/own is short of services: 2; an object is refused.

QUOTA       NAMESPACE        RESOURCE       REQUESTED   AVAILABLE   SHORTFALL
crq/team    shop,shop-test   pods           5           3           2
crq/team    shop,shop-test   requests.cpu   2           -500m       2500m
quota/own   shop             services       1           0           1
quota/own   shop-test        services       2           0           2

Refused, whatever is available:
  Deployment shop/web: its Pod: failed quota: team: must specify limits.cpu for: main

Note: One.
Note: Two.
`,
		},
		"it can't be told": {
			verdict: fitting.Verdict{Rows: []fitting.Row{row(team, "pods", "5", "5", "5", "")}},
			want: `It can't be told whether it fits.

QUOTA      NAMESPACE        RESOURCE   REQUESTED   AVAILABLE   SHORTFALL
crq/team   shop,shop-test   pods       5           ?           ?
`,
		},
		"what was counted": {
			wide: true,
			want: `It fits: no quota limits what these manifests add.

MANIFEST               MAKES   COUNT   WHEN
Deployment shop/web    Pod     4       now, for 2 that go
CronJob shop/nightly   Pod     3       at each run
`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := question{namespaces: []string{"shop"}, unviewed: test.unviewed, demands: demands, notes: test.notes}
			got := render.FitText(resultOf(asked, test.verdict), test.wide, render.Style{})
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestFitAnswers(t *testing.T) {
	pods := func(count int64) []fitting.Demand {
		pod := item(builders.Pod("shop", "web").Obj(), 1, "")
		pod.Resource = corev1.SchemeGroupVersion.WithResource("pods")
		return []fitting.Demand{{Namespace: "shop", Pods: &fitting.Pods{New: []fitting.Item{pod}, Wanted: count}}}
	}
	limits := func(left corev1.ResourceList) []fitting.Limit {
		hard := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("9")}
		return []fitting.Limit{{
			Source: fitting.Shared, Name: "team", Namespaces: []string{"shop"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}, Left: left,
		}}
	}
	five := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}
	for name, test := range map[string]struct {
		asked question
		want  string
	}{
		"it fits":            {asked: question{demands: pods(5), limits: limits(five)}},
		"it doesn't":         {asked: question{demands: pods(6), limits: limits(five)}, want: errNo.Error()},
		"it isn't counted":   {asked: question{demands: pods(1), limits: limits(nil)}, want: "can't tell: not counted yet: pods of crq/team; ask again in a moment"},
		"nothing is missing": {asked: question{demands: pods(0), limits: limits(nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			test.asked.rules = fitting.NewRules(fitting.NewTypes(), fitting.Surroundings{})
			err := (&fit{env: &environment{streams: streams, clock: clock.RealClock{}}, out: newOutput(&cobra.Command{})}).answer(test.asked)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if text != test.want || out.Len() == 0 {
				t.Errorf("got error %q after %q", text, out)
			}
		})
	}
}

func TestRolloutNotes(t *testing.T) {
	team := &fitting.Limit{Source: fitting.Shared, Name: "team"}
	audited := &fitting.Limit{Source: fitting.Shared, Name: "audited", Admits: "its mode is Audit"}
	surged := &fitting.Limit{Source: fitting.Shared, Name: "surged", Surge: amounts("pods", "5", "requests.cpu", "1")}
	because := func(made fitting.Row, why fitting.Surge) fitting.Row {
		made.Surge = why
		return made
	}
	fits := func(made fitting.Row) fitting.Row {
		made.Shortfall = resource.Quantity{}
		return made
	}
	rollout := []fitting.Demand{{
		Kind: "Deployment", Namespace: "shop", Name: "web", Pods: &fitting.Pods{Old: []fitting.Group{{Count: 1}}, Surge: 1},
	}}
	for name, test := range map[string]struct {
		rows    []fitting.Row
		demands []fitting.Demand
		want    []string
	}{
		"it gets stuck": {
			rows: []fitting.Row{row(team, "pods", "1", "0", "1", "0")}, demands: rollout,
			want: []string{"In the end it would fit: what is short is room for Deployment shop/web to replace pods, which starts new ones before " +
				"old ones go. Without maxSurge, or with maxUnavailable of 1 or more, it gets by without. Short of: pods of crq/team."},
		},
		"it takes smaller steps": {
			rows: []fitting.Row{row(team, "pods", "0", "0", "2", "1")}, demands: rollout,
			want: []string{"There isn't room for the whole surge of Deployment shop/web: pods are replaced in smaller steps, and until then some are " +
				"refused and tried again. Short of: pods of crq/team."},
		},
		"there is room":                                 {rows: []fitting.Row{row(team, "pods", "0", "0", "2", "2")}, demands: rollout},
		"it doesn't fit in the end":                     {rows: []fitting.Row{row(team, "pods", "3", "2", "4", "1")}, demands: rollout},
		"there is nothing to roll":                      {rows: []fitting.Row{row(team, "pods", "3", "0", "4", "1")}},
		"a quota that refuses nothing stops no rollout": {rows: []fitting.Row{row(audited, "pods", "1", "0", "1", "0")}, demands: rollout},
		"a quota that refuses nothing hides no other": {
			rows: []fitting.Row{row(audited, "pods", "3", "2", "4", "1"), row(team, "pods", "0", "0", "2", "1")}, demands: rollout,
			want: []string{"There isn't room for the whole surge of Deployment shop/web: pods are replaced in smaller steps, and until then some are " +
				"refused and tried again. Short of: pods of crq/team."},
		},
		"it takes surge": {
			rows: []fitting.Row{fits(row(surged, "pods", "1", "0", "2", "-1"))}, demands: rollout,
			want: []string{"There is room for Deployment shop/web because its pods replace others, and may take surge of the quota: " +
				"pods of crq/surged, 2 of the 4 that is left."},
		},
		"it takes surge, and less than it could": {
			rows: []fitting.Row{fits(row(surged, "pods", "1", "0", "7", "0"))}, demands: rollout,
			want: []string{"There isn't room for the whole surge of Deployment shop/web: pods are replaced in smaller steps, and until then some are " +
				"refused and tried again. Short of: pods of crq/surged."},
		},
		"others hold the surge, and it is too small besides": {
			rows: []fitting.Row{
				because(row(surged, "pods", "1", "0", "1", "-5"), fitting.SurgeTaken), because(row(surged, "requests.cpu", "2", "0", "2", "0"), fitting.SurgeTooSmall),
			}, demands: rollout,
			want: []string{
				"Surge of the quota, which is room for pods that replace others, would do for Deployment shop/web, and it is taken: " +
					"pods of crq/surged, short of 6. Wait until other rollouts have ended, or ask your cluster administrator for more spec.surge.",
				"Surge of the quota, which is room for pods that replace others, is less than Deployment shop/web needs: requests.cpu of crq/surged, " +
					"short of 2. Ask your cluster administrator for more spec.surge.",
			},
		},
		"larger pods get none": {
			rows: []fitting.Row{because(row(surged, "pods", "2", "2", "2", "0"), fitting.SurgeGrows)}, demands: rollout,
			want: []string{"Surge of the quota is room for pods that replace others, and those of Deployment shop/web get none, because they ask for more " +
				"than before, or have other claims: pods of crq/surged, short of 2. Free some room, or ask for no more than before."},
		},
		"it hasn't been counted":     {rows: []fitting.Row{row(team, "pods", "1", "0", "1", "")}, demands: rollout},
		"it would be the same later": {rows: []fitting.Row{row(team, "pods", "2", "2", "2", "1")}, demands: rollout},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, rolloutNotes(fitting.Verdict{Rows: test.rows}, test.demands)); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestUnreadNotes(t *testing.T) {
	none := reading.Unread{PriorityClasses: true, RuntimeClasses: true, StorageClasses: true}
	demand := func(objects ...client.Object) []fitting.Demand {
		made := fitting.Demand{Pods: &fitting.Pods{}}
		for _, object := range objects {
			made.Pods.New = append(made.Pods.New, fitting.Item{Object: object})
		}
		return []fitting.Demand{made}
	}
	byClass := fitting.Limit{Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass}}}
	bySelector := fitting.Limit{Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{
		MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{ScopeName: corev1.ResourceQuotaScopePriorityClass}},
	}}}
	storage := fitting.Limit{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"gold.storageclass.storage.k8s.io/requests.storage": {}}}}
	plain, named := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: "high", RuntimeClassName: ptr.To("heavy")}}
	claim, classed := &corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("")}}
	for name, test := range map[string]struct {
		unread  reading.Unread
		limits  []fitting.Limit
		demands []fitting.Demand
		want    []string
	}{
		"all could be read":                     {limits: []fitting.Limit{byClass, storage}, demands: demand(plain, claim)},
		"limit ranges always matter":            {unread: reading.Unread{LimitRanges: true}, want: []string{noLimitRanges}},
		"a quota goes by the priority class":    {unread: none, limits: []fitting.Limit{byClass}, demands: demand(plain), want: []string{noPriorities}},
		"a quota selects priority classes":      {unread: none, limits: []fitting.Limit{bySelector}, demands: demand(plain), want: []string{noPriorities}},
		"the pod names both":                    {unread: none, limits: []fitting.Limit{byClass}, demands: demand(named), want: []string{noRuntimes}},
		"no quota goes by classes":              {unread: none, limits: []fitting.Limit{{}}, demands: demand(plain, claim)},
		"a quota goes by the storage class":     {unread: none, limits: []fitting.Limit{storage}, demands: demand(claim), want: []string{noStorage}},
		"the claim says that it wants no class": {unread: none, limits: []fitting.Limit{storage}, demands: demand(classed)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, unreadNotes(test.unread, question{limits: test.limits, demands: test.demands})); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
