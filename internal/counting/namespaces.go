// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespaces is the resource that every figure depends on.
var Namespaces = schema.GroupResource{Resource: "namespaces"}

// SetNamespace records a namespace as it was at a resourceVersion, and counts
// it where it is now selected.
func (c *Count) SetNamespace(name string, labels, annotations map[string]string, version uint64, now time.Time) {
	c.mu.Lock()
	defer c.unlock()
	c.lockedSetNamespace(name, namespace{labels: labels, annotations: annotations, version: version}, now)
	c.lockedNamespacesAt(version)
}

// DeleteNamespace removes a namespace that was deleted at a resourceVersion.
func (c *Count) DeleteNamespace(name string, version uint64) {
	c.mu.Lock()
	defer c.unlock()
	c.lockedDeleteNamespace(name, version)
	c.lockedNamespacesAt(version)
}

// NamespaceLabels is a namespace in a list.
type NamespaceLabels struct {
	Name                string
	Labels, Annotations map[string]string
	// Version is the namespace's own resourceVersion.
	Version uint64
}

// ReplaceNamespaces takes a complete list as of a resourceVersion.
func (c *Count) ReplaceNamespaces(list []NamespaceLabels, version uint64, now time.Time) {
	c.mu.Lock()
	defer c.unlock()
	// In their order, as if they had changed one after the other.
	list = slices.SortedFunc(slices.Values(list), func(a, b NamespaceLabels) int { return cmp.Compare(a.Version, b.Version) })
	if len(c.namespaces) == 0 {
		c.lockedTakeFirst(list, now)
	} else {
		c.lockedTakeNext(list, version, now)
	}
	c.lockedNamespacesAt(version)
	c.lockedTouchAll()
}

// lockedTakeFirst takes the first list, as lockedTakeNext would, but has each tally look only at the namespaces that it may
// select: a thousand quotas that each looked at twenty thousand namespaces took a new leader three seconds.
func (c *Count) lockedTakeFirst(list []NamespaceLabels, now time.Time) {
	at := make(map[string]int, len(list))
	for i, item := range list {
		at[item.Name] = i
		c.namespaces[item.Name] = namespace{labels: item.Labels, annotations: item.Annotations, version: item.Version}
		c.labelled.Change(item.Name, nil, item.Labels)
	}
	c.lockedReevaluate(now)
	for _, tally := range c.tallies {
		var candidates []int
		for name := range c.labelled.Candidates(tally.target.Selector, c.lockedLabels) {
			candidates = append(candidates, at[name])
		}
		slices.Sort(candidates)
		next := 0
		for _, i := range candidates {
			if i > next {
				tally.miss(list[i-1].Version) // the newest one that the tally doesn't look at
			}
			next = i + 1
			current := c.namespaces[list[i].Name]
			if !tally.selects(current) {
				tally.miss(current.version)
			}
			c.lockedSelect(list[i].Name, current, tally, now)
		}
		if next < len(list) {
			tally.miss(list[len(list)-1].Version)
		}
	}
}

// lockedTakeNext takes a list after others.
func (c *Count) lockedTakeNext(list []NamespaceLabels, version uint64, now time.Time) {
	listed := map[string]bool{}
	for _, item := range list {
		listed[item.Name] = true
		current := namespace{labels: item.Labels, annotations: item.Annotations, version: item.Version}
		if c.namespaces[item.Name].version != item.Version {
			c.lockedRejoin(item.Name, item.Version, now)
			c.lockedMissed(current)
		}
		c.lockedSetNamespace(item.Name, current, now)
	}
	for _, name := range sortedKeys(c.namespaces) {
		if !listed[name] {
			c.lockedDeleteNamespace(name, version)
		}
	}
}

// NamespacesAt records that the namespaces are known up to a resourceVersion.
func (c *Count) NamespacesAt(version uint64) {
	c.mu.Lock()
	defer c.unlock()
	switch before := c.namespacesVersion; {
	case before == 0:
		c.lockedTouchAll()
	case version > before:
		for name := range c.tallies {
			c.progressing[name] = true
		}
	}
	c.lockedNamespacesAt(version)
}

func (c *Count) lockedNamespacesAt(version uint64) {
	c.namespacesVersion = max(c.namespacesVersion, version)
}

func (c *Count) lockedSetNamespace(name string, current namespace, now time.Time) {
	previous, known := c.namespaces[name]
	c.namespaces[name] = current
	c.labelled.Change(name, previous.labels, current.labels)
	if known && maps.Equal(previous.labels, current.labels) && maps.Equal(previous.annotations, current.annotations) {
		return
	}
	c.lockedReevaluate(now)
	for _, tally := range c.tallies {
		c.lockedSelect(name, current, tally, now)
	}
}

// lockedRejoin notes that a namespace changed unseen: it may have left, and come back.
func (c *Count) lockedRejoin(name string, version uint64, now time.Time) {
	for _, tally := range c.covering[name] {
		tally.join(name, version, now)
	}
}

// lockedMissed notes a namespace that changed unseen and isn't selected now. It may have left meanwhile, so
// requests that know its older version must not be judged by these figures.
func (c *Count) lockedMissed(current namespace) {
	for _, tally := range c.tallies {
		if !tally.selects(current) {
			tally.miss(current.version)
		}
	}
}

func (c *Count) lockedDeleteNamespace(name string, version uint64) {
	c.labelled.Change(name, c.namespaces[name].labels, nil)
	delete(c.namespaces, name)
	for _, tally := range slices.Clone(c.covering[name]) {
		c.lockedUncover(name, tally)
		tally.miss(version)
	}
}
