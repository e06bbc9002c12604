// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quota "k8s.io/apiserver/pkg/quota/v1"
)

// Testimony is what is known of requests beyond their commits. A zero time is one that
// nobody knows.
type Testimony struct {
	// Sent returns when the request behind a commit of an object was sent, and by when
	// it was answered.
	Sent func(Change) (sent, answered time.Time)
	// InForce returns from when on an edit binds: a namespace's new labels and a lowered
	// limit from when the edit was answered, a new quota from when it said that it is
	// enforced.
	InForce func(Change) time.Time
	// Learned returns by when the leader must have learned of what was committed by then.
	Learned func(time.Time) time.Time
	// Asked tells whether the API server asked anybody about the request behind a commit;
	// true if nobody knows.
	Asked func(Change) bool
	// Unchecked tells whether a quota held nothing for the request behind a commit, and lets
	// requests pass that nobody can decide. It may be nil: then no quota does that.
	Unchecked func(quota string, change Change) bool
}

// The API server chooses whom it asks by a watch of namespaces of its own. It was seen to
// be two seconds late where all cores were busy.
const (
	// askedLag is for how long it may still ask about a namespace that has joined, but by
	// the labels of before: it named other quotas, and nobody else knew of the change.
	askedLag = 2 * time.Second
	// unaskedLag is for how long it may ask nobody.
	unaskedLag = 5 * time.Second
)

// Exception is why a commit above the limit is no violation.
type Exception string

// The exceptions. Each is for one commit and is bounded: by what was under way while an
// edit was answered, or by what came without having been asked about.
const (
	// InFlight: the request was sent before the edit was answered by which it is judged.
	// It may have been admitted before that edit.
	InFlight Exception = "sent before the edit was answered"
	// Unlearned: without what came under the quota without a question, and what the leader
	// need not have learned of when the request was sent, the sum is not above the limit.
	// What a namespace brought along excuses nothing that is created in that namespace: a
	// request there is judged only by a count that has it.
	Unlearned Exception = "sent before the leader had learned of what nobody was asked about"
	// Followed: the request was sent so soon after its namespace had joined that the API
	// server may have gone by the labels of before, and asked about other quotas.
	Followed Exception = "sent to a namespace whose labels had changed a moment ago"
	// Unasked: the same for somewhat longer, where the API server asked nobody at all.
	Unasked Exception = "sent to a namespace that had just joined, and the API server asked nobody"
	// Undecided: nobody could decide, and the quota lets such requests pass.
	Undecided Exception = "let pass by the quota because nobody could decide"
)

// Unexcused returns the violations in the history of one quota that no exception is for,
// and how many commits each exception excuses. A violation is what it is elsewhere: an
// object's commit that raised a resource, the sum after it being above what is allowed.
//
// An edit of which nothing is known is in force with its commit, and a request of which
// nothing is known was sent last of all.
func (t Testimony) Unexcused(name string, history []Change) (violations []Violation, excused map[Exception]int) {
	trial := trial{Testimony: t, quota: name, excused: map[Exception]int{}}
	for _, change := range history {
		switch change.Cause {
		case Terms:
			trial.setTerms(change)
		case Joined:
			trial.join(change)
		case Object:
			trial.try(change)
		case Left:
			delete(trial.joined, change.Namespace)
		case Gone:
			trial.terms = terms{}
		}
	}
	return trial.found, trial.excused
}

// trial goes through the history of one quota.
type trial struct {
	Testimony

	quota   string
	found   []Violation
	excused map[Exception]int
	terms
}

// terms are what one quota is judged by, from its creation on.
type terms struct {
	hard, enforced corev1.ResourceList
	// limited says of resources from when on they are limited at all, and lowered from
	// when on their limit is what it is now, or higher.
	limited, lowered map[corev1.ResourceName]time.Time
	// joined says of namespaces from when on they are selected.
	joined map[string]time.Time
	// arrivals are what came without a question.
	arrivals []arrival
}

// arrival is what came under a quota without a question.
type arrival struct {
	amounts corev1.ResourceList
	// with is the namespace that brought it along; empty for an object that was under way.
	with    string
	learned time.Time
}

