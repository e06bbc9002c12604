// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	// near is the part of a limit at which it comes near.
	near = 0.8
	// slack is the part of a limit by which use must fall below where a level
	// begins before it is left.
	slack = 0.1
	// rounding is the largest error of a float.
	rounding = 1e-9
)

// Levels returns the level of each resource of which near to all is used. A
// resource that hasn't been counted keeps the level that it had before, so that a
// new count tells nothing twice. Reserved doesn't matter: levels are of used
// amounts.
func Levels(before map[corev1.ResourceName]quotav1.Level, used, hard corev1.ResourceList) map[corev1.ResourceName]quotav1.Level {
	var levels map[corev1.ResourceName]quotav1.Level
	for name, limit := range hard {
		level := before[name]
		if amount, counted := used[name]; counted {
			level = levelOf(before[name], amount, limit)
		}
		if level == "" {
			continue
		}
		if levels == nil {
			levels = make(map[corev1.ResourceName]quotav1.Level, len(hard))
		}
		levels[name] = level
	}
	return levels
}

// levelOf returns the highest level that use has reached, or that it had and has
// not fallen far enough below.
func levelOf(before quotav1.Level, used, hard resource.Quantity) quotav1.Level {
	if used.Cmp(hard) > 0 {
		return quotav1.LevelUsedAboveHard
	}
	if hard.IsZero() {
		return "" // of nothing there are no percents
	}
	share := used.AsApproximateFloat64()/hard.AsApproximateFloat64() + rounding
	switch {
	case share >= 1, rank(before) >= rank(quotav1.LevelLimitReached) && share >= 1-slack:
		return quotav1.LevelLimitReached
	case share >= near, before != "" && share >= near-slack:
		return quotav1.LevelNearLimit
	default:
		return ""
	}
}

// Risen returns the resources whose level is higher than before, sorted.
func Risen(before, current map[corev1.ResourceName]quotav1.Level) []corev1.ResourceName {
	var risen []corev1.ResourceName
	for name, level := range current {
		if rank(level) > rank(before[name]) {
			risen = append(risen, name)
		}
	}
	slices.Sort(risen)
	return risen
}

// rank orders levels; no level is 0.
func rank(level quotav1.Level) int {
	switch level {
	case quotav1.LevelNearLimit:
		return 1
	case quotav1.LevelLimitReached:
		return 2
	case quotav1.LevelUsedAboveHard:
		return 3
	default:
		return 0
	}
}
