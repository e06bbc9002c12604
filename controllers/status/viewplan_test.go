// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

func pods(quantity string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(quantity)}
}

func status(total, available, own string) quotav1.LocalResourceQuotaStatus {
	return quotav1.LocalResourceQuotaStatus{
		Levels: report.Levels(nil, pods(total), pods("10")),
		Total:  corev1.ResourceQuotaStatus{Hard: pods("10"), Used: pods(total)}, Available: pods(available), Used: pods(own),
	}
}

func TestPlanWritesWhatMisleadsMostFirst(t *testing.T) {
	object := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "u1"}}
	view := func(namespace, version string, current quotav1.LocalResourceQuotaStatus) *quotav1.LocalResourceQuota {
		made := newView(object, namespace, current, nil)
		made.ResourceVersion = version
		return made
	}
	foreign := view("foreign", "1", status("5", "5", "1"))
	foreign.OwnerReferences[0].UID = "u0"
	present := map[string]*quotav1.LocalResourceQuota{
		"same":     view("same", "1", status("10", "0", "1")),
		"others":   view("others", "9", status("9", "0", "1")),
		"longest":  view("longest", "7", status("9", "0", "1")),
		"own":      view("own", "20", status("9", "0", "0")),
		"ran-out":  view("ran-out", "30", status("9", "1", "1")),
		"foreign":  foreign,
		"unwanted": view("unwanted", "1", status("9", "1", "1")),
	}
	wanted := map[string]quotav1.LocalResourceQuotaStatus{}
	for _, namespace := range []string{"same", "others", "longest", "own", "ran-out", "foreign"} {
		wanted[namespace] = status("10", "0", "1")
	}

	planned := plan(object, wanted, surge{}, present, moment)

	var order []string
	for _, view := range planned.due(false) {
		order = append(order, view.Namespace)
	}
	if diff := cmp.Diff([]string{"foreign", "ran-out", "own", "longest", "others"}, order); diff != "" {
		t.Errorf("order of writes (-want,+got):\n%s", diff)
	}
	if len(planned.unwanted) != 1 || planned.unwanted[0].Namespace != "unwanted" {
		t.Errorf("to be deleted: %v", planned.unwanted)
	}
	for _, view := range planned.due(false) {
		if view.ResourceVersion == "" {
			t.Errorf("the view in %s would be written without a resourceVersion", view.Namespace)
		}
	}
}

// Of each urgency, how many views are written.
type numbers struct{ missing, turned, moved, drifted int }

func (n numbers) list() []int { return []int{n.missing, n.turned, n.moved, n.drifted} }

func TestEachRoundWritesSoMany(t *testing.T) {
	for name, test := range map[string]struct {
		outdated, still, changing numbers
	}{
		"a few are all written when the totals stand still": {
			outdated: numbers{1, 2, 30, 40}, still: numbers{1, 2, 30, 40}, changing: numbers{1, 2, 4, 1},
		},
		"many take several rounds, the most urgent first": {
			outdated: numbers{150, 40, 30, 300}, still: numbers{150, 40, 10, 0}, changing: numbers{150, 25, 4, 1},
		},
		"new views are not kept back by others that come and go": {
			outdated: numbers{500, 40, 30, 300}, still: numbers{200, 0, 0, 0}, changing: numbers{200, 0, 0, 0},
		},
		"what only others use may take all that the busy leave": {
			outdated: numbers{0, 0, 1, 300}, still: numbers{0, 0, 1, 199}, changing: numbers{0, 0, 1, 4},
		},
		"and the busy what nobody else needs": {
			outdated: numbers{0, 0, 300, 0}, still: numbers{0, 0, 200, 0}, changing: numbers{0, 0, 5, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var planned plannedViews
			for urgency, number := range test.outdated.list() {
				planned.outdated[urgency] = viewsNamed(fmt.Sprint(urgency), number)
			}
			for changing, want := range map[bool]numbers{false: test.still, true: test.changing} {
				var order, wanted []string
				for _, view := range planned.due(changing) {
					order = append(order, view.Name)
				}
				for urgency, number := range want.list() {
					wanted = append(wanted, slices.Repeat([]string{fmt.Sprint(urgency)}, number)...)
				}
				if diff := cmp.Diff(wanted, order); diff != "" {
					t.Errorf("while changing: %t; urgencies of what is written (-want,+got):\n%s", changing, diff)
				}
			}
		})
	}
}

func viewsNamed(name string, number int) []*quotav1.LocalResourceQuota {
	var views []*quotav1.LocalResourceQuota
	for range number {
		views = append(views, &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return views
}

func TestPlanTellsEachViewWhatItHasReached(t *testing.T) {
	object := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "u1"}}
	foreign := newView(object, "foreign", status("10", "0", "1"), nil)
	foreign.OwnerReferences[0].UID = "u0"
	present := map[string]*quotav1.LocalResourceQuota{
		"behind":  newView(object, "behind", status("7", "3", "1"), nil),
		"near":    newView(object, "near", status("8", "2", "1"), nil),
		"full":    newView(object, "full", status("10", "0", "1"), nil),
		"foreign": foreign,
	}
	for name, test := range map[string]struct {
		used string
		want map[string]quotav1.Level
	}{
		"use that is low":       {used: "7"},
		"use that comes near":   {used: "9", want: map[string]quotav1.Level{"behind": "NearLimit", "foreign": "NearLimit", "new": "NearLimit"}},
		"use of all":            {used: "10", want: map[string]quotav1.Level{"behind": "LimitReached", "near": "LimitReached", "foreign": "LimitReached", "new": "LimitReached"}},
		"use of more than that": {used: "12", want: map[string]quotav1.Level{"behind": "UsedAboveHard", "near": "UsedAboveHard", "full": "UsedAboveHard", "foreign": "UsedAboveHard", "new": "UsedAboveHard"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[string]quotav1.LocalResourceQuotaStatus{}
			for _, namespace := range []string{"behind", "near", "full", "foreign", "new"} {
				wanted[namespace] = quotav1.LocalResourceQuotaStatus{Total: corev1.ResourceQuotaStatus{Hard: pods("10"), Used: pods(test.used)}}
			}
			var got map[string]quotav1.Level
			for view, risen := range plan(object, wanted, surge{}, present, moment).risen {
				if got == nil {
					got = map[string]quotav1.Level{}
				}
				got[view.Namespace] = view.Status.Levels[risen[0]]
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("levels to be told (-want,+got):\n%s", diff)
			}
		})
	}
}