// setTerms takes in what the quota allows from now on. A limit that rises excuses nothing. One that begins to
// be enforced counts as lowered, because the quota was asked before, too.
func (t *trial) setTerms(change Change) {
	if t.hard == nil {
		t.terms = terms{
			limited: map[corev1.ResourceName]time.Time{}, lowered: map[corev1.ResourceName]time.Time{},
			joined: map[string]time.Time{},
		}
	}
	for name, limit := range change.Hard {
		earlier, limited := t.hard[name]
		_, before := t.enforced[name]
		switch _, now := change.Enforced[name]; {
		case !limited:
			t.limited[name] = t.InForce(change)
		case limit.Cmp(earlier) < 0, now && !before:
			t.lowered[name] = t.InForce(change)
		}
	}
	t.hard, t.enforced = change.Hard, change.Enforced
}

func (t *trial) join(change Change) {
	if t.hard == nil {
		return // The quota was there before the history.
	}
	since := t.InForce(change)
	t.joined[change.Namespace] = since
	if !since.IsZero() {
		t.arrivals = append(t.arrivals, arrival{amounts: change.By, with: change.Namespace, learned: t.Learned(since)})
	}
}

// try judges an object's commit.
func (t *trial) try(change Change) {
	raised := raised(change.By)
	if len(raised) == 0 {
		return
	}
	sent, answered := t.Sent(change)
	if _, lagged := t.lagged(change, sent); lagged || t.unasked(change, sent) || t.unchecked(change) {
		t.arrivals = append(t.arrivals, arrival{amounts: raised, learned: t.Learned(answered)})
	}
	for _, name := range sortedNames(raised) {
		lives := change.Lives[name]
		limit, enforced := change.Enforced[name]
		if !enforced || lives.Cmp(limit) <= 0 {
			continue
		}
		if exception, excused := t.exception(change, name, sent); excused {
			t.excused[exception]++
			continue
		}
		t.found = append(t.found, Violation{
			Quota: t.quota, Revision: change.Revision, Key: change.Key, Resource: name, Lives: lives, Hard: limit,
		})
	}
}

// lagged tells whether the API server may not have known yet, when it asked about a
// request, that its namespace had joined.
func (t *trial) lagged(change Change, sent time.Time) (Exception, bool) {
	joined := t.joined[change.Namespace]
	switch {
	case joined.IsZero():
		return "", false
	case before(sent, joined.Add(askedLag)):
		return Followed, true
	default:
		return Unasked, before(sent, joined.Add(unaskedLag)) && !t.Asked(change)
	}
}

func (t *trial) unchecked(change Change) bool {
	return t.Unchecked != nil && t.Unchecked(t.quota, change)
}

// unasked tells whether the quota may not have been asked about a request: its namespace
// had not joined when it was sent, or the quota was new. A limit that is lowered was asked
// about it all the same.
func (t *trial) unasked(change Change, sent time.Time) bool {
	if before(sent, t.joined[change.Namespace]) {
		return true
	}
	return slices.ContainsFunc(sortedNames(raised(change.By)), func(name corev1.ResourceName) bool {
		return before(sent, t.limited[name])
	})
}

func (t *trial) exception(change Change, name corev1.ResourceName, sent time.Time) (Exception, bool) {
	if before(sent, t.joined[change.Namespace]) || before(sent, t.limited[name]) || before(sent, t.lowered[name]) {
		return InFlight, true
	}
	if exception, lagged := t.lagged(change, sent); lagged {
		return exception, true
	}
	if t.unchecked(change) {
		return Undecided, true
	}
	excess := change.Lives[name].DeepCopy()
	excess.Sub(change.Enforced[name])
	if unlearned := t.unlearned(change.Namespace, name, sent); excess.Cmp(unlearned) <= 0 {
		return Unlearned, true
	}
	return "", false
}

// unlearned is how much of a resource came without a question and without the leader's
// knowledge, for a request in a namespace.
func (t *trial) unlearned(namespace string, name corev1.ResourceName, sent time.Time) resource.Quantity {
	var sum resource.Quantity
	for _, came := range t.arrivals {
		if came.with != namespace && before(sent, came.learned) {
			sum.Add(came.amounts[name])
		}
	}
	return sum
}

// before tells whether both times are known and in this order.
func before(one, other time.Time) bool {
	return !one.IsZero() && one.Before(other)
}

// raised returns what rose.
func raised(change corev1.ResourceList) corev1.ResourceList {
	return quota.RemoveZeros(quota.Max(change, quota.Subtract(change, change)))
}
