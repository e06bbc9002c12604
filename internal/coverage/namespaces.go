// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

const (
	// maxLooks bounds the live reads that are remembered.
	maxLooks = 10000
	// maxSettled bounds the questions that are remembered with each.
	maxSettled = 8
)

// namespaces are all namespaces that a watch has shown, and what live reads have
// found of some of them.
type namespaces struct {
	// mu guards what follows.
	mu sync.RWMutex
	// seen is the newest resourceVersion that the watch has shown.
	seen uint64
	// namespace name -> the newest version that the watch has shown
	shown map[string]*namespace
	// namespace name -> what live reads have found. Its version is at least as new
	// as the one shown: an older one is of no use.
	looks map[string]*look
}

// namespace is one version of a namespace. It doesn't change, but for the quotas
// that cover it.
type namespace struct {
	version             uint64
	labels, annotations map[string]string
	// covered are the quotas that covered it when it was last asked about.
	covered atomic.Pointer[covering]
}

// look is what live reads have found of a namespace.
type look struct {
	namespace *namespace
	// upTo is a resourceVersion that was known before some read of it began: no change up to that one is
	// missing in what the read found.
	upTo uint64
	// began is when the last read began that found this version, or an older one.
	began time.Time
	// settled are the questions that this version was looked at for.
	settled []reach.Question
}

// state is what is known of one namespace.
type state struct {
	// namespace is its newest version; nil if none is known.
	namespace *namespace
	// seen is the resourceVersion up to which changes of it are known.
	seen uint64
	// began is when a live read began that found this version; zero without one.
	began time.Time
	// settled: this version was looked at for the question.
	settled bool
}

func newNamespaces() *namespaces {
	return &namespaces{shown: map[string]*namespace{}, looks: map[string]*look{}}
}

// show takes what the watch shows.
func (n *namespaces) show(object *metav1.PartialObjectMetadata) {
	next := namespaceOf(object)
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.shown[object.Name]; known == nil || known.version < next.version {
		n.shown[object.Name] = next
	}
	n.lockedDrop(object.Name, func(found uint64) bool { return found < next.version })
	n.seen = max(n.seen, next.version)
}

// hide takes the deletion that the watch shows: of the namespace's last version
// that the watch knows, or of the version that the deletion is.
func (n *namespaces) hide(name string, version uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.shown[name]; known != nil && known.version <= version {
		delete(n.shown, name)
	}
	n.lockedDrop(name, func(found uint64) bool { return found <= version })
	n.seen = max(n.seen, version)
}

func (n *namespaces) lockedDrop(name string, outdated func(found uint64) bool) {
	if look := n.looks[name]; look != nil && outdated(look.namespace.version) {
		delete(n.looks, name)
	}
}

// merge takes a namespace that was read live, and returns what is known of it
// now. The read began at this time, and after a resourceVersion was known.
func (n *namespaces) merge(
	object *metav1.PartialObjectMetadata, began time.Time, after uint64, question reach.Question,
) state {
	found := namespaceOf(object)
	n.mu.Lock()
	defer n.mu.Unlock()
	// If the watch has overtaken the read, it has overtaken what the read began after.
	if known := n.shown[object.Name]; known == nil || known.version <= found.version {
		n.lockedMerge(object.Name, found, began, after)
	}
	return n.lockedState(object.Name, question)
}

func (n *namespaces) lockedMerge(name string, found *namespace, began time.Time, after uint64) {
	known := n.looks[name]
	switch {
	case known == nil:
		if len(n.looks) >= maxLooks {
			clear(n.looks) // They are read again, no more.
		}
		known = &look{namespace: found}
		n.looks[name] = known
	case known.namespace.version < found.version:
		known.namespace, known.settled = found, nil
	}
	known.upTo = max(known.upTo, after, found.version)
	if began.After(known.began) {
		known.began = began
	}
}

// settle remembers that a version of a namespace was looked at for a question.
func (n *namespaces) settle(name string, version uint64, question reach.Question) {
	n.mu.Lock()
	defer n.mu.Unlock()
	look := n.looks[name]
	if look == nil || look.namespace.version != version || slices.Contains(look.settled, question) {
		return
	}
	if len(look.settled) >= maxSettled {
		look.settled = nil
	}
	look.settled = append(look.settled, question)
}

// state returns what is known of a namespace.
func (n *namespaces) state(name string, question reach.Question) state {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.lockedState(name, question)
}

func (n *namespaces) lockedState(name string, question reach.Question) state {
	known := state{namespace: n.shown[name], seen: n.seen}
	if look := n.looks[name]; look != nil {
		known.namespace, known.seen, known.began = look.namespace, max(n.seen, look.upTo), look.began
		known.settled = slices.Contains(look.settled, question)
	}
	return known
}

// upTo returns the newest resourceVersion that the watch has shown.
func (n *namespaces) upTo() uint64 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.seen
}

func namespaceOf(object *metav1.PartialObjectMetadata) *namespace {
	return &namespace{
		version: resourceversion.Parse(object.ResourceVersion),
		labels:  object.Labels, annotations: object.Annotations,
	}
}
