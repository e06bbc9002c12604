// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// catchUpWait is how long the watch may take to show the specs that the
	// question names.
	catchUpWait = 100 * time.Millisecond
	// verifiedFor is how long a live read of a namespace serves where the answer
	// rests on it alone. Reading each time would be most of the cost of a storm of
	// refusals.
	verifiedFor = 5 * time.Second
)

// Covered is the result of a Search for one namespace.
type Covered struct {
	// Definitions are the quotas that cover it, sorted by name. They belong to the
	// Memory. One whose Invalid is set can't be charged.
	Definitions []definition.Definition
	// Knowledge says how new that is, for each of them.
	Knowledge []ledger.Knowledge
}

// Of returns the knowledge of one quota's namespaces.
func (c Covered) Of(quota string) ledger.Knowledge {
	return c.Knowledge[slices.IndexFunc(c.Definitions, func(d definition.Definition) bool { return d.Limits.Name == quota })]
}

// Ask makes the ledgers be asked to count the namespaces that joined.
func (c Covered) Ask() {
	for i := range c.Knowledge {
		c.Knowledge[i].Asks = true
	}
}

// Look selects the live reads.
type Look int

const (
	// lookIfOld reads the parts that may be old in memory.
	lookIfOld Look = iota - 1
	// LookNamespace reads the namespace, unless that was done a moment ago.
	LookNamespace
	// LookQuotas also reads the quotas that cover it.
	LookQuotas
	// LookEverywhere also lists all quotas: a quota that no watch has shown may
	// cover it.
	LookEverywhere
)

// Step is the next step to find the quotas that cover a namespace.
type Step int

const (
	// Done: Covered has them.
	Done Step = iota
	// WaitForQuotas waits until all quotas are known up to the question's epoch, or until Search.Until.
	WaitForQuotas
	// ReadNamespace reads the namespace, and calls Search.Found.
	ReadNamespace
	// ReadQuotas reads the quotas of Search.Covered.
	ReadQuotas
	// ListQuotas lists all quotas.
	ListQuotas
)

// Search finds the quotas that cover a namespace. The caller makes each Step until it is Done.
type Search struct {
	memory    *Memory
	question  webhookconfig.Question
	namespace string
	atLeast   uint64
	look      Look
	// known is the state of the namespace that was found.
	known state
	// until is when a wait for quotas ends; caughtUp, once it has.
	until    time.Time
	caughtUp bool
	// read: the namespace was read. That began then, and after a resourceVersion was known.
	read  bool
	began time.Time
	after uint64
	// looked: quotas were read or listed.
	looked bool
}

// Cover searches the quotas that cover a namespace. It answers from memory
// unless something shows that memory is old:
//
//   - the question was generated from specs that have not been seen. They are
//     waited for briefly, and then all quotas are listed;
//   - the quotas that are known to cover the namespace are not the ones that the
//     question's entry was generated for, or no quota is known to cover it. Then
//     the namespace is read, and if that explains nothing, all quotas are listed,
//     once for each version of the namespace and each question. The look's answer
//     wins. While they differ, the namespace is read for each request whose entry
//     names its quotas, and every few seconds for others;
//   - another replica has seen a newer change of namespaces, atLeast. Then the
//     namespace is read.
//
// The result of the read is remembered, so requests whose entry agrees with it
// need no read.
func (m *Memory) Cover(question webhookconfig.Question, namespace string, atLeast uint64) Search {
	return Search{memory: m, question: question, namespace: namespace, atLeast: atLeast, look: lookIfOld}
}

// CoverNow searches the quotas that cover a namespace by a live look. A look of a moment ago serves if the question's
// entry agrees with its result; if not, the namespace may have changed since.
func (m *Memory) CoverNow(question webhookconfig.Question, namespace string, look Look) Search {
	return Search{memory: m, question: question, namespace: namespace, look: look, caughtUp: true}
}

// Covering returns the quotas that cover a namespace: see Memory.Cover.
func (i *Index) Covering(ctx context.Context, question webhookconfig.Question, namespace string, atLeast uint64) (Covered, error) {
	return i.find(ctx, i.Cover(question, namespace, atLeast))
}

// CoveringNow returns the quotas that cover a namespace after a live look, which callers at the same time share: see
// Memory.CoverNow.
func (i *Index) CoveringNow(ctx context.Context, question webhookconfig.Question, namespace string, look Look) (Covered, error) {
	return i.find(ctx, i.CoverNow(question, namespace, look))
}

