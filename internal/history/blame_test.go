// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Edits of one generation were refused by others, but for the last one.
func TestTheLastEditOfAGenerationIsTheOneThatWasStored(t *testing.T) {
	before := &quotav1.ClusterResourceQuota{}
	before.Name, before.UID, before.Generation = "team", "u", 1
	for name, refused := range map[string][]string{"the same edit": {"50"}, "many others": nil} {
		t.Run(name, func(t *testing.T) {
			recorder, at := New("a"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			edit := func(by, hard string) *quotav1.ClusterResourceQuota {
				after := before.DeepCopy()
				after.Generation = 2
				after.Spec.Quota.Hard = corev1.ResourceList{"pods": resource.MustParse(hard)}
				edited, _ := NewEdit(at, by, before, after)
				recorder.Edited(edited)
				at = at.Add(time.Second)
				return after
			}
			for i := range mostEdits {
				if refused == nil {
					edit("mallory", fmt.Sprint(100+i))
				}
			}
			for _, hard := range refused {
				edit("mallory", hard)
			}
			if got := recorder.Changes(edit("alice", "50")); len(got) != 1 || got[0].By != "alice" {
				t.Errorf("got %+v, want one change by alice", got)
			}
		})
	}
}

// A trial that is tried again after others is known, though it began before all that a record keeps.
func TestATrialThatIsTriedAgain(t *testing.T) {
	leader, other := New("leader"), New("other")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	pods := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{"pods": resource.MustParse(amount)}
	}
	for i, hard := range []string{"1", "2", "3", "4", "5", "1"} {
		at = at.Add(time.Hour)
		leader.Judged(at, "team", "u", pods(hard))
		if i < 2 {
			other.Refused(at, Refusal{Quota: "team", UID: "u", Tried: true, Trial: pods(hard), Needed: pods("9")})
		}
	}
	encoded, _, err := other.Publish()
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Receive("other", encoded); err != nil {
		t.Fatal(err)
	}
	if got := leader.Summary(at, "team", "u", pods("1")); got.TrialSince.IsZero() || got.Trial["pods"].Requests != 1 {
		t.Errorf("got %v, %v, want the trial under way", got.TrialSince, got.Trial)
	}
}
