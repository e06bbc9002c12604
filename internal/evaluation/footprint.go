// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"fmt"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
)

// Footprint is the count's memory of an object. It is enough to compute the
// object's use of any quota, also after the quota's spec changes. The zero
// Footprint uses nothing.
//
// It is small, three pointers to lists that are mostly shared with other
// footprints, and comparable: equal footprints use the same. The footprint of a
// ResourceClaim holds for the device classes and the pod of the moment that it
// was taken.
type Footprint struct {
	// usage is the object's whole use, independently of quotas' limits.
	usage *sharedList
	facts unique.Handle[scopeFacts]
	// change is the effect of time alone; nil for none, as mostly. Apart, it
	// makes the footprint 24 bytes instead of 48.
	change *change
}

// change is a usage that another one takes the place of.
type change struct {
	// at is when, by the clock of the API server that took the deletion, and after is how long after it took it.
	at    time.Time
	after time.Duration
	later *sharedList
}

// ChangesAt returns the first moment at which the object uses something else
// than before by time alone, and whether there is one: a pod that is being
// deleted stops counting when its grace period is over.
func (f Footprint) ChangesAt() (time.Time, bool) {
	if f.change == nil {
		return time.Time{}, false
	}
	return f.change.at, true
}

// ChangesAfter returns ChangesAt as the time since the deletion began, for processes that have no clock in common with
// the API server.
func (f Footprint) ChangesAfter() (time.Duration, bool) {
	if f.change == nil {
		return 0, false
	}
	return f.change.after, true
}

// Changed returns the footprint after the effect of time, or before. It no longer changes with time.
func (f Footprint) Changed(already bool) Footprint {
	if already && f.change != nil {
		return Footprint{usage: f.change.later, facts: f.facts}
	}
	return Footprint{usage: f.usage, facts: f.facts}
}

// At returns the footprint as of a time, which no longer changes with time. Objects with equal results (==)
// use the same of every quota.
func (f Footprint) At(now time.Time) Footprint {
	changesAt, changes := f.ChangesAt()
	return f.Changed(changes && !now.Before(changesAt))
}

// Equal reports whether two footprints of the same Evaluators and resource use
// the same of every quota at every moment.
func (f Footprint) Equal(other Footprint) bool {
	return f.usage == other.usage && f.facts == other.facts && f.change.equal(other.change)
}

func (c *change) equal(other *change) bool {
	if c == nil || other == nil {
		return c == other
	}
	return c.at.Equal(other.at) && c.after == other.after && c.later == other.later
}

// Footprint returns the footprint of an object. For a resource that
// NeedsObject the object must be of the type of that resource; for any other
// its metadata is enough.
func (e *Evaluators) Footprint(resource schema.GroupResource, object runtime.Object) (Footprint, error) {
	evaluator := e.evaluator(resource)
	if evaluator == nil {
		return Footprint{}, nil
	}
	if err := checkObject(resource, object); err != nil {
		return Footprint{}, err
	}
	if !NeedsObject(resource) {
		object = nil // it is a count of one, for any object
	}
	object = counted(object)
	facts, err := factsOf(evaluator, object)
	if err != nil {
		return Footprint{}, err
	}
	footprint, err := e.measured(evaluator, object)
	if err != nil {
		return Footprint{}, fmt.Errorf("measuring %s: %w", resource, err)
	}
	facts.claims, _ = evaluator.(*claimEvaluator)
	footprint.facts = unique.Make(facts)
	return footprint, nil
}

// measured returns a footprint without facts.
func (e *Evaluators) measured(evaluator quota.Evaluator, object runtime.Object) (Footprint, error) {
	if pod, isPod := object.(*corev1.Pod); isPod {
		return e.measuredPod(pod)
	}
	usage, err := evaluator.Usage(object)
	if err != nil {
		return Footprint{}, err
	}
	return Footprint{usage: e.lists.share(usage)}, nil
}

