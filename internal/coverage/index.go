// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package coverage

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
	"github.com/sharedquota/shared-quota-operator/internal/sharedread"
)

const (
	// catchUpWait is how long the watch may take to show what the question knows.
	catchUpWait = 100 * time.Millisecond
	// verifiedFor is how long a live read of a namespace serves where the answer
	// rests on it alone. Reading each time would be most of the cost of a storm of
	// refusals.
	verifiedFor = 5 * time.Second
)

// Index knows all quotas, compiled, and all namespaces. Its methods may be called
// concurrently.
type Index struct {
	clock        clock.Clock
	cached, live client.Reader
	synced       func() bool
	quotas       *quotas
	namespaces   *namespaces
	// What is read live is shared by those who need it at the same time, and merged
	// into what is known.
	quotaReads, quotaLists *sharedread.Reads[struct{}]
	namespaceReads         *sharedread.Reads[*metav1.PartialObjectMetadata]
}

// Covered is what is known of a namespace.
type Covered struct {
	// Definitions are the quotas that cover it, sorted by name. They belong to the
	// Index. One whose Invalid is set can't be charged.
	Definitions []definition.Definition
	// Knowledge says how new that is.
	Knowledge ledger.Knowledge
}

// Look says what is read live.
type Look int

const (
	// LookNamespace reads the namespace, unless that was done a moment ago.
	LookNamespace Look = iota
	// LookQuotas also reads the quotas that cover it.
	LookQuotas
	// LookEverywhere also lists all quotas: one that no watch has shown may cover it.
	LookEverywhere
)

// NewIndex makes an Index that follows the caches' ClusterResourceQuotas and
// namespaces. It is empty until they have synced: see Synced.
func NewIndex(ctx context.Context, clock clock.Clock, caches cache.Cache, live client.Reader) (*Index, error) {
	index := &Index{clock: clock, cached: caches, live: live, quotas: newQuotas(), namespaces: newNamespaces()}
	index.quotaReads = sharedread.New("quota", index.readQuota)
	index.quotaLists = sharedread.New("the list of", index.listQuotas)
	index.namespaceReads = sharedread.New("namespace", index.readNamespace)
	quotas, err := follow(ctx, caches, &quotav1.ClusterResourceQuota{}, index.quotas.show, index.quotas.hide)
	if err != nil {
		return nil, fmt.Errorf("following quotas: %w", err)
	}
	namespaces, err := follow(ctx, caches, emptyNamespace(), index.namespaces.show, index.namespaces.hide)
	if err != nil {
		return nil, fmt.Errorf("following namespaces: %w", err)
	}
	index.synced = func() bool { return quotas.HasSynced() && namespaces.HasSynced() }
	return index, nil
}

