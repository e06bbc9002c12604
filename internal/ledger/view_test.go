// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// view is one process's view of the cluster: each source up to a version of its
// own, or not at all.
type view struct {
	// resource -> version; a source that is missing hasn't been listed
	upTo map[schema.GroupResource]uint64
	// since is when the process began to watch: it can't know of earlier
	// deletions.
	since uint64
}

// sight is a view with all that must be seen in it.
type sight struct {
	view
	objects  map[place]thing
	gone     map[types.UID]bool
	selected map[string]bool
	joined   uint64 // the newest version of a namespace that is selected
}

func (c *cluster) see(v view) sight {
	seen := sight{view: v, objects: map[place]thing{}, gone: map[types.UID]bool{}, selected: map[string]bool{}}
	for name, created := range c.namespaces {
		if seen.selected[name] = created <= v.upTo[namespaceResource]; seen.selected[name] {
			seen.joined = max(seen.joined, created)
		}
	}
	for _, write := range c.history {
		seen.take(write)
	}
	return seen
}

func (s sight) take(write write) {
	upTo, listed := s.upTo[write.resource.GroupResource()]
	if !listed || write.version > upTo {
		return
	}
	if !write.deleted {
		s.objects[write.place] = write.thing
		return
	}
	delete(s.objects, write.place)
	if write.version > s.since {
		s.gone[write.uid] = true
	}
}

func (s sight) used() corev1.ResourceList {
	total := figures{}
	for at, current := range s.objects {
		if s.selected[at.namespace] {
			total.add(at.usage(current))
		}
	}
	list := corev1.ResourceList{}
	for name := range sourcesOfModel() {
		list[name] = *resource.NewQuantity(total[name], resource.DecimalSI)
	}
	return list
}

// settles is the count's answer: the object is included in a version that settles
// the reservation, or is known to be gone.
func (s sight) settles(held Reservation) bool {
	if s.gone[held.UID] {
		return true
	}
	at := place{resource: held.Resource, namespace: held.Namespace, name: held.Name}
	current, known := s.objects[at]
	return known && s.selected[held.Namespace] && current.uid == held.UID && current.version > startedFrom(held)
}

func (s sight) observation(basis Basis) Observation {
	return Observation{
		Basis: basis, Used: s.used(), Sources: sourcesOfModel(), Counted: s.upTo,
		Touched: s.upTo, Joined: s.joined, Seen: s.settles,
	}
}

func startedFrom(held Reservation) uint64 {
	version, _ := strconv.ParseUint(held.From, 10, 64)
	return version
}

// complete is the view of a process that has seen everything.
func (c *cluster) complete() view {
	return view{upTo: map[schema.GroupResource]uint64{
		namespaceResource: c.version, podResource.GroupResource(): c.version, claimResource.GroupResource(): c.version,
	}}
}

// there is the live look: whether the write that a reservation is for happened.
func (c *cluster) there(held Reservation) bool {
	current, known := c.living[place{resource: held.Resource, namespace: held.Namespace, name: held.Name}]
	return known && current.uid == held.UID && current.version > startedFrom(held)
}
