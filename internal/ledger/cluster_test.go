// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	podResource       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	claimResource     = schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}
	namespaceResource = schema.GroupResource{Resource: "namespaces"}
)

const (
	podCount   corev1.ResourceName = "pods"
	claimCount corev1.ResourceName = "count/resourceclaims.resource.k8s.io"
	devices    corev1.ResourceName = "requests.example.com/gpu"
)

// sourcesOfModel: devices are used by pods and by claims.
func sourcesOfModel() map[corev1.ResourceName][]schema.GroupResource {
	pods, claims := podResource.GroupResource(), claimResource.GroupResource()
	return map[corev1.ResourceName][]schema.GroupResource{
		podCount: {pods}, claimCount: {claims}, devices: {pods, claims},
	}
}

// figures are amounts that can be compared and added without thought.
type figures map[corev1.ResourceName]int64

func (f figures) add(other figures) {
	for name, amount := range other {
		f[name] += amount
	}
}

// list leaves out zeros, as a charge does.
func (f figures) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range f {
		if amount != 0 {
			list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
	}
	return list
}

func figuresOf(list corev1.ResourceList) figures {
	figures := figures{}
	for name, quantity := range list {
		figures[name] = quantity.Value()
	}
	return figures
}

// place is where one object at a time can live.
type place struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// thing is an object at one version.
type thing struct {
	uid     types.UID
	version uint64
	devices int64
}

func (p place) usage(current thing) figures {
	if p.resource == podResource {
		return figures{podCount: 1, devices: current.devices}
	}
	return figures{claimCount: 1, devices: current.devices}
}

// write is one entry of the cluster's history.
type write struct {
	place
	thing
	// deleted: the thing went with this write.
	deleted bool
}

// cluster is the API server: the living objects, and their history.
type cluster struct {
	version uint64
	living  map[place]thing
	history []write
	// namespace -> version at which it was created
	namespaces map[string]uint64
	uids       int
}

func newCluster() *cluster {
	return &cluster{version: 1, living: map[place]thing{}, namespaces: map[string]uint64{"old": 1}}
}

func (c *cluster) next() uint64 {
	c.version++
	return c.version
}

func (c *cluster) newUID() types.UID {
	c.uids++
	return types.UID(fmt.Sprintf("uid%d", c.uids))
}

func (c *cluster) put(at place, current thing) {
	current.version = c.next()
	c.living[at] = current
	c.history = append(c.history, write{place: at, thing: current})
}

func (c *cluster) remove(at place) {
	gone := c.living[at]
	gone.version = c.next()
	delete(c.living, at)
	c.history = append(c.history, write{place: at, thing: gone, deleted: true})
}

// versionsOf returns every version of the things that lived at a place.
func (c *cluster) versionsOf(at place) []thing {
	var versions []thing
	for _, write := range c.history {
		if write.place == at && !write.deleted {
			versions = append(versions, write.thing)
		}
	}
	return versions
}

// uses is the sum of living objects.
func (c *cluster) uses() figures {
	total := figures{podCount: 0, claimCount: 0, devices: 0}
	for at, current := range c.living {
		total.add(at.usage(current))
	}
	return total
}
