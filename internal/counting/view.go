// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// View is one quota's figures at one instant. It is valid only within the
// function that Read calls.
type View struct {
	count *Count
	tally *tally
}

// Read calls the function with a quota's figures, and reports false when the
// quota isn't defined. No event is taken meanwhile: the function must be quick.
func (c *Count) Read(quota string, read func(View)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	tally, known := c.tallies[quota]
	if known {
		read(View{count: c, tally: tally})
	}
	return known
}

// Target is the target that the figures were counted for.
func (v View) Target() Target { return v.tally.target }

// Total is the use of all selected namespaces together. Don't change it.
func (v View) Total() corev1.ResourceList { return v.tally.total }

// Slices returns the use of each selected namespace. Don't change the lists.
func (v View) Slices() map[string]corev1.ResourceList { return maps.Clone(v.tally.slices) }

// Selection tells apart which namespaces are selected: it is another whenever one
// came or went, or the quota was defined again. Zero before namespaces are known.
func (v View) Selection() uint64 {
	if v.count.namespacesVersion == 0 {
		return 0
	}
	return v.tally.selection
}

// Counted tells up to which resourceVersion each source is included, the
// namespaces among them. A source that hasn't been listed is missing.
func (v View) Counted() map[schema.GroupResource]uint64 {
	counted := map[schema.GroupResource]uint64{}
	if v.count.namespacesVersion > 0 {
		counted[Namespaces] = v.count.namespacesVersion
	}
	for _, sources := range v.tally.target.Sources {
		for _, resource := range sources {
			if source, known := v.count.sources[resource]; known && source.listed {
				counted[resource] = source.version
			}
		}
	}
	return counted
}

// Touched returns for each source, the namespaces among them, the newest version
// that changed the count.
func (v View) Touched() map[schema.GroupResource]uint64 { return maps.Clone(v.tally.touched) }

// Complete reports whether everything that the resource is counted from has been
// listed.
func (v View) Complete(resource corev1.ResourceName) bool {
	counted := v.Counted()
	if _, listed := counted[Namespaces]; !listed {
		return false
	}
	return !slices.ContainsFunc(v.tally.target.Sources[resource], func(source schema.GroupResource) bool {
		_, listed := counted[source]
		return !listed
	})
}

// CompleteNames are the resources that are Complete.
func (v View) CompleteNames() []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range v.tally.target.Sources {
		if v.Complete(name) {
			names = append(names, name)
		}
	}
	return names
}

// Includes reports whether the figures include an object of a UID in a version
// later than the one given (zero: in any), or will never include it, because the
// object is known to be gone or was stored in a namespace that isn't selected any more.
func (v View) Includes(resource schema.GroupResource, namespace, name string, uid types.UID, after uint64) bool {
	source, known := v.count.sources[resource]
	if !known {
		return false
	}
	if source.gone.has(uid) {
		return true
	}
	record, known := source.objects[namespace][name]
	return known && record.uid == uid && (after == 0 || record.version > after)
}

// Limits reports whether the quota limits anything that the objects of a resource
// use.
func (v View) Limits(resource schema.GroupResource) bool {
	return v.tally.target.countedFrom(resource)
}

// Selects reports whether the quota selects a namespace.
func (v View) Selects(namespace string) bool {
	_, selected := v.tally.slices[namespace]
	return selected
}

// Quotas returns the names of all defined quotas, sorted.
func (c *Count) Quotas() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sortedKeys(c.tallies)
}
