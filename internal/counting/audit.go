// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Audit counts one quota again from the records, repairs differences, and returns
// by how much its running figures had drifted, which is by nothing unless there
// is a defect.
//
// It looks at one namespace at a time, and events are taken in between. With
// 50,000 pods in 500 namespaces the lock is held 500 times for 0.13 ms, where
// the whole quota at once, each pod added for itself, held it for 157 ms.
func (c *Count) Audit(name string, now time.Time) corev1.ResourceList {
	var concerned []string
	c.withTally(name, func(t *tally) {
		c.lockedReevaluate(now)
		concerned = slices.Collect(maps.Keys(t.slices))
		for name, current := range c.namespaces {
			if _, covered := t.slices[name]; !covered && t.selects(current) {
				concerned = append(concerned, name)
			}
		}
	})
	drift := corev1.ResourceList{}
	for _, namespace := range concerned {
		c.withTally(name, func(t *tally) { maps.Copy(drift, c.lockedAudit(t, namespace, now)) })
	}
	c.withTally(name, func(t *tally) {
		sum := zeros(t.target.Quota.Spec.Hard)
		for _, used := range t.slices {
			sum = quota.Add(sum, used)
		}
		if by := quota.RemoveZeros(quota.Subtract(sum, t.total)); len(by) > 0 {
			t.total = sum
			c.lockedTouch(t)
			maps.Copy(drift, by)
		}
	})
	return drift
}

// withTally changes a quota's tally, if the quota is defined.
func (c *Count) withTally(name string, change func(*tally)) {
	c.mu.Lock()
	defer c.unlock()
	if tally, known := c.tallies[name]; known {
		change(tally)
	}
}

// lockedAudit counts one namespace again.
func (c *Count) lockedAudit(tally *tally, namespace string, now time.Time) corev1.ResourceList {
	running, covered := tally.slices[namespace]
	current, exists := c.namespaces[namespace]
	if exists && tally.selects(current) && covered {
		used := c.lockedUsed(namespace, tally)
		drift := quota.RemoveZeros(quota.Subtract(used, running))
		if len(drift) > 0 { // otherwise there is nothing to tell
			tally.slices[namespace], tally.total = used, quota.Add(tally.total, drift)
			c.lockedTouch(tally)
		}
		return drift
	}
	if exists {
		c.lockedSelect(namespace, current, tally, now)
	} else if covered {
		c.lockedUncover(namespace, tally)
	}
	return quota.RemoveZeros(quota.Subtract(tally.slices[namespace], running))
}