// measuredPod measures a pod that is being deleted twice: at the last moment of
// its grace period, and at the first one after it. Upstream alone decides
// whether it counts then.
func (e *Evaluators) measuredPod(pod *corev1.Pod) (Footprint, error) {
	last, grace, isBeingDeleted := endOfGrace(pod)
	if !isBeingDeleted && pod.DeletionTimestamp != nil {
		pod = pod.DeepCopy()
		pod.DeletionTimestamp = nil
	}
	usage, err := e.podUsageAt(pod, last)
	if err != nil || !isBeingDeleted {
		return Footprint{usage: usage}, err
	}
	first := last.Add(time.Nanosecond)
	later, err := e.podUsageAt(pod, first)
	if err != nil || later == usage {
		return Footprint{usage: usage}, err
	}
	return Footprint{usage: usage, change: &change{at: first, after: grace + time.Nanosecond, later: later}}, nil
}

// podUsageAt returns a pod's use at a moment.
func (e *Evaluators) podUsageAt(pod *corev1.Pod, now time.Time) (*sharedList, error) {
	usage, err := newPodEvaluator(clockAt{now: now}).Usage(pod)
	if err != nil {
		return nil, err
	}
	return e.lists.share(usage), nil
}

// longestGrace is a century, in seconds. Kubernetes' arithmetic overflows after three, and takes a pod for gone then.
const longestGrace = 100 * 365 * 24 * 60 * 60

// endOfGrace returns the last moment at which Kubernetes counts a pod that is being deleted, how long that is after the
// deletion began, and whether there is one. A DeletionTimestamp is a grace period later than the deletion
// (BeforeDelete in k8s.io/apiserver/pkg/registry/rest), and Kubernetes counts the pod for another one. A pod with a longer
// grace than longestGrace counts as long as it is there.
func endOfGrace(pod *corev1.Pod) (last time.Time, after time.Duration, isBeingDeleted bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds > longestGrace {
		return time.Time{}, 0, false
	}
	grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	return pod.DeletionTimestamp.Add(grace), 2 * grace, true
}

// clockAt is a clock that stands still.
type clockAt struct {
	clock.RealClock
	now time.Time
}

// Now implements clock.PassiveClock.
func (c clockAt) Now() time.Time { return c.now }

// Usage returns the use of the quota by an object with this footprint at a
// moment: only names that the quota limits, nothing if the quota's scopes leave
// the object out.
//
// An error means that it is unknown whether they do. The use that is returned
// with it is the object's if they don't: counted so, it makes no room.
func (e *Evaluators) Usage(resource schema.GroupResource, f Footprint, q Quota, now time.Time) (corev1.ResourceList, error) {
	evaluator := e.evaluator(resource)
	if evaluator == nil || f.usage == nil {
		return corev1.ResourceList{}, nil
	}
	if claims := f.facts.Value().claims; claims != nil {
		evaluator = claims
	}
	matches, err := evaluator.Matches(countedQuota(q), f.standIn(resource, q.Spec))
	if err != nil {
		err = fmt.Errorf("matching %s with quota %s: %w", resource, q.Name, err)
	}
	if err == nil && !matches {
		return corev1.ResourceList{}, nil
	}
	return f.At(now).usage.masked(q.Spec.Hard), err
}

// countedQuota returns the quota in the form that evaluators match. They read
// the names that it limits from its status.
func countedQuota(q Quota) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{Spec: q.Spec, Status: corev1.ResourceQuotaStatus{Hard: q.Spec.Hard}}
}

// standIn returns an object that has the same scopes as the one the footprint
// was taken of, or nil if the quota has no scopes to match.
func (f Footprint) standIn(resource schema.GroupResource, spec corev1.ResourceQuotaSpec) runtime.Object {
	if len(spec.Scopes) == 0 && spec.ScopeSelector == nil {
		return nil
	}
	return f.facts.Value().standIn(neededObject(resource))
}
