// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

const (
	// viewsInARound is how many views of a quota are written in one round at most.
	viewsInARound = 200
	// turnedWhileChanging is how many of them are written because a resource ran
	// out or came free, while the totals keep changing; at the limit that happens
	// with every object that comes or goes.
	turnedWhileChanging = 25
	// movedWhileChanging is how many are written for other figures.
	movedWhileChanging = 5
)

// plannedViews are the writes that turn the present views into the wanted ones.
type plannedViews struct {
	// outdated must be written: for each urgency the views, that which has not
	// been written for longest first.
	outdated [urgencies][]*quotav1.LocalResourceQuota
	unwanted []*quotav1.LocalResourceQuota
	// outdated view -> the resources whose level is higher than the view says so far
	risen map[*quotav1.LocalResourceQuota][]corev1.ResourceName
}

// urgency orders writes: views that mislead an owner most come first.
type urgency int

const (
	// missing: there is no view yet, or not of this quota.
	missing urgency = iota
	// turned: a resource has run out or is available again, a limit changed, or workloads
	// wait and didn't, or the other way round.
	turned
	// moved: the use of the namespace itself has changed, or which of its
	// workloads wait.
	moved
	// drifted: only the use of others has changed.
	drifted
	// urgencies is how many there are.
	urgencies
)

func plan(
	object *quotav1.ClusterResourceQuota,
	wanted map[string]quotav1.LocalResourceQuotaStatus, surge surge, present map[string]*quotav1.LocalResourceQuota, now time.Time,
) plannedViews {
	planned := plannedViews{risen: map[*quotav1.LocalResourceQuota][]corev1.ResourceName{}}
	for namespace, status := range wanted {
		view := present[namespace]
		before := levelsOf(object, view)
		status.Levels = report.Levels(before, surge.ordinary(status.Total.Used, status.Total.Hard), status.Total.Hard)
		status.Conditions = since(view, status.Conditions, now)
		if view == nil || !metav1.IsControlledBy(view, object) || !apiequality.Semantic.DeepEqual(view.Status, status) {
			updated, urgency := newView(object, namespace, status, view), urgencyOf(object, view, status)
			planned.outdated[urgency] = append(planned.outdated[urgency], updated)
			if risen := report.Risen(before, status.Levels); len(risen) > 0 {
				planned.risen[updated] = risen
			}
		}
	}
	for _, views := range planned.outdated {
		slices.SortFunc(views, func(a, b *quotav1.LocalResourceQuota) int { return cmp.Compare(writtenAt(a), writtenAt(b)) })
	}
	for namespace, view := range present {
		if _, keep := wanted[namespace]; !keep {
			planned.unwanted = append(planned.unwanted, view)
		}
	}
	return planned
}

// levelsOf are the levels that a view of this quota has; none if there is no view.
func levelsOf(object *quotav1.ClusterResourceQuota, view *quotav1.LocalResourceQuota) map[corev1.ResourceName]quotav1.Level {
	if view == nil || !metav1.IsControlledBy(view, object) {
		return nil
	}
	return view.Status.Levels
}

// count is how many views must be written.
func (p plannedViews) count() int {
	count := 0
	for _, views := range p.outdated {
		count += len(views)
	}
	return count
}

// left are the namespaces whose views are outdated and not due.
func (p plannedViews) left(due []*quotav1.LocalResourceQuota) []string {
	var namespaces []string
	for _, view := range slices.Concat(p.outdated[:]...) {
		if !slices.Contains(due, view) {
			namespaces = append(namespaces, view.Namespace)
		}
	}
	return namespaces
}

// due are the views to be written in this round, the most urgent first. While the
// totals keep changing, every view is outdated all the time: then only the most
// urgent are written, and the rest once the totals stand still.
func (p plannedViews) due(changing bool) []*quotav1.LocalResourceQuota {
	due := p.outdated
	if changing {
		due[turned] = first(turnedWhileChanging, due[turned])
		// If others are busy all the time, a quiet namespace has its turn, too.
		due[moved] = first(movedWhileChanging-min(1, len(due[drifted])), due[moved])
		due[drifted] = first(movedWhileChanging-len(due[moved]), due[drifted])
	}
	return first(viewsInARound, slices.Concat(due[:]...))
}

func first(n int, views []*quotav1.LocalResourceQuota) []*quotav1.LocalResourceQuota {
	return views[:min(n, len(views))]
}

// writtenAt orders views of the same urgency: the least recently written view
// comes first.
func writtenAt(view *quotav1.LocalResourceQuota) uint64 {
	return ledger.ParseVersion(view.ResourceVersion)
}

func urgencyOf(
	object *quotav1.ClusterResourceQuota, current *quotav1.LocalResourceQuota, wanted quotav1.LocalResourceQuotaStatus,
) urgency {
	switch {
	case current == nil || !metav1.IsControlledBy(current, object):
		return missing
	case !quota.Equals(current.Status.Total.Hard, wanted.Total.Hard), !sameNames(exhaustedIn(current.Status), exhaustedIn(wanted)),
		isBlocked(current.Status) != isBlocked(wanted):
		return turned
	case !quota.Equals(current.Status.Used, wanted.Used), !apiequality.Semantic.DeepEqual(current.Status.Waiting, wanted.Waiting):
		return moved
	default:
		return drifted
	}
}

// exhaustedIn returns the resources of which nothing is available.
func exhaustedIn(status quotav1.LocalResourceQuotaStatus) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, available := range status.Available {
		if available.IsZero() {
			names = append(names, name)
		}
	}
	return names
}

func sameNames(a, b []corev1.ResourceName) bool {
	return quota.ToSet(a).Equal(quota.ToSet(b))
}

func newView(
	object *quotav1.ClusterResourceQuota, namespace string,
	status quotav1.LocalResourceQuotaStatus, previous *quotav1.LocalResourceQuota,
) *quotav1.LocalResourceQuota {
	view := &quotav1.LocalResourceQuota{ObjectMeta: metav1.ObjectMeta{
		Name: object.Name, Namespace: namespace,
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota",
			Name: object.Name, UID: object.UID, Controller: ptr.To(true),
		}},
	}}
	if previous != nil {
		view.ResourceVersion = previous.ResourceVersion
	}
	// Each its own: an answer of the API server is decoded into it.
	view.Status = *status.DeepCopy()
	return view
}
