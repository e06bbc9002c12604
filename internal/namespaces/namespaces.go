// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// maxLooks bounds the live reads that are remembered.
	maxLooks = 10000
	// maxSettled bounds the questions that are remembered with each.
	maxSettled = 8
)

// namespaces are all namespaces that a watch has shown, and the results of live
// reads of some of them.
type namespaces struct {
	// synced: a watch has shown them all.
	synced atomic.Bool

	// quotas are notified of namespaces that join them.
	quotas *quotas

	// mu guards the fields below.
	mu *sync.RWMutex
	// seen is the resourceVersion up to which the watch has shown everything.
	seen uint64
	// namespace name -> the newest version that the watch has shown
	shown map[string]*namespace
	// labelled finds those by their labels.
	labelled definition.Labelled
	// namespace name -> the result of live reads. Its version is at least as new
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

// labelsOf returns the labels; none of a namespace that isn't known.
func (n *namespace) labelsOf() map[string]string {
	if n == nil {
		return nil
	}
	return n.labels
}

// look is the result of live reads of a namespace.
type look struct {
	namespace *namespace
	// upTo is a resourceVersion that was known before some read of this version began: the read misses no change up to
	// it.
	upTo uint64
	// began is when the last read began that found this version, or an older one.
	began time.Time
	// settled are the questions that this version was looked at for.
	settled []webhookconfig.Question
}

// state is the memory of one namespace.
type state struct {
	// namespace is its newest version; nil if none is known.
	namespace *namespace
	// seen is the resourceVersion up to which changes of it are known, and all up to which those of all are.
	seen, all uint64
	// unshown: no watch has shown this version. The namespace may have left its quotas and come back since the shown
	// version.
	unshown bool
	// began is when a live read began that found this version; zero without one.
	began time.Time
	// settled: this version was looked at for the question.
	settled bool
}

// show takes a namespace from the watch.
func (n *namespaces) show(object *metav1.PartialObjectMetadata) {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := namespaceOf(object)
	n.lockedShow(object.Name, next, n.shown[object.Name])
	n.seen = max(n.seen, next.version)
}

// hide takes the deletion that the watch shows.
func (n *namespaces) hide(name string, version uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lockedHide(name, version)
	n.seen = max(n.seen, version)
}

// replace takes the list that the watch begins with. All is known up to its version only once all of it is taken.
func (n *namespaces) replace(list []*metav1.PartialObjectMetadata, version uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	exist := make(map[string]bool, len(list))
	for _, object := range list {
		n.lockedShow(object.Name, namespaceOf(object), nil) // it may have left and come back meanwhile
		exist[object.Name] = true
	}
	for _, names := range []iter.Seq[string]{maps.Keys(n.shown), maps.Keys(n.looks)} {
		for name := range names {
			if !exist[name] {
				n.lockedHide(name, version)
			}
		}
	}
	n.seen = max(n.seen, version)
	n.synced.Store(true)
}

// see takes it that the watch has shown everything up to a version.
func (n *namespaces) see(version uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = max(n.seen, version)
}

// lockedShow takes a version of a namespace, the first after another one; nil if versions between them are unknown.
func (n *namespaces) lockedShow(name string, next, before *namespace) {
	if known := n.shown[name]; known == nil || known.version < next.version {
		n.quotas.lockedJoin(before, next)
		n.labelled.Change(name, known.labelsOf(), next.labels)
		n.shown[name] = next
	}
	n.lockedDrop(name, func(found uint64) bool { return found < next.version })
}

// lockedNewest returns the newest version of a namespace that a selector selects.
func (n *namespaces) lockedNewest(selector definition.Selector) uint64 {
	newest := uint64(0)
	for name := range n.labelled.Candidates(selector, n.lockedLabels) {
		if known := n.shown[name]; known.version > newest && selector.Matches(known.labels, known.annotations) {
			newest = known.version
		}
	}
	return newest
}

// lockedLabels yields all namespaces that are shown, with their labels.
func (n *namespaces) lockedLabels(yield func(string, map[string]string) bool) {
	for name, known := range n.shown {
		if !yield(name, known.labels) {
			return
		}
	}
}

func (n *namespaces) lockedHide(name string, version uint64) {
	if known := n.shown[name]; known != nil && known.version <= version {
		n.labelled.Change(name, known.labels, nil)
		delete(n.shown, name)
	}
	n.lockedDrop(name, func(found uint64) bool { return found <= version })
}

func (n *namespaces) lockedDrop(name string, outdated func(found uint64) bool) {
	if look := n.looks[name]; look != nil && outdated(look.namespace.version) {
		delete(n.looks, name)
	}
}

// merge takes a namespace that was read live, and returns its state now. The read
// began at this time, and after a resourceVersion was known.
func (n *namespaces) merge(
	object *metav1.PartialObjectMetadata, began time.Time, after uint64, question webhookconfig.Question,
) state {
	found := namespaceOf(object)
	n.mu.Lock()
	defer n.mu.Unlock()
	// If the watch has overtaken the read, it has overtaken the resourceVersion
	// that the read began after.
	known := n.shown[object.Name]
	if known != nil && known.version <= found.version || known == nil && n.seen < found.version {
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
func (n *namespaces) settle(name string, version uint64, question webhookconfig.Question) {
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

// state returns the memory of a namespace.
func (n *namespaces) state(name string, question webhookconfig.Question) state {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.lockedState(name, question)
}

func (n *namespaces) lockedState(name string, question webhookconfig.Question) state {
	shown := n.shown[name]
	known := state{namespace: shown, seen: n.seen, all: n.seen}
	if look := n.looks[name]; look != nil {
		known.unshown = shown == nil || shown.version < look.namespace.version
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

// selected returns the names of the namespaces that the watch has shown and that a function selects, sorted.
func (n *namespaces) selected(selects func(labels, annotations map[string]string) bool) []string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	var names []string
	for name, known := range n.shown {
		if selects(known.labels, known.annotations) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func namespaceOf(object *metav1.PartialObjectMetadata) *namespace {
	return &namespace{
		version: ledger.ParseVersion(object.ResourceVersion),
		labels:  object.Labels, annotations: object.Annotations,
	}
}
