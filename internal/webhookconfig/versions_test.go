// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"pgregory.net/rapid"
)

// changed is a quota of teamQuota with this spec, and its object at this version.
func changed(team string, generation int64, version uint64) Quota {
	quota := teamQuota(team, pods)
	quota.Generation, quota.Version = generation, version
	return quota
}

func TestVersionsAreThoseAtWhichSpecsWereFirstSeen(t *testing.T) {
	versions := &Versions{}
	for i, step := range []struct {
		quotas []Quota
		want   []uint64
	}{
		{quotas: []Quota{changed("shop", 1, 10)}, want: []uint64{10}},
		{quotas: []Quota{changed("shop", 1, 20)}, want: []uint64{10}},                             // its status was written
		{quotas: []Quota{changed("shop", 1, 20), changed("blog", 1, 30)}, want: []uint64{10, 30}}, // another was created
		{quotas: []Quota{changed("shop", 2, 40), changed("blog", 1, 50)}, want: []uint64{40, 30}}, // its spec has changed
		{quotas: []Quota{changed("blog", 1, 50)}, want: []uint64{30}},                             // it was deleted
		{quotas: []Quota{changed("shop", 2, 60), changed("blog", 1, 50)}, want: []uint64{60, 30}}, // and created again
	} {
		versions.Date(testSettings(), &admissionregistrationv1.ValidatingWebhookConfiguration{}, step.quotas)
		var got []uint64
		for _, quota := range step.quotas {
			got = append(got, quota.Version)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d: versions (-want,+got):\n%s", i, diff)
		}
	}
}

// A new leader sees quotas whose status has been written since, and leaves the
// configuration alone if no spec has changed.
func TestANewLeaderLeavesTheConfigurationAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := testSettings()
		quotas := anyQuotas().Draw(t, "quotas")
		(&Versions{}).Date(settings, &admissionregistrationv1.ValidatingWebhookConfiguration{}, quotas)
		webhooks, exact := settings.Webhooks(quotas)
		previous := configured(webhooks, exact)

		later := slices.Clone(quotas)
		for i := range later {
			later[i].Version += rapid.Uint64Range(0, 50).Draw(t, "writes of its status")
		}
		versions := &Versions{}
		versions.Date(settings, previous, later)
		again, _ := settings.Webhooks(later)
		if diff := cmp.Diff(previous.Webhooks, again); diff != "" {
			t.Fatalf("another leader (-was,+is):\n%s", diff)
		}
		for _, quota := range later {
			if settings.Coverage(previous, quota) == Missing {
				t.Fatalf("quota %s isn't covered any more", quota.Name)
			}
		}
	})
}

// If a spec has changed while there was no leader, no entry may claim less than that.
func TestANewLeaderDoesNotBelieveWhatIsOld(t *testing.T) {
	settings := testSettings()
	shop, blog := changed("shop", 1, 10), changed("blog", 1, 20)
	webhooks, exact := settings.Webhooks([]Quota{shop, blog})
	previous := configured(webhooks, exact)
	quotas := []Quota{changed("shop", 2, 30), changed("blog", 1, 40)}
	(&Versions{}).Date(settings, previous, quotas)
	if quotas[0].Version != 30 || quotas[1].Version != 20 {
		t.Errorf("got the versions %d and %d, want 30 and 20", quotas[0].Version, quotas[1].Version)
	}
	if settings.Coverage(previous, quotas[0]) != Missing || settings.Coverage(previous, quotas[1]) == Missing {
		t.Error("want the quota uncovered that has changed, and the other covered")
	}
}

// An epoch that an edit has lowered is put right.
func TestAnEpochThatWasEditedIsPutRight(t *testing.T) {
	settings, versions := testSettings(), &Versions{}
	quotas := []Quota{changed("shop", 1, 10)}
	versions.Date(settings, &admissionregistrationv1.ValidatingWebhookConfiguration{}, quotas)
	lowered := slices.Clone(quotas)
	lowered[0].Version = 1
	webhooks, exact := settings.Webhooks(lowered)
	quotas[0].Version = 30
	versions.Date(settings, configured(webhooks, exact), quotas)
	if quotas[0].Version != 10 || settings.Coverage(configured(webhooks, exact), quotas[0]) != Missing {
		t.Errorf("got version %d, want 10, and the quota uncovered", quotas[0].Version)
	}
}
