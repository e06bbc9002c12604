/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package localview

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/resourceversion"
)

// plannedViews are what makes the views that are present those that are wanted.
type plannedViews struct {
	// outdated are to be written, the most urgent first.
	outdated []*quotav1.LocalResourceQuota
	unwanted []*quotav1.LocalResourceQuota
	// outdated view -> the resources whose level is higher than the view says so far
	risen map[*quotav1.LocalResourceQuota][]corev1.ResourceName
}

// urgency orders writes: what misleads an owner most comes first.
type urgency int

const (
	// missing: there is no view yet, or not of this quota.
	missing urgency = iota
	// turned: a resource has run out or is available again, or a limit changed.
	turned
	// moved: what the namespace itself uses has changed.
	moved
	// drifted: only what others use has changed.
	drifted
)

func plan(
	object *quotav1.ClusterResourceQuota,
	wanted map[string]quotav1.LocalResourceQuotaStatus, present map[string]*quotav1.LocalResourceQuota,
) plannedViews {
	planned := plannedViews{risen: map[*quotav1.LocalResourceQuota][]corev1.ResourceName{}}
	type ranked struct {
		view    *quotav1.LocalResourceQuota
		urgency urgency
	}
	var outdated []ranked
	for namespace, status := range wanted {
		is := present[namespace]
		before := levelsOf(object, is)
		status.Levels = report.Levels(before, status.Total.Used, status.Total.Hard)
		if is == nil || !metav1.IsControlledBy(is, object) || !apiequality.Semantic.DeepEqual(is.Status, status) {
			view := newView(object, namespace, status, is)
			outdated = append(outdated, ranked{view, urgencyOf(object, is, status)})
			if risen := report.Risen(before, status.Levels); len(risen) > 0 {
				planned.risen[view] = risen
			}
		}
	}
	slices.SortFunc(outdated, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.urgency, b.urgency), cmp.Compare(writtenAt(a.view), writtenAt(b.view)))
	})
	for _, ranked := range outdated {
		planned.outdated = append(planned.outdated, ranked.view)
	}
	for namespace, view := range present {
		if _, keep := wanted[namespace]; !keep {
			planned.unwanted = append(planned.unwanted, view)
		}
	}
	return planned
}

// levelsOf are the levels that a view of this quota has; none where there is no view.
func levelsOf(object *quotav1.ClusterResourceQuota, view *quotav1.LocalResourceQuota) map[corev1.ResourceName]quotav1.Level {
	if view == nil || !metav1.IsControlledBy(view, object) {
		return nil
	}
	return view.Status.Levels
}

// writtenAt orders views of the same urgency: the one that has not been written
// for longest comes first.
func writtenAt(view *quotav1.LocalResourceQuota) uint64 {
	return resourceversion.Parse(view.ResourceVersion)
}

func urgencyOf(
	object *quotav1.ClusterResourceQuota, is *quotav1.LocalResourceQuota, wanted quotav1.LocalResourceQuotaStatus,
) urgency {
	switch {
	case is == nil || !metav1.IsControlledBy(is, object):
		return missing
	case !quota.Equals(is.Status.Total.Hard, wanted.Total.Hard), !sameNames(exhausted(is.Status), exhausted(wanted)):
		return turned
	case !quota.Equals(is.Status.Used, wanted.Used):
		return moved
	default:
		return drifted
	}
}

// exhausted are the resources of which nothing is available.
func exhausted(status quotav1.LocalResourceQuotaStatus) []corev1.ResourceName {
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