// follow has a watch shown to two functions.
func follow[T client.Object](
	ctx context.Context, caches cache.Cache, object T, show func(T), hide func(name string, version uint64),
) (toolscache.ResourceEventHandlerRegistration, error) {
	informer, err := caches.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("making the informer: %w", err)
	}
	shows := func(shown any) {
		if object, ok := shown.(T); ok {
			show(object)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    shows,
		UpdateFunc: func(_, shown any) { shows(shown) },
		DeleteFunc: func(shown any) {
			if gone, ok := shown.(toolscache.DeletedFinalStateUnknown); ok {
				shown = gone.Obj
			}
			if object, ok := shown.(T); ok {
				hide(object.GetName(), resourceversion.Parse(object.GetResourceVersion()))
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the handler: %w", err)
	}
	return registration, nil
}

// Synced reports whether the Index knows all quotas and namespaces. Before that
// it must not be asked: a quota that it doesn't know would be passed by.
func (i *Index) Synced() bool { return i.synced() }

// Define returns a quota's definition, which nobody may change. All parts of a process share that of the spec
// that the Index knows.
func (i *Index) Define(object *quotav1.ClusterResourceQuota) definition.Definition {
	return i.quotas.define(object)
}

// SeenQuotas returns the resourceVersion up to which all quotas are known.
func (i *Index) SeenQuotas() uint64 { return i.quotas.seen.Load() }

// SeenNamespaces returns the resourceVersion up to which all namespaces are known.
func (i *Index) SeenNamespaces() uint64 { return i.namespaces.upTo() }

// Covering returns the quotas that cover a namespace. It answers from memory
// unless something shows that memory is old:
//
//   - the question was generated from specs that have not been seen. They are
//     waited for briefly, and then all quotas are listed;
//   - the quotas that are known to cover the namespace are not those that the
//     question's entry was generated for, or nothing is known to cover it. Then the
//     namespace is read, and if that explains nothing, all quotas are listed, once
//     for each version of the namespace and each question. The look's answer wins.
//     While they differ, the namespace is read for each request whose entry names its
//     quotas, and every few seconds for others;
//   - somebody else has seen a newer change of namespaces, atLeast. Then the
//     namespace is read.
//
// What was read is remembered, so that requests whose entry agrees with it need no read.
func (i *Index) Covering(ctx context.Context, question reach.Question, namespace string, atLeast uint64) (Covered, error) {
	if question.Epoch > i.SeenQuotas() {
		if err := i.catchUp(ctx, question.Epoch); err != nil {
			return Covered{}, err
		}
	}
	known := i.namespaces.state(namespace, question)
	if known.namespace == nil || known.seen < atLeast || !i.isSettled(known, question) {
		var err error
		if known, err = i.look(ctx, question, namespace, atLeast); err != nil {
			return Covered{}, err
		}
	}
	return i.covered(known), nil
}

// Known returns the quotas that are known to cover a namespace, from memory alone: it neither waits nor
// reads, and nothing may be granted by it. It reports whether the namespace is known.
func (i *Index) Known(namespace string) (Covered, bool) {
	if !i.Synced() {
		return Covered{}, false
	}
	known := i.namespaces.state(namespace, reach.Question{})
	if known.namespace == nil {
		return Covered{}, false
	}
	return i.covered(known), true
}

// look reads the namespace and, if that doesn't explain why the question's entry
// disagrees and nobody has looked for it before, lists all quotas.
func (i *Index) look(ctx context.Context, question reach.Question, namespace string, atLeast uint64) (state, error) {
	known, err := i.lookAtNamespace(ctx, question, namespace, atLeast)
	if err != nil || known.settled || i.covering(known.namespace).agrees(question) {
		return known, err
	}
	if err := i.listAll(ctx); err != nil {
		return state{}, err
	}
	i.namespaces.settle(namespace, known.namespace.version, question)
	return known, nil
}

// isSettled reports whether memory is enough to answer: the question's entry agrees with it, or a live read
// of a moment ago found why not. If the entry says anything about its quotas, no earlier read is enough,
// because the namespace may have changed since, and the same entry may ask about it again.
func (i *Index) isSettled(known state, question reach.Question) bool {
	return i.covering(known.namespace).agrees(question) ||
		!question.IsWitness() && known.settled && i.isVerified(known)
}

func (i *Index) isVerified(known state) bool {
	return known.namespace != nil && !known.began.IsZero() && i.clock.Since(known.began) < verifiedFor
}

// CoveringNow returns the quotas that cover a namespace after a live look, which
// callers at the same time share. A look of a moment ago serves if the question's entry
// agrees with what it found; if not, the namespace may have changed since.
func (i *Index) CoveringNow(ctx context.Context, question reach.Question, namespace string, look Look) (Covered, error) {
	known := i.namespaces.state(namespace, question)
	if !i.isVerified(known) || !i.isSettled(known, question) {
		var err error
		if known, err = i.lookAtNamespace(ctx, question, namespace, 0); err != nil {
			return Covered{}, err
		}
	}
	if err := i.lookAtQuotas(ctx, known.namespace, look); err != nil {
		return Covered{}, err
	}
	return i.covered(known), nil
}

func (i *Index) covered(known state) Covered {
	return Covered{
		Definitions: i.covering(known.namespace).definitions,
		Knowledge:   ledger.Knowledge{Namespace: known.namespace.version, Seen: known.seen},
	}
}

// covering returns the quotas that cover a version of a namespace. They are found
// again only if a quota's spec has changed.
func (i *Index) covering(namespace *namespace) *covering {
	found := namespace.covered.Load()
	if found == nil || found.edition != i.quotas.edition.Load() {
		found = i.quotas.covering(namespace.labels, namespace.annotations)
		namespace.covered.Store(found)
	}
	return found
}