// find makes the steps of a search.
func (i *Index) find(ctx context.Context, search Search) (Covered, error) {
	for {
		var err error
		switch search.Next(i.clock.Now()) {
		case Done:
			return search.Covered(), nil
		case WaitForQuotas:
			err = i.wait(ctx, &search)
		case ReadNamespace:
			var object *metav1.PartialObjectMetadata
			if object, err = i.namespaceReads.Get(ctx, search.namespace); err == nil && !search.Found(object) {
				err = apierrors.NewNotFound(corev1.Resource("namespaces"), search.namespace)
			}
		case ReadQuotas:
			for _, known := range search.Covered().Definitions {
				if _, err = i.quotaReads.Get(ctx, known.Limits.Name); err != nil {
					return Covered{}, err
				}
			}
		case ListQuotas:
			_, err = i.quotaLists.Get(ctx, "quotas")
		}
		if err != nil {
			return Covered{}, err
		}
	}
}

// wait waits for more to be known of quotas.
func (i *Index) wait(ctx context.Context, search *Search) error {
	grown := i.quotas.grown()
	if i.quotas.seen.Load() >= search.question.Epoch {
		return nil
	}
	timer := i.clock.NewTimer(search.Until().Sub(i.clock.Now()))
	defer timer.Stop()
	select {
	case <-grown:
	case <-timer.C():
	case <-ctx.Done():
		return fmt.Errorf("waiting for the specs of quotas: %w", context.Cause(ctx))
	}
	return nil
}

// Next returns the next step.
func (s *Search) Next(now time.Time) Step {
	if s.until.IsZero() {
		s.until = now.Add(catchUpWait)
	}
	if s.Waits(now) {
		return WaitForQuotas
	}
	if behind := s.isBehind(); !s.caughtUp {
		if s.caughtUp = true; behind {
			return ListQuotas
		}
	}
	if !s.read {
		if s.known = s.memory.namespaces.state(s.namespace, s.question); !s.isEnough(now) {
			s.read, s.began, s.after = true, now, max(s.atLeast, s.memory.namespaces.upTo())
			return ReadNamespace
		}
	}
	return s.nextOfQuotas()
}

func (s *Search) nextOfQuotas() Step {
	next := Done
	switch {
	case s.looked && s.look == lookIfOld:
		s.memory.namespaces.settle(s.namespace, s.known.namespace.version, s.question)
	case s.looked, s.look == LookNamespace:
	case s.look == LookQuotas:
		next = ReadQuotas
	case s.look == LookEverywhere, s.read && !s.known.settled && !s.agrees():
		next = ListQuotas
	}
	s.looked = s.looked || next != Done
	return next
}

// Waits reports whether there is nothing to do but to wait for quotas.
func (s *Search) Waits(now time.Time) bool { return !s.caughtUp && s.isBehind() && now.Before(s.until) }

func (s *Search) isBehind() bool { return s.question.Epoch > s.memory.quotas.seen.Load() }

// Until is when a wait for quotas ends.
func (s *Search) Until() time.Time { return s.until }

// Found takes the namespace that was read. It is as it was when the step was asked for or later, so nothing that
// anybody knew up to atLeast is missing. Found reports false if the watch has shown meanwhile that it is gone.
func (s *Search) Found(object *metav1.PartialObjectMetadata) bool {
	s.known = s.memory.namespaces.merge(object, s.began, s.after, s.question)
	return s.known.namespace != nil
}

// Covered returns the result.
func (s *Search) Covered() Covered {
	known, covering := s.known, s.memory.covering(s.known.namespace)
	found := Covered{Definitions: covering.definitions, Knowledge: make([]ledger.Knowledge, len(covering.joined))}
	for i, joined := range covering.joined {
		// All was read before. So it is at most the version up to which joins are
		// seen.
		found.Knowledge[i] = ledger.Knowledge{Joined: joined.Load(), All: known.all, Seen: known.seen}
		if known.unshown {
			found.Knowledge[i].Joined = max(joined.Load(), known.namespace.version)
		}
	}
	return found
}

// isEnough reports whether memory is enough to answer. If the entry names its quotas, memory is, if it agrees with
// them: no earlier read is enough otherwise, because the namespace may have changed since, and the same entry may ask
// about it again. No other entry shows that the watch of this replica is late. So the namespace must have been read a moment
// ago. If memory disagrees then, the read must have explained why, and the entry must say nothing of its quotas.
func (s *Search) isEnough(now time.Time) bool {
	if s.known.namespace == nil {
		return false
	}
	verified := !s.known.began.IsZero() && now.Sub(s.known.began) < verifiedFor
	if s.look == lookIfOld && s.known.seen < s.atLeast || s.look != lookIfOld && !verified {
		return false
	}
	if s.question.Witness == webhookconfig.WitnessExact {
		return s.agrees()
	}
	return verified && (s.agrees() || !s.question.IsWitness() && s.known.settled)
}

func (s *Search) agrees() bool { return s.memory.covering(s.known.namespace).agrees(s.question) }
