// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// Refused is that a controller's requests were refused, for one reason and by one quota.
type Refused struct {
	Words
	// Last is when it happened last, as far as is known, and First when first. Count is how often; 0 is unknown.
	First, Last time.Time
	Count       int32
}

// reasonsOfRefusals are those of events about objects that a controller could not create. The last two are
// of a pod whose claims are refused.
func reasonsOfRefusals() []string {
	return []string{"FailedCreate", util.FailedRSCreateReason, "FailedBinding", "FailedResourceClaimCreation"}
}

// RefusedOf returns the refused creations for an object by the events since then and the object's conditions, the
// latest first.
func RefusedOf(object client.Object, kind string, events []corev1.Event, since time.Time) []Refused {
	var found []Refused
	for i := range events {
		event := &events[i]
		if isAbout(event, object, kind) && slices.Contains(reasonsOfRefusals(), event.Reason) {
			found = Join(found, ofEvent(event))
		}
	}
	found = slices.DeleteFunc(found, func(refused Refused) bool { return refused.Last.Before(since) })
	for _, refused := range RefusedByConditions(object) {
		// An event about it knows when it happened last.
		if !slices.ContainsFunc(found, refused.isLike) {
			found = append(found, refused)
		}
	}
	latestFirst(found)
	return found
}

// RefusedByName returns the refusals of an object that doesn't exist by the events in a namespace, the latest first.
func RefusedByName(resource schema.GroupResource, name string, events []corev1.Event) []Refused {
	var found []Refused
	for i := range events {
		if isAboutName(events[i].Message, resource, name) {
			found = Join(found, ofEvent(&events[i]))
		}
	}
	latestFirst(found)
	return found
}

// isAboutName reports whether a message says that an object of this name was refused. Some words have the resource's
// group, and some don't.
func isAboutName(message string, resource schema.GroupResource, name string) bool {
	for _, named := range []string{resource.Resource, resource.String()} {
		// As in the events of a view, and in Kubernetes' own words.
		ours, native := fmt.Sprintf("refused %s %q: ", named, name), fmt.Sprintf("%s %q is forbidden: ", named, name)
		if strings.Contains(message, ours) || strings.Contains(message, native) {
			return true
		}
	}
	return isOfSet(message, resource.Resource, name)
}

// isOfSet reports whether a StatefulSet's event says that an object of this name was refused.
func isOfSet(message, resource, name string) bool {
	switch resource {
	case "pods":
		return strings.HasPrefix(message, fmt.Sprintf("create Pod %s in StatefulSet ", name))
	case "persistentvolumeclaims":
		return strings.HasPrefix(message, fmt.Sprintf("create Claim %s for Pod ", name))
	}
	return false
}

func isAbout(event *corev1.Event, object client.Object, kind string) bool {
	about := event.InvolvedObject
	return about.Kind == kind && about.Name == object.GetName() && (about.UID == "" || about.UID == object.GetUID())
}

func ofEvent(event *corev1.Event) Refused {
	count, first, last := render.Seen(event)
	return Refused{Words: ParseRefusal(event.Message), First: first, Last: last, Count: count}
}

// RefusedByConditions returns the refusals in conditions. They hold as long as the controller is refused, and don't say how
// often.
func RefusedByConditions(object client.Object) []Refused {
	var found []Refused
	note := func(isRefusal bool, message string, at metav1.Time) {
		if isRefusal {
			found = append(found, Refused{Words: ParseRefusal(message), First: at.Time, Last: at.Time})
		}
	}
	switch object := object.(type) {
	case *appsv1.Deployment:
		for _, condition := range object.Status.Conditions {
			note(condition.Type == appsv1.DeploymentProgressing && condition.Reason == util.FailedRSCreateReason,
				condition.Message, condition.LastUpdateTime)
		}
	case *appsv1.ReplicaSet:
		for _, condition := range object.Status.Conditions {
			note(condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue,
				condition.Message, condition.LastTransitionTime)
		}
	case *corev1.ReplicationController:
		for _, condition := range object.Status.Conditions {
			note(condition.Type == corev1.ReplicationControllerReplicaFailure && condition.Status == corev1.ConditionTrue,
				condition.Message, condition.LastTransitionTime)
		}
	}
	return found
}

// isLike reports whether the two have one reason and one quota.
func (r Refused) isLike(other Refused) bool {
	if r.Reason == RefusedElsewhere && other.Reason == RefusedElsewhere {
		return madeUp.ReplaceAllString(r.Text, "") == madeUp.ReplaceAllString(other.Text, "")
	}
	return r.Reason == other.Reason && r.Quota == other.Quota && r.Missing == other.Missing
}

// madeUp is the name of the refused object, or the end of a name that a controller has made up: each attempt has
// another one.
var madeUp = regexp.MustCompile(`"[^"]+" is |-([bcdfghj-np-tv-z24-9]{5}|\d+)\b`)

// Join adds a refusal to similar ones: the latest one speaks for them.
func Join(known []Refused, next Refused) []Refused {
	at := slices.IndexFunc(known, next.isLike)
	if at < 0 {
		return append(known, next)
	}
	same := &known[at]
	first, count := same.First, same.Count+next.Count
	if next.First.Before(first) {
		first = next.First
	}
	if next.Last.After(same.Last) {
		*same = next
	}
	same.First, same.Count = first, count
	return known
}

func latestFirst(found []Refused) {
	slices.SortStableFunc(found, func(a, b Refused) int { return b.Last.Compare(a.Last) })
}
