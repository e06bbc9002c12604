// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func enforcing(mode quotav1.EnforcementMode) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Enforcement.Mode = mode }
}

func overriding(name corev1.ResourceName, mode quotav1.EnforcementMode) change {
	return func(q *quotav1.ClusterResourceQuota) {
		q.Spec.Enforcement.Overrides = append(q.Spec.Enforcement.Overrides, quotav1.EnforcementOverride{Resource: name, Mode: mode})
	}
}

func trying(hard ...string) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Trial.Hard = list(hard...) }
}

func warningAt(percent int32) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Enforcement.WarnAt = percent }
}

func whenUnavailable(policy quotav1.UnavailablePolicy) change {
	return func(q *quotav1.ClusterResourceQuota) { q.Spec.Enforcement.WhenUnavailable = policy }
}

func TestEnforcement(t *testing.T) {
	const pods, cpu, memory = "pods", "requests.cpu", "requests.memory"
	for name, test := range map[string]struct {
		changes []change
		// advisory and enforced are the resources for which nothing and something is refused.
		advisory       []corev1.ResourceName
		enforced       corev1.ResourceList
		counted        corev1.ResourceList
		refusesNothing bool
	}{
		"by default everything is enforced": {enforced: list(pods, "10", cpu, "2")},
		"as with Deny":                      {changes: []change{enforcing("Deny")}, enforced: list(pods, "10", cpu, "2")},
		"Warn refuses nothing":              {changes: []change{enforcing("Warn")}, advisory: []corev1.ResourceName{pods, cpu}, refusesNothing: true},
		"nor does Audit":                    {changes: []change{enforcing("Audit")}, advisory: []corev1.ResourceName{pods, cpu}, refusesNothing: true},
		"one resource is enforced": {
			changes: []change{enforcing("Audit"), overriding(cpu, "Deny")}, advisory: []corev1.ResourceName{pods}, enforced: list(cpu, "2"),
		},
		"one resource is not": {
			changes: []change{overriding(cpu, "Warn")}, advisory: []corev1.ResourceName{cpu}, enforced: list(pods, "10"),
		},
		"each for itself": {
			changes:  []change{overriding(cpu, "Warn"), overriding(pods, "Audit")},
			advisory: []corev1.ResourceName{pods, cpu}, refusesNothing: true,
		},
		"a trial of the same": {changes: []change{trying(pods, "1")}, enforced: list(pods, "10", cpu, "2"), counted: list(pods, "10", cpu, "2")},
		"a trial of another resource is counted, and never enforced": {
			changes: []change{trying(memory, "1Gi", pods, "1")}, advisory: []corev1.ResourceName{memory},
			enforced: list(pods, "10", cpu, "2"), counted: list(pods, "10", cpu, "2", memory, "1Gi"),
		},
		"a trial alone refuses nothing": {
			changes: []change{limiting(), trying(memory, "1Gi")}, advisory: []corev1.ResourceName{memory},
			counted: list(memory, "1Gi"), refusesNothing: true,
		},
		"no limits at all are as by default": {changes: []change{limiting(), enforcing("Audit")}, counted: list()},
	} {
		t.Run(name, func(t *testing.T) {
			object := team(test.changes...)
			before := object.DeepCopy()
			compiled := mustCompile(t, object)
			counted := test.counted
			if counted == nil {
				counted = list(pods, "10", cpu, "2")
			}
			advisory := map[corev1.ResourceName]bool{}
			for _, name := range test.advisory {
				advisory[name] = true
			}
			empty := cmpopts.EquateEmpty()
			if diff := cmp.Diff(advisory, compiled.Limits.Advisory, empty); diff != "" {
				t.Errorf("advisory (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(advisory, compiled.Quota.Advisory, empty); diff != "" {
				t.Errorf("advisory of what is evaluated (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.enforced, Enforced(object.Spec), empty); diff != "" {
				t.Errorf("enforced (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(counted, compiled.Quota.Spec.Hard, empty); diff != "" {
				t.Errorf("counted (-want,+got):\n%s", diff)
			}
			for name := range counted {
				if got := compiled.Limits.Enforces(name); got == advisory[name] {
					t.Errorf("%s is enforced: %v", name, got)
				}
			}
			if compiled.Enforcement.RefusesNothing != test.refusesNothing {
				t.Errorf("refuses nothing: got %v", compiled.Enforcement.RefusesNothing)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("to compile changed the object (-before,+after):\n%s", diff)
			}
		})
	}
}

func TestTheModeOfAResource(t *testing.T) {
	enforcement := mustCompile(t, team(enforcing("Audit"), overriding("pods", "Warn"))).Enforcement
	for name, want := range map[corev1.ResourceName]quotav1.EnforcementMode{"pods": "Warn", "requests.cpu": "Audit", "other": "Audit"} {
		if got := enforcement.Of(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := mustCompile(t, team()).Enforcement.Of("pods"); got != quotav1.EnforcementDeny {
		t.Errorf("by default: got %s", got)
	}
}

func TestWhoIsAdmittedWhileNobodyCanDecide(t *testing.T) {
	for name, test := range map[string]struct {
		changes       []change
		refuse, admit bool
	}{
		"as the operator runs":     {admit: true},
		"the quota refuses":        {changes: []change{whenUnavailable("Refuse")}},
		"the quota admits":         {changes: []change{whenUnavailable("Admit")}, refuse: true, admit: true},
		"it refuses nothing":       {changes: []change{enforcing("Warn")}, refuse: true, admit: true},
		"whatever it says of that": {changes: []change{enforcing("Warn"), whenUnavailable("Refuse")}, refuse: true, admit: true},
		"it refuses something":     {changes: []change{enforcing("Warn"), overriding("pods", "Deny")}, admit: true},
	} {
		t.Run(name, func(t *testing.T) {
			enforcement := mustCompile(t, team(test.changes...)).Enforcement
			if got := enforcement.AdmitsUnavailable(false); got != test.refuse {
				t.Errorf("with Fail: got %v", got)
			}
			if got := enforcement.AdmitsUnavailable(true); got != test.admit {
				t.Errorf("with Ignore: got %v", got)
			}
		})
	}
}

// A mode of a later release is unknown here. What can't be understood is enforced.
func TestAnUnknownModeEnforces(t *testing.T) {
	for name, changed := range map[string]change{"of all": enforcing("Dream"), "of one resource": overriding("pods", "Dream")} {
		t.Run(name, func(t *testing.T) {
			object := team(changed)
			got := Salvage(object)
			if got.Invalid == nil || got.Enforcement.RefusesNothing || len(got.Limits.Advisory) > 0 || len(got.Quota.Advisory) > 0 {
				t.Errorf("got %+v and %v, want it to refuse", got.Enforcement, got.Limits.Advisory)
			}
			if diff := cmp.Diff(object.Spec.Quota.Hard, Enforced(object.Spec)); diff != "" {
				t.Errorf("enforced (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestInvalidEnforcement(t *testing.T) {
	const modes = `supported values: "Deny", "Warn", "Audit"`
	for name, test := range map[string]struct {
		changes []change
		want    []string
	}{
		"nothing": {changes: []change{
			enforcing("Audit"), overriding("pods", "Deny"), overriding("requests.cpu", "Warn"), warningAt(80), whenUnavailable("Admit"),
			trying("pods", "1", "requests.memory", "1Gi"),
		}},
		"nothing, at the edges":  {changes: []change{warningAt(1), whenUnavailable("Refuse"), trying("pods", "0")}},
		"nothing, at the other":  {changes: []change{warningAt(100)}},
		"nothing, if it is zero": {changes: []change{warningAt(0)}},
		"less than nothing": {changes: []change{warningAt(-1)}, want: []string{
			"spec.enforcement.warnAt: Invalid value: -1: must be a percentage from 1 to 100; leave it out to warn nobody",
		}},
		"more than all": {changes: []change{warningAt(101)}, want: []string{
			"spec.enforcement.warnAt: Invalid value: 101: must be a percentage from 1 to 100; leave it out to warn nobody",
		}},
		"a mode that isn't known": {changes: []change{enforcing("Dream")}, want: []string{
			`spec.enforcement.mode: Unsupported value: "Dream": ` + modes,
		}},
		"one of an override": {changes: []change{overriding("pods", "Dream")}, want: []string{
			`spec.enforcement.overrides[0].mode: Unsupported value: "Dream": ` + modes,
		}},
		"an override without a mode": {changes: []change{overriding("pods", "")}, want: []string{
			`spec.enforcement.overrides[0].mode: Unsupported value: "": ` + modes,
		}},
		"an override of what isn't limited": {changes: []change{overriding("secrets", "Warn")}, want: []string{
			`spec.enforcement.overrides[0].resource: Invalid value: "secrets": is not in spec.quota.hard; add it there, or remove this override`,
		}},
		"an override of what is only tried": {
			changes: []change{trying("requests.memory", "1Gi"), overriding("requests.memory", "Deny")}, want: []string{
				`spec.enforcement.overrides[0].resource: Invalid value: "requests.memory": is only in spec.trial.hard, ` +
					`which refuses nothing in any mode; name a resource of spec.quota.hard`,
			},
		},
		"two overrides of one resource": {changes: []change{overriding("pods", "Warn"), overriding("pods", "Audit")}, want: []string{
			`spec.enforcement.overrides[1].resource: Duplicate value: "pods"`,
		}},
		"a policy that isn't known": {changes: []change{whenUnavailable("Pray")}, want: []string{
			`spec.enforcement.whenUnavailable: Unsupported value: "Pray": supported values: "Refuse", "Admit"`,
		}},
		"a negative trial": {changes: []change{trying("pods", "-1")}, want: []string{
			`spec.trial.hard[pods]: Invalid value: "-1": must be greater than or equal to 0`,
		}},
		"a trial of half a pod": {changes: []change{trying("pods", "500m")}, want: []string{
			`spec.trial.hard[pods]: Invalid value: "500m": must be an integer`,
		}},
		"a trial of more than can be counted": {changes: []change{trying("requests.cpu", "1e30")}, want: []string{
			`spec.trial.hard[requests.cpu]: Invalid value: "1e30": must be less than 1e30`,
		}},
		"a trial of a name that isn't one": {changes: []change{trying("gpus", "1")}, want: []string{
			`spec.trial.hard[gpus]: Invalid value: "gpus": must be a standard resource for quota`,
			`spec.trial.hard[gpus]: Invalid value: "gpus": must be a standard resource type or fully qualified`,
		}},
		"a trial of what the scopes can't limit": {changes: []change{scoped("NotTerminating"), trying("services", "1")}, want: []string{
			`spec.trial.hard: Invalid value: ["NotTerminating"]: unsupported scope applied to resource: ` +
				`spec.quota limits by a scope what spec.trial.hard names`,
		}},
		"a mistake of the scopes is told once": {changes: []change{scoped("Sometimes"), trying("pods", "1")}, want: []string{
			`spec.quota.scopes: Invalid value: ["Sometimes"]: unsupported scope`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			requireWrong(t, Validate(team(test.changes...)), test.want)
		})
	}
}

func TestTheDigestAndTheModes(t *testing.T) {
	before := mustCompile(t, team()).Limits.Digest
	for name, test := range map[string]struct {
		changed change
		differs bool
	}{
		"a mode":                            {changed: enforcing("Audit")},
		"a mode of one resource":            {changed: overriding("pods", "Warn")},
		"a warning":                         {changed: warningAt(50)},
		"what happens without an answer":    {changed: whenUnavailable("Admit")},
		"a trial of what is limited":        {changed: trying("pods", "1", "requests.cpu", "1")},
		"a trial of another resource":       {changed: trying("requests.memory", "1Gi"), differs: true},
		"one besides what is limited":       {changed: trying("pods", "1", "requests.memory", "1Gi"), differs: true},
		"a limit that is tried and limited": {changed: func(q *quotav1.ClusterResourceQuota) { q.Spec.Trial.Hard = maps.Clone(q.Spec.Quota.Hard) }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mustCompile(t, team(test.changed)).Limits.Digest; (got != before) != test.differs {
				t.Errorf("got %s, was %s", got, before)
			}
		})
	}
	// What is tried becomes a limit: nothing has to be counted again.
	tried, limited := mustCompile(t, team(trying("requests.memory", "1Gi"))), mustCompile(t, team(limiting("pods", "1", "requests.cpu", "1", "requests.memory", "2Gi"),
		scoped("NotBestEffort", "NotTerminating"), func(q *quotav1.ClusterResourceQuota) { q.Spec.Quota.ScopeSelector = priorities("high") }))
	if tried.Limits.Digest != limited.Limits.Digest {
		t.Error("want the digest of the same resources the same, whether they are tried or limited")
	}
}
