// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

var gadgets = schema.GroupResource{Group: "example.com", Resource: "gadgets"}

// cluster is an API server's objects and resources of gadgets, which live in
// namespace a of team red.
type cluster struct {
	mu sync.Mutex
	// versions in which gadgets are served, the preferred one first.
	versions []string
	// scope is how they are served.
	scope meta.RESTScopeName
	// failing is how discovery fails; hanging that it never answers.
	failing error
	hanging bool
	// listing is how long a list of gadgets takes after it was read; forbidden that it fails.
	listing   time.Duration
	forbidden bool
	// name -> object
	objects map[string]metav1.PartialObjectMetadata
	// hidden are the objects that watches haven't been told of.
	hidden []metav1.PartialObjectMetadata
	// at is the newest resourceVersion.
	at int
	// watches that are open. Each ends when its version is no longer served.
	watches map[*watch.RaceFreeFakeWatcher]string
	// discoveries and lists were asked for so often; version -> number.
	discoveries int
	lists       map[string]int
}

func newCluster(versions ...string) *cluster {
	return &cluster{
		versions: versions, scope: meta.RESTScopeNameNamespace, at: 10,
		objects: map[string]metav1.PartialObjectMetadata{},
		watches: map[*watch.RaceFreeFakeWatcher]string{},
		lists:   map[string]int{},
	}
}

func (c *cluster) events() EventSource {
	return EventSource{Objects: fake.NewSimpleClientset(), Metadata: metadataOf{c}}
}

// Find implements Discovery.
func (c *cluster) Find(ctx context.Context, resource schema.GroupResource) (Served, error) {
	c.mu.Lock()
	c.discoveries++
	hanging, failing, versions, scope := c.hanging, c.failing, slices.Clone(c.versions), c.scope
	c.mu.Unlock()
	if hanging {
		<-ctx.Done()
		return Served{}, ctx.Err()
	}
	if failing != nil || resource != gadgets || len(versions) == 0 {
		return Served{}, failing
	}
	return Served{Versions: versions, Namespaced: scope == meta.RESTScopeNameNamespace}, nil
}

// set changes the cluster.
func (c *cluster) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// serve serves gadgets in these versions alone.
func (c *cluster) serve(versions ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.versions = versions
	maps.DeleteFunc(c.watches, func(watcher *watch.RaceFreeFakeWatcher, version string) bool {
		gone := !slices.Contains(versions, version)
		if gone {
			watcher.Stop()
		}
		return gone
	})
}

// create stores a gadget, and tells all watches of it.
func (c *cluster) create(name string) {
	c.hide("a", name)
	c.show()
}

// hide stores a gadget in a namespace, of which the watches are told later.
func (c *cluster) hide(namespace, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at++
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(c.at),
	}}
	c.objects[name] = object
	c.hidden = append(c.hidden, object)
}

// show sends all watches the hidden events.
func (c *cluster) show() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range c.hidden {
		for watcher := range c.watches {
			watcher.Add(object.DeepCopy())
		}
	}
	c.hidden = nil
}

// asked returns how often discovery was asked, and how often a list in each
// version, since the last call.
func (c *cluster) asked() (discoveries int, lists map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	discoveries, lists = c.discoveries, c.lists
	c.discoveries, c.lists = 0, map[string]int{}
	return discoveries, lists
}

// metadataOf is a client of a cluster.
type metadataOf struct{ cluster *cluster }

func (m metadataOf) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return metadataIn{cluster: m.cluster, resource: resource}
}

// metadataIn reads one resource. The other methods are never called.
type metadataIn struct {
	metadata.Getter
	cluster  *cluster
	resource schema.GroupVersionResource
	// namespace is empty for all.
	namespace string
}

func (m metadataIn) Namespace(namespace string) metadata.ResourceInterface {
	m.namespace = namespace
	return m
}

func (m metadataIn) List(_ context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, takes, err := m.list(options)
	clock.RealClock{}.Sleep(takes)
	return list, err
}

func (m metadataIn) list(options metav1.ListOptions) (*metav1.PartialObjectMetadataList, time.Duration, error) {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(c.at)}}
	if m.resource == namespacesResource() {
		list.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{"team": "red"}, ResourceVersion: "1",
		}}}
		return list, 0, nil
	}
	c.lists[m.resource.Version]++
	if c.forbidden {
		return nil, 0, apierrors.NewForbidden(gadgets, "", nil)
	}
	if err := m.lockedServed(); err != nil {
		return nil, 0, err
	}
	selector, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return nil, 0, err
	}
	for name, object := range c.objects {
		if selector.Matches(fields.Set{metav1.ObjectNameField: name}) && (m.namespace == "" || m.namespace == object.Namespace) {
			list.Items = append(list.Items, object)
		}
	}
	return list, c.listing, nil
}

func (m metadataIn) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.resource == namespacesResource() {
		if options.SendInitialEvents != nil {
			return nil, errNotStreamed()
		}
		return watch.NewFake(), nil
	}
	if err := m.lockedServed(); err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil {
		return nil, errNotStreamed()
	}
	watcher := watch.NewRaceFreeFake()
	c.watches[watcher] = m.resource.Version
	return watcher, nil
}

// errNotStreamed is how an API server answers that doesn't stream lists.
func errNotStreamed() error {
	return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
}

func (m metadataIn) lockedServed() error {
	if m.resource.GroupResource() == gadgets && slices.Contains(m.cluster.versions, m.resource.Version) {
		return nil
	}
	return apierrors.NewGenericServerResponse(404, "list", m.resource.GroupResource(), "", "", 0, true)
}
