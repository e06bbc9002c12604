// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

// Target is a quota as it is counted, with its namespaces.
type Target struct {
	// UID, Generation and Digest identify the spec that was counted for.
	UID        types.UID
	Generation int64
	Digest     string
	// Quota has the limited resources and scopes.
	Quota evaluation.Quota
	// Selector chooses the namespaces.
	Selector definition.Selector
	// Sources are the resources that each limited resource is counted from.
	// resource name -> resources whose objects use it
	Sources map[corev1.ResourceName][]schema.GroupResource
}

// Count holds the records and figures of all quotas. Its methods may be called
// concurrently.
type Count struct {
	evaluators *evaluation.Evaluators
	// changed is called, without the lock, with the quotas that an event touched;
	// freed with those of which it may have freed something.
	changed, freed func(quotas []string)
	// progressed is called like changed, with the quotas whose figures are the same, of a newer version.
	progressed func(quotas []string)
	// unmatched is called, with the lock held, for a resource whose objects can't
	// be matched with a quota.
	unmatched func(quota string, resource schema.GroupResource, err error)

	// mu guards all that follows, and everything in sources and tallies.
	mu sync.Mutex
	// namespace name -> the parts that selectors look at
	namespaces map[string]namespace
	// labelled finds namespaces by their labels.
	labelled definition.Labelled
	// namespacesVersion is the resourceVersion up to which namespaces are known;
	// zero before they have been listed.
	namespacesVersion uint64
	// resource -> source
	sources map[schema.GroupResource]*Source
	// quota name -> tally
	tallies map[string]*tally
	// covering lists the tallies that count a namespace.
	// namespace name -> tallies
	covering map[string][]*tally
	// left are the quotas that a namespace left a while ago. Objects that were
	// admitted for them may be stored in it only now, and then their reservations
	// end. namespace name -> quota name -> when it was noticed; zero for not yet
	left map[string]map[string]time.Time
	// selections is the selection of the tally that changed its last.
	selections uint64
	// touched are the quotas to report once the lock is released, because their figures, or the objects in
	// these, may have changed.
	touched map[string]bool
	// freeing are the touched quotas that use less, or lost an object.
	freeing map[string]bool
	// progressing are the quotas to report besides, because their figures are of a newer version.
	progressing map[string]bool
}

type namespace struct {
	labels, annotations map[string]string
	// version is the resourceVersion of the namespace.
	version uint64
}

// New makes an empty Count. The function changed is called with every quota whose
// figures, or whose settled objects, may have changed, and freed before it with
// the quotas that may have room again; they must not block.
func New(evaluators *evaluation.Evaluators, changed, freed func(quotas []string)) *Count {
	return &Count{
		evaluators: evaluators,
		changed:    changed,
		freed:      freed,
		progressed: changed,
		unmatched:  func(string, schema.GroupResource, error) {},
		namespaces: map[string]namespace{},
		labelled:   definition.NewLabelled(),
		sources:    map[schema.GroupResource]*Source{},
		tallies:    map[string]*tally{},
		covering:   map[string][]*tally{},
		left:       map[string]map[string]time.Time{},
		touched:    map[string]bool{}, freeing: map[string]bool{}, progressing: map[string]bool{},
	}
}

// OnProgress has progressed called in the place of changed for quotas whose figures are only of a newer version. It must not block,
// and must be set before anything is counted.
func (c *Count) OnProgress(progressed func(quotas []string)) { c.progressed = progressed }

// unlock ends a change, and calls the functions freed, changed and progressed for the
// quotas that it concerns.
func (c *Count) unlock() {
	maps.DeleteFunc(c.progressing, func(quota string, _ bool) bool { return c.touched[quota] })
	touched, freeing, progressing := sortedKeys(c.touched), sortedKeys(c.freeing), sortedKeys(c.progressing)
	clear(c.touched)
	clear(c.freeing)
	clear(c.progressing)
	c.mu.Unlock()
	if len(freeing) > 0 {
		c.freed(freeing)
	}
	if len(touched) > 0 {
		c.changed(touched)
	}
	if len(progressing) > 0 {
		c.progressed(progressing)
	}
}

func (c *Count) lockedTouch(tallies ...*tally) {
	for _, tally := range tallies {
		c.touched[tally.target.Quota.Name] = true
	}
}

// lockedTouchIn touches the quotas that an object's event in a namespace may matter to.
func (c *Count) lockedTouchIn(namespace string) {
	c.lockedTouch(c.covering[namespace]...)
	for quota := range c.left[namespace] {
		if tally, defined := c.tallies[quota]; defined {
			c.lockedTouch(tally)
		}
	}
}

