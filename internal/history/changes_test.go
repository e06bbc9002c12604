// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func quotaOf(generation int64, change func(*quotav1.ClusterResourceQuotaSpec)) *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: team, UID: uid, Generation: generation}}
	quota.Spec.Selector.AnnotationSelector = map[string]string{"team": "shop"}
	quota.Spec.Quota.Hard = cpus("16")
	if change != nil {
		change(&quota.Spec)
	}
	return quota
}

func limitedTo(amount string) func(*quotav1.ClusterResourceQuotaSpec) {
	return func(spec *quotav1.ClusterResourceQuotaSpec) { spec.Quota.Hard = cpus(amount) }
}

// lines puts changes into lines.
func lines(changes []quotav1.SpecChange) []string {
	var all []string
	for _, change := range changes {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%d %s: %s %s %s>%s",
			change.Generation, change.By, change.Field, change.Resource, change.From, change.To)))
	}
	return all
}

func TestWhatAnEditChanges(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(*quotav1.ClusterResourceQuotaSpec)
		want          []string
	}{
		"a limit":               {after: limitedTo("20"), want: []string{"2 olga: hard requests.cpu 16>20"}},
		"the same limit":        {after: limitedTo("16000m")},
		"a limit is removed":    {after: func(s *quotav1.ClusterResourceQuotaSpec) { s.Quota.Hard = nil }, want: []string{"2 olga: hard requests.cpu 16>"}},
		"what isn't remembered": {after: func(s *quotav1.ClusterResourceQuotaSpec) { s.Preflight = quotav1.PreflightOff }},
		"the mode": {
			after: func(s *quotav1.ClusterResourceQuotaSpec) { s.Enforcement.Mode = quotav1.EnforcementWarn },
			want:  []string{"2 olga: mode  Deny>Warn"},
		},
		"the mode of one": {
			after: func(s *quotav1.ClusterResourceQuotaSpec) {
				s.Enforcement.Overrides = []quotav1.EnforcementOverride{{Resource: cpu, Mode: quotav1.EnforcementAudit}}
			},
			want: []string{"2 olga: mode requests.cpu Deny>Audit"},
		},
		"a trial": {
			after: func(s *quotav1.ClusterResourceQuotaSpec) { s.Trial.Hard = cpus("8") },
			want:  []string{"2 olga: trial requests.cpu >8"},
		},
		"the selector": {
			after: func(s *quotav1.ClusterResourceQuotaSpec) {
				s.Selector.AnnotationSelector = map[string]string{"team": "blog"}
			},
			want: []string{"2 olga: selector  [team=shop]>[team=blog]"},
		},
		"whenUnavailable": {
			after: func(s *quotav1.ClusterResourceQuotaSpec) { s.Enforcement.WhenUnavailable = quotav1.UnavailableAdmit },
			want:  []string{"2 olga: whenUnavailable  >Admit"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			edit, _ := NewEdit(morning(), "olga", quotaOf(1, test.before), quotaOf(2, test.after))
			if diff := cmp.Diff(test.want, lines(edit.changes())); diff != "" {
				t.Errorf("changes (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestLongUsersAndValuesAreShortened(t *testing.T) {
	edit, _ := NewEdit(morning(), strings.Repeat("ü", 1000), quotaOf(1, nil), quotaOf(2, func(s *quotav1.ClusterResourceQuotaSpec) {
		s.Selector.AnnotationSelector = map[string]string{"a": strings.Repeat("x", 1000)}
		for i := range 100 {
			s.Quota.Hard["count/"+cpu[:1]+"."+"x"+"y"+"z"+cpu[:1]+"q"+"a"+cpu[:2]+"b"] = resource.MustParse(fmt.Sprint(i))
		}
	}))
	if len(edit.By) > longestUser || len(edit.Changes) > MostChanges {
		t.Errorf("%d bytes of a user, %d changes", len(edit.By), len(edit.Changes))
	}
	for _, change := range edit.Changes {
		if len(change.From) > longestValue || len(change.To) > longestValue {
			t.Errorf("%d and %d bytes", len(change.From), len(change.To))
		}
	}
}

func TestOnlyWhatWasStoredIsShown(t *testing.T) {
	type asked struct {
		by            string
		before, after *quotav1.ClusterResourceQuota
	}
	sixteen, twenty := quotaOf(1, nil), quotaOf(2, limitedTo("20"))
	for name, test := range map[string]struct {
		asked []asked
		// seen are the versions that the leader sees, in order.
		seen []*quotav1.ClusterResourceQuota
		want []string
	}{
		"an edit": {
			asked: []asked{{"olga", sixteen, twenty}}, seen: []*quotav1.ClusterResourceQuota{sixteen, twenty},
			want: []string{"2 olga: hard requests.cpu 16>20"},
		},
		"another webhook refused it": {
			asked: []asked{{"olga", sixteen, twenty}}, seen: []*quotav1.ClusterResourceQuota{sixteen},
		},
		"another webhook refused it, and something else was stored": {
			asked: []asked{{"olga", sixteen, twenty}, {"ivan", sixteen, quotaOf(2, limitedTo("30"))}},
			seen:  []*quotav1.ClusterResourceQuota{quotaOf(2, limitedTo("30"))},
			want:  []string{"2 ivan: hard requests.cpu 16>30"},
		},
		"the leader misses a version": {
			asked: []asked{{"olga", sixteen, twenty}, {"ivan", twenty, quotaOf(3, limitedTo("30"))}},
			seen:  []*quotav1.ClusterResourceQuota{sixteen, quotaOf(3, limitedTo("30"))},
			want:  []string{"3 ivan: hard requests.cpu 20>30", "2 olga: hard requests.cpu 16>20"},
		},
		"an edit that nobody told stands between": {
			asked: []asked{{"olga", sixteen, twenty}, {"ivan", quotaOf(3, limitedTo("25")), quotaOf(4, limitedTo("30"))}},
			seen:  []*quotav1.ClusterResourceQuota{twenty, quotaOf(4, limitedTo("30"))},
			want:  []string{"4 ivan: hard requests.cpu 25>30", "2 olga: hard requests.cpu 16>20"},
		},
		"the API server asked twice": {
			asked: []asked{{"olga", sixteen, twenty}, {"olga", sixteen, twenty}}, seen: []*quotav1.ClusterResourceQuota{twenty},
			want: []string{"2 olga: hard requests.cpu 16>20"},
		},
		"it is changed back": {
			asked: []asked{{"olga", sixteen, twenty}, {"olga", twenty, quotaOf(3, nil)}}, seen: []*quotav1.ClusterResourceQuota{quotaOf(3, nil)},
			want: []string{"3 olga: hard requests.cpu 20>16", "2 olga: hard requests.cpu 16>20"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			replica, leader := New("replica"), New("leader")
			for i, asked := range test.asked {
				edit, changed := NewEdit(morning().Add(time.Duration(i)*time.Millisecond), asked.by, asked.before, asked.after)
				if !changed {
					t.Fatal("nothing changes")
				}
				if i%2 == 0 {
					replica.Edited(edit)
				} else {
					leader.Edited(edit)
				}
			}
			encoded, _, err := replica.Publish()
			if err != nil {
				t.Fatal(err)
			}
			if err := leader.Receive("replica", encoded); err != nil {
				t.Fatal(err)
			}
			var shown []quotav1.SpecChange
			for _, quota := range test.seen {
				shown = AddChanges(shown, leader.Changes(quota))
			}
			if diff := cmp.Diff(test.want, lines(shown)); diff != "" {
				t.Errorf("changes (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestTheLastTenChangesAreShown(t *testing.T) {
	r := New("a")
	var shown []quotav1.SpecChange
	for generation := int64(1); generation < 40; generation++ {
		before, after := quotaOf(generation, limitedTo(fmt.Sprint(generation))), quotaOf(generation+1, limitedTo(fmt.Sprint(generation+1)))
		edit, _ := NewEdit(morning(), "olga", before, after)
		r.Edited(edit)
		shown = AddChanges(shown, r.Changes(after))
	}
	if len(shown) != MostChanges || shown[0].Generation != 40 || shown[9].Generation != 31 {
		t.Errorf("%v", lines(shown))
	}
	if r.Pause(0) != hurry || r.Pause(r.Version()) != pause {
		t.Errorf("edits are told after %s, and the rest after %s", r.Pause(0), r.Pause(r.Version()))
	}
}
