// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// Seconds of the stories below: revision -> when.
type (
	sentAt  map[int64]float64
	forceAt map[int64]float64
)

// at is a time in a story; its first second is the first that is known.
func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// testimony is of a leader that learns within two seconds. Each request is answered a
// tenth of a second after it was sent.
func testimony(sent sentAt, inForce forceAt, unasked, unchecked map[int64]bool) Testimony {
	return Testimony{
		Sent: func(change Change) (time.Time, time.Time) {
			if when, known := sent[change.Revision]; known {
				return at(when), at(when + 0.1)
			}
			return time.Time{}, time.Time{}
		},
		InForce: func(change Change) time.Time {
			if when, known := inForce[change.Revision]; known {
				return at(when)
			}
			return time.Time{}
		},
		Learned: func(when time.Time) time.Time { return when.Add(2 * time.Second) },
		Asked:   func(change Change) bool { return !unasked[change.Revision] },
		Unchecked: func(quota string, change Change) bool {
			return quota == "team" && unchecked[change.Revision]
		},
	}
}

func TestExceptions(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod { return builders.Pod(namespace, name).Obj() }
	two := team().Hard("pods", "2").Obj()
	// Revisions 1 to 5: the quota, one namespace under it with a pod, and one beside it with two.
	world := []step{
		put(two), put(ns("in", "red")), put(pod("in", "a")), put(ns("beside", "blue")), put(pod("beside", "b")), put(pod("beside", "c")),
	}
	const violated = "revision 8: pods/beside/d raised pods under quota team to 4, above 2"
	auditing := func() *quotav1.ClusterResourceQuota {
		return team().Hard("pods", "2").Enforcement(quotav1.EnforcementAudit, "").Obj()
	}
	// Revisions 1 to 5: more than the limit, which isn't enforced.
	audited := func() []step {
		return []step{put(auditing()), put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(pod("in", "c"))}
	}

	for name, test := range map[string]struct {
		steps   []step
		sent    sentAt
		inForce forceAt
		unasked map[int64]bool
		// unchecked are the revisions of what nobody decided.
		unchecked map[int64]bool
		want      []string
		excused   map[Exception]int
	}{
		"what nobody knows anything of is a violation": {
			steps: []step{put(two), put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(pod("in", "c"))},
			want:  []string{"revision 5: pods/in/c raised pods under quota team to 3, above 2"},
		},
		"a request that was under way when its namespace joined is none": {
			steps:   append(world, put(ns("beside", "red")), put(pod("beside", "d"))),
			sent:    sentAt{8: 9.9},
			inForce: forceAt{7: 10},
			excused: map[Exception]int{InFlight: 1},
		},
		"one that was sent to the namespace just after it had joined is none": {
			steps:   append(world, put(ns("beside", "red")), put(pod("beside", "d"))),
			sent:    sentAt{8: 11.9},
			inForce: forceAt{7: 10},
			excused: map[Exception]int{Followed: 1},
		},
		"one that was sent two seconds later is one, if anybody was asked": {
			steps:   append(world, put(ns("beside", "red")), put(pod("beside", "d"))),
			sent:    sentAt{8: 12},
			inForce: forceAt{7: 10},
			want:    []string{violated},
		},
		"one of which the API server asked nobody is none": {
			steps:   append(world, put(ns("beside", "red")), put(pod("beside", "d"))),
			sent:    sentAt{8: 14.9},
			inForce: forceAt{7: 10},
			unasked: map[int64]bool{8: true},
			excused: map[Exception]int{Unasked: 1},
		},
		"but it is one when the API server must know that the namespace has joined": {
			steps:   append(world, put(ns("beside", "red")), put(pod("beside", "d"))),
			sent:    sentAt{8: 15},
			inForce: forceAt{7: 10},
			unasked: map[int64]bool{8: true},
			want:    []string{violated},
		},
		"what nobody was asked about excuses others while nobody can know of it": {
			steps: []step{
				put(two), put(ns("in", "red")), put(pod("in", "a")), put(ns("beside", "red")), put(pod("beside", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 12.1, 6: 14.1},
			inForce: forceAt{4: 10},
			unasked: map[int64]bool{5: true},
			excused: map[Exception]int{Unlearned: 1},
		},
		"one elsewhere is none before the leader has learned what the namespace brought along": {
			steps:   append(world, put(ns("beside", "red")), put(pod("in", "d"))),
			sent:    sentAt{8: 11.9},
			inForce: forceAt{7: 10},
			excused: map[Exception]int{Unlearned: 1},
		},
		"one elsewhere is one afterwards": {
			steps:   append(world, put(ns("beside", "red")), put(pod("in", "d"))),
			sent:    sentAt{8: 12.1},
			inForce: forceAt{7: 10},
			want:    []string{"revision 8: pods/in/d raised pods under quota team to 4, above 2"},
		},
		"what came without a question excuses no more than that": {
			steps:   append(world, put(ns("beside", "red")), put(pod("in", "d")), put(pod("in", "e"))),
			sent:    sentAt{8: 10.5, 9: 10.5},
			inForce: forceAt{7: 10},
			want:    []string{"revision 9: pods/in/e raised pods under quota team to 5, above 2"},
			excused: map[Exception]int{Unlearned: 1},
		},
		"what was under way when its namespace joined excuses others while nobody can know of it": {
			steps: []step{
				put(two), put(ns("in", "red")), put(pod("in", "a")), put(ns("beside", "red")), put(pod("beside", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 9.9, 6: 11.9},
			inForce: forceAt{4: 10},
			excused: map[Exception]int{Unlearned: 1},
		},
		"not longer": {
			steps: []step{
				put(two), put(ns("in", "red")), put(pod("in", "a")), put(ns("beside", "red")), put(pod("beside", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 9.9, 6: 12.1},
			inForce: forceAt{4: 10},
			want:    []string{"revision 6: pods/in/c raised pods under quota team to 3, above 2"},
		},
		"a request that was under way when the limit was lowered is none, and excuses no other": {
			steps: []step{
				put(two), put(ns("in", "red")), put(pod("in", "a")), put(team().Hard("pods", "1").Obj()),
				put(pod("in", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 9.9, 6: 10.1},
			inForce: forceAt{4: 10},
			want:    []string{"revision 6: pods/in/c raised pods under quota team to 3, above 1"},
			excused: map[Exception]int{InFlight: 1},
		},
		"what is sent before a quota begins to enforce its limit is none, and what follows is one": {
			steps:   append(audited(), put(two), put(pod("in", "d")), put(pod("in", "e"))),
			sent:    sentAt{7: 9.9, 8: 10.1},
			inForce: forceAt{6: 10},
			want:    []string{"revision 8: pods/in/e raised pods under quota team to 5, above 2"},
			excused: map[Exception]int{InFlight: 1},
		},
		"what nobody decided before excuses others while nobody can know of it": {
			steps: []step{
				put(auditing()), put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(two), put(pod("in", "c")), put(pod("in", "d")),
			},
			sent:      sentAt{4: 9, 6: 10.5, 7: 11.2},
			inForce:   forceAt{5: 10},
			unchecked: map[int64]bool{4: true},
			want:      []string{"revision 7: pods/in/d raised pods under quota team to 4, above 2"},
			excused:   map[Exception]int{Unlearned: 1},
		},
		"what was decided before excuses nothing": {
			steps: []step{
				put(auditing()), put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(two), put(pod("in", "c")),
			},
			sent:    sentAt{4: 9, 6: 10.5},
			inForce: forceAt{5: 10},
			want:    []string{"revision 6: pods/in/c raised pods under quota team to 3, above 2"},
		},
		"what nobody decided is none if the quota lets it pass": {
			steps:     []step{put(two), put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(pod("in", "c")), put(pod("in", "d"))},
			sent:      sentAt{5: 10, 6: 20},
			unchecked: map[int64]bool{5: true},
			want:      []string{"revision 6: pods/in/d raised pods under quota team to 4, above 2"},
			excused:   map[Exception]int{Undecided: 1},
		},
		"a limit that was raised excuses nothing": {
			steps: []step{
				put(team().Hard("pods", "1").Obj()), put(ns("in", "red")), put(pod("in", "a")), put(two),
				put(pod("in", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 9.8, 6: 9.9},
			inForce: forceAt{4: 10},
			want:    []string{"revision 6: pods/in/c raised pods under quota team to 3, above 2"},
		},
		"a request that was sent before the quota was in force is none": {
			steps: []step{
				put(ns("in", "red")), put(pod("in", "a")), put(pod("in", "b")), put(two),
				put(pod("in", "c")), put(pod("in", "d")), put(pod("in", "e")),
			},
			sent:    sentAt{5: 9.9, 6: 10.1, 7: 12.1},
			inForce: forceAt{4: 10},
			want: []string{
				"revision 6: pods/in/d raised pods under quota team to 4, above 2",
				"revision 7: pods/in/e raised pods under quota team to 5, above 2",
			},
			excused: map[Exception]int{InFlight: 1},
		},
		"a quota that is created again begins anew": {
			steps: []step{
				put(as("first", team().Hard("pods", "1").Obj())), put(ns("in", "red")), put(pod("in", "a")),
				gone(as("first", team().Hard("pods", "1").Obj())), put(as("second", team().Hard("pods", "1").Obj())),
				put(pod("in", "b")), put(pod("in", "c")),
			},
			sent:    sentAt{6: 9.9, 7: 10.1},
			inForce: forceAt{5: 10},
			want:    []string{"revision 7: pods/in/c raised pods under quota team to 3, above 1"},
			excused: map[Exception]int{InFlight: 1},
		},
		"a namespace that left and came back is asked again from then on": {
			steps: []step{
				put(team().Hard("pods", "1").Obj()), put(ns("in", "red")), put(pod("in", "a")),
				put(ns("in", "blue")), put(pod("in", "b")), put(ns("in", "red")), put(pod("in", "c")),
			},
			sent:    sentAt{5: 5, 7: 9.9},
			inForce: forceAt{4: 4, 6: 10},
			excused: map[Exception]int{InFlight: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			story := newStory()
			Recording()(&Judge{books: story.books})
			story.tell(t, test.steps...)
			violations, excused := testimony(test.sent, test.inForce, test.unasked, test.unchecked).Unexcused("team", story.books.history["team"])
			var got []string
			for _, violation := range violations {
				got = append(got, violation.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("violations (-want,+got):\n%s", diff)
			}
			if test.excused == nil {
				test.excused = map[Exception]int{}
			}
			if diff := cmp.Diff(test.excused, excused); diff != "" {
				t.Errorf("excused (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWithoutTestimonyTheHistoryHasTheViolationsOfTheReport(t *testing.T) {
	pod := func(name string) *corev1.Pod { return builders.Pod("a", name).Obj() }
	story := newStory()
	Recording()(&Judge{books: story.books})
	story.tell(t,
		put(team().Hard("pods", "1").Hard("count/pods", "2").Obj()), put(ns("a", "red")), put(pod("x")), put(pod("y")),
	)
	story.tell(t,
		put(ns("a", "blue")), put(pod("z")), put(ns("a", "red")), put(pod("w")), gone(pod("w")), put(team().Hard("pods", "9").Obj()), put(pod("v")),
	)
	violations, _ := testimony(nil, nil, nil, nil).Unexcused("team", story.books.history["team"])
	reports, err := story.books.report()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reports["team"].Violations, violations); diff != "" || len(violations) != 3 {
		t.Errorf("%d violations (-report,+history):\n%s", len(violations), diff)
	}
}