func (c *Count) lockedFree(tallies ...*tally) {
	for _, tally := range tallies {
		c.freeing[tally.target.Quota.Name] = true
	}
}

func (c *Count) lockedTouchAll() {
	for _, tally := range c.tallies {
		c.lockedTouch(tally)
	}
}

// Define adds a quota, or replaces its target, and counts it again. All namespaces that are selected join again.
func (c *Count) Define(target Target, now time.Time) {
	c.mu.Lock()
	defer c.unlock()
	before := c.tallies[target.Quota.Name]
	c.lockedForget(target.Quota.Name)
	missed := c.lockedDefine(target, now)
	added := c.tallies[target.Quota.Name]
	if before == nil || before.target.UID != target.UID {
		added.miss(missed)
		return
	}
	added.left = before.left
	added.touch(Namespaces, before.touched[Namespaces])
}

// Forget removes a quota.
func (c *Count) Forget(name string) {
	c.mu.Lock()
	defer c.unlock()
	c.lockedForget(name)
}

func (c *Count) lockedForget(name string) {
	gone, known := c.tallies[name]
	if !known {
		return
	}
	delete(c.tallies, name)
	for namespace := range gone.slices {
		c.lockedUncover(namespace, gone)
	}
}

// lockedDefine begins to count a quota. It returns the newest version of a namespace that isn't selected.
func (c *Count) lockedDefine(target Target, now time.Time) (missed uint64) {
	c.lockedReevaluate(now)
	added := newTally(target)
	added.selection = c.lockedNextSelection()
	added.counting = added.selection
	c.tallies[target.Quota.Name] = added
	c.lockedTouch(added)
	var joining []string
	for name := range c.labelled.Candidates(target.Selector, c.lockedLabels) {
		if added.selects(c.namespaces[name]) {
			joining = append(joining, name)
		}
	}
	joined := sets.New(joining...)
	// Versions are compared in a look at all namespaces, because only labels are costly to look at.
	for name, current := range c.namespaces {
		if current.version > missed && !joined.Has(name) {
			missed = current.version
		}
	}
	// In their order, as if they had joined one after the other.
	slices.SortFunc(joining, func(a, b string) int {
		return cmp.Compare(c.namespaces[a].version, c.namespaces[b].version)
	})
	for _, name := range joining {
		c.lockedSelect(name, c.namespaces[name], added, now)
	}
	return missed
}

// lockedLabels yields all namespaces with their labels.
func (c *Count) lockedLabels(yield func(string, map[string]string) bool) {
	for name, current := range c.namespaces {
		if !yield(name, current.labels) {
			return
		}
	}
}

// lockedSelect adds a namespace to a tally or takes it out, as the selector says.
func (c *Count) lockedSelect(name string, current namespace, tally *tally, now time.Time) {
	_, covered := tally.slices[name]
	switch selected := tally.selects(current); {
	case selected && !covered:
		tally.join(name, current.version, now)
		c.lockedCover(name, tally)
	case covered && !selected:
		c.lockedUncover(name, tally)
		tally.miss(current.version)
	}
}

// lockedCover adds a namespace, and all that lives in it, to a tally.
func (c *Count) lockedCover(namespace string, tally *tally) {
	used := c.lockedUsed(namespace, tally)
	tally.slices[namespace] = used
	tally.selection = c.lockedNextSelection()
	tally.total = quota.Add(tally.total, used)
	c.covering[namespace] = append(c.covering[namespace], tally)
	c.lockedTouch(tally)
}

// lockedUncover takes a namespace out of a tally.
func (c *Count) lockedUncover(namespace string, gone *tally) {
	gone.total = quota.Subtract(gone.total, gone.slices[namespace])
	delete(gone.slices, namespace)
	delete(gone.joins, namespace)
	gone.selection = c.lockedNextSelection()
	c.lockedTouch(gone)
	c.lockedFree(gone)
	if c.left[namespace] == nil {
		c.left[namespace] = map[string]time.Time{}
	}
	c.left[namespace][gone.target.Quota.Name] = time.Time{}
	remaining := slices.DeleteFunc(slices.Clone(c.covering[namespace]), func(t *tally) bool { return t == gone })
	if len(remaining) == 0 {
		delete(c.covering, namespace)
		return
	}
	c.covering[namespace] = remaining
}

func (c *Count) lockedNextSelection() uint64 {
	c.selections++
	return c.selections
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
