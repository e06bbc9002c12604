// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Enforcement says what a quota does with requests that don't fit. The zero value refuses them.
type Enforcement struct {
	// Mode is that of resources that Modes doesn't have; never empty.
	Mode quotav1.EnforcementMode
	// Modes are those of individual resources.
	Modes map[corev1.ResourceName]quotav1.EnforcementMode
	// WhenUnavailable says what happens while nobody can decide; empty for what the operator runs with.
	WhenUnavailable quotav1.UnavailablePolicy
	// RefusesNothing: the mode of each resource is Warn or Audit.
	RefusesNothing bool
}

// Of returns the mode of a resource.
func (e Enforcement) Of(name corev1.ResourceName) quotav1.EnforcementMode {
	if mode, overridden := e.Modes[name]; overridden {
		return mode
	}
	return e.Mode
}

// Told returns the limits of which people are told if they exceed them: all but those in the mode Audit.
func (e Enforcement) Told(limits corev1.ResourceList) corev1.ResourceList {
	told := maps.Clone(limits)
	maps.DeleteFunc(told, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return e.Of(name) == quotav1.EnforcementAudit
	})
	return told
}

// AdmitsUnavailable reports whether requests are admitted while nobody can decide. By default says what
// the operator runs with.
func (e Enforcement) AdmitsUnavailable(byDefault bool) bool {
	switch {
	case e.RefusesNothing, e.WhenUnavailable == quotav1.UnavailableAdmit:
		return true
	case e.WhenUnavailable == quotav1.UnavailableRefuse:
		return false
	default:
		return byDefault
	}
}

func enforcementOf(spec quotav1.ClusterResourceQuotaSpec) Enforcement {
	enforcement := Enforcement{
		Mode:            cmp.Or(spec.Enforcement.Mode, quotav1.EnforcementDeny),
		WhenUnavailable: spec.Enforcement.WhenUnavailable,
	}
	for _, override := range spec.Enforcement.Overrides {
		if enforcement.Modes == nil {
			enforcement.Modes = map[corev1.ResourceName]quotav1.EnforcementMode{}
		}
		enforcement.Modes[override.Resource] = override.Mode
	}
	enforcement.RefusesNothing = len(Enforced(spec)) == 0 && len(Counted(spec)) > 0
	return enforcement
}

// ModeOf returns the mode of a resource.
func ModeOf(spec quotav1.ClusterResourceQuotaSpec, name corev1.ResourceName) quotav1.EnforcementMode {
	for _, override := range spec.Enforcement.Overrides {
		if override.Resource == name {
			return override.Mode
		}
	}
	return cmp.Or(spec.Enforcement.Mode, quotav1.EnforcementDeny)
}

// refuses reports whether a mode refuses requests. One that this release doesn't know does: a quota never limits less
// than its spec says.
func refuses(mode quotav1.EnforcementMode) bool {
	return mode != quotav1.EnforcementWarn && mode != quotav1.EnforcementAudit
}

// Enforced returns the limits of a spec for which requests are refused.
func Enforced(spec quotav1.ClusterResourceQuotaSpec) corev1.ResourceList {
	enforced := corev1.ResourceList{}
	for name, limit := range spec.Quota.Hard {
		if refuses(ModeOf(spec, name)) {
			enforced[name] = limit
		}
	}
	return enforced
}

// Counted returns the limits of all resources that are counted for a spec: those of hard, and those of trial
// for what only that limits. It must not be changed.
func Counted(spec quotav1.ClusterResourceQuotaSpec) corev1.ResourceList {
	if len(spec.Trial.Hard) == 0 {
		return spec.Quota.Hard
	}
	counted := maps.Clone(spec.Trial.Hard)
	maps.Copy(counted, spec.Quota.Hard)
	return counted
}

// tried are the resources that only the trial limits; nil if there are none.
func tried(spec quotav1.ClusterResourceQuotaSpec) map[corev1.ResourceName]bool {
	var tried map[corev1.ResourceName]bool
	for name := range spec.Trial.Hard {
		if _, limited := spec.Quota.Hard[name]; !limited {
			if tried == nil {
				tried = map[corev1.ResourceName]bool{}
			}
			tried[name] = true
		}
	}
	return tried
}

// advisory are the counted resources for which nothing is refused; nil if there are none.
func advisory(spec quotav1.ClusterResourceQuotaSpec) map[corev1.ResourceName]bool {
	var advisory map[corev1.ResourceName]bool
	for name := range Counted(spec) {
		if _, limited := spec.Quota.Hard[name]; limited && refuses(ModeOf(spec, name)) {
			continue
		}
		if advisory == nil {
			advisory = map[corev1.ResourceName]bool{}
		}
		advisory[name] = true
	}
	return advisory
}
