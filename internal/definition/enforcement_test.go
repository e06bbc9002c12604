// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func enforcing(mode quotav1.EnforcementMode) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Enforcement.Mode = mode }
}

func whenUnavailable(policy quotav1.UnavailablePolicy) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Enforcement.WhenUnavailable = policy }
}

func TestEnforcement(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		// refuses: requests that don't fit are refused. The others are whether requests are admitted while they can't
		// be decided, if the operator runs with --failure-policy=Fail and Ignore.
		refuses, withFail, withIgnore bool
	}{
		"by default":               {refuses: true, withIgnore: true},
		"Deny":                     {changes: []change{enforcing("Deny")}, refuses: true, withIgnore: true},
		"Deny that always refuses": {changes: []change{whenUnavailable("Refuse")}, refuses: true},
		"Deny that admits":         {changes: []change{whenUnavailable("Admit")}, refuses: true, withFail: true, withIgnore: true},
		"Warn":                     {changes: []change{enforcing("Warn")}, withFail: true, withIgnore: true},
		"Warn, with any policy":    {changes: []change{enforcing("Warn"), whenUnavailable("Refuse")}, withFail: true, withIgnore: true},
		"Audit":                    {changes: []change{enforcing("Audit")}, withFail: true, withIgnore: true},
		// A mode of a later release is unknown here. A mode that isn't understood
		// is enforced.
		"a mode that isn't known": {changes: []change{enforcing("Dream")}, refuses: true, withIgnore: true},
	} {
		t.Run(name, func(t *testing.T) {
			object := team(test.changes...)
			got := Salvage(object)
			if got.Enforcement.Refuses() != test.refuses || got.Limits.Advisory == test.refuses || got.Quota.Advisory == test.refuses {
				t.Errorf("refuses: got %v, want %v", got.Enforcement.Refuses(), test.refuses)
			}
			if enforced := Enforced(object.Spec); len(enforced) > 0 != test.refuses {
				t.Errorf("enforced: got %v", enforced)
			}
			if withFail := got.Enforcement.AdmitsUnavailable(false); withFail != test.withFail {
				t.Errorf("with Fail: got %v", withFail)
			}
			if withIgnore := got.Enforcement.AdmitsUnavailable(true); withIgnore != test.withIgnore {
				t.Errorf("with Ignore: got %v", withIgnore)
			}
			if got.Limits.Digest != mustCompile(t, team()).Limits.Digest {
				t.Error("want nothing counted again because of the mode")
			}
			if diff := cmp.Diff(team(test.changes...), object); diff != "" {
				t.Errorf("to compile changed the object (-before,+after):\n%s", diff)
			}
		})
	}
}

func TestInvalidEnforcement(t *testing.T) {
	for name, test := range map[string]struct {
		changes []change
		want    []string
	}{
		"nothing": {changes: []change{enforcing("Audit"), whenUnavailable("Admit")}},
		"a mode that isn't known": {changes: []change{enforcing("Dream")}, want: []string{
			`spec.enforcement.mode: Unsupported value: "Dream": supported values: "Deny", "Warn", "Audit"`,
		}},
		"a policy that isn't known": {changes: []change{whenUnavailable("Pray")}, want: []string{
			`spec.enforcement.whenUnavailable: Unsupported value: "Pray": supported values: "Refuse", "Admit"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			requireWrong(t, Validate(team(test.changes...)), test.want)
		})
	}
}
