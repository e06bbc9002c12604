// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// Manifest is an object as applying it would leave it, with Kubernetes' defaults,
// and its present objects in the cluster.
type Manifest struct {
	// Resource is the resource that the object is counted as.
	Resource schema.GroupVersionResource
	Kind     string
	// Object has Kubernetes' own type if its costs depend on its fields.
	Object client.Object
	// Live is the object as it is, nil if there is none.
	Live client.Object
	// Present has the objects in its namespace.
	Present Present
}

// Present has the objects in a namespace that workloads made.
type Present struct {
	// Pods that have not ended and are not being deleted.
	Pods []*corev1.Pod
	// ReplicaSets of the namespace.
	ReplicaSets []*appsv1.ReplicaSet
	// Claims are the names of the PersistentVolumeClaims.
	Claims sets.Set[string]
	// ClaimTemplates maps the names of ResourceClaimTemplates, those of the
	// manifests among them.
	ClaimTemplates map[string]*resourceapi.ResourceClaimTemplate
	// Nodes returns how many nodes a DaemonSet's pods run on; false if that is
	// unknown. May be nil.
	Nodes func(set *appsv1.DaemonSet) (int64, bool)
	// Unlisted: the present objects have not been listed, and the statuses of live objects say how many pods they have.
	Unlisted bool
}

// When tells at which time something is asked for.
type When string

const (
	// Now: as soon as the manifest is applied.
	Now When = ""
	// AsPodsEnd: while a Job goes on, and its finished pods stay.
	AsPodsEnd When = "as pods end"
	// AtEachRun: when a CronJob's schedule says so.
	AtEachRun When = "at each run"
)

// Item is objects that are alike, and how many of them are asked for.
type Item struct {
	Resource schema.GroupVersionResource
	Kind     string
	Object   client.Object
	// Old is the object before an update, nil for a creation.
	Old   client.Object
	Count int64
	When  When
	// EachPod: there is one for each wanted pod, and outlives it. Count is the
	// number of missing ones.
	EachPod bool
	// Maybe: it may be there already, because the present objects have not been
	// listed.
	Maybe bool
}

// Group is pods that are alike, and must be replaced.
type Group struct {
	// Items are the cost of one of them, as Pods.New; nil if it is unknown.
	Items []Item
	Count int64
	// Templated: Items are of a template, and not yet as admission has left them.
	Templated bool
}

// Pods are the pods of one workload, and how they replace older ones.
type Pods struct {
	// New is the cost of one new pod: the pod, and the objects made for it.
	New []Item
	// Either is an alternative cost of a new pod. The greater of both counts.
	Either []Item
	// Old are the pods that must be replaced.
	Old []Group
	// Wanted is how many new pods there are in the end, Present how many there
	// are already.
	Wanted, Present int64
	// Surge is how many pods more than Wanted there may be on the way, and
	// Unavailable how many fewer. They matter only if Old isn't empty.
	Surge, Unavailable int64
	// Grows is how many more of the old pods are made before they are replaced: a Deployment
	// that is scaled and changed at once is scaled first.
	Grows int64
}

// Replaced returns how many pods must be replaced.
func (p *Pods) Replaced() int64 {
	count := int64(0)
	for _, group := range p.Old {
		count += group.Count
	}
	return count
}

// Missing returns how many new pods are still to be made, never below zero.
func (p *Pods) Missing() int64 {
	return max(0, p.Wanted-p.Present)
}

// makes reports whether new pods are made, and not only old ones deleted.
func (p *Pods) makes() bool { return p.Missing() > 0 || p.Grows > 0 }

// Demand is the demand of one manifest.
type Demand struct {
	Kind, Namespace, Name string
	Items                 []Item
	// Pods is nil if it makes none.
	Pods *Pods
	// Notes describe the assumptions.
	Notes []string
	// Unread are the names of ResourceClaimTemplates that can't be read, sorted. Devices of
	// their claims aren't counted.
	Unread []string
	// Unsure: more may be there, or be freed, than is counted. So a demand that
	// is short may fit.
	Unsure bool
	// Unpriced says why the objects may cost more than is counted. If it isn't empty, nothing may be said to fit.
	Unpriced string
}

// Made returns the demand without the object itself: the objects that controllers
// make of it.
func (d *Demand) Made() Demand {
	made := *d
	made.Items = d.Items[1:]
	return made
}

// UnknownNodesError is returned for a DaemonSet whose number of nodes is unknown.
type UnknownNodesError struct{ Namespace, Name string }

// Error implements error.
func (e *UnknownNodesError) Error() string { return outcomes.UnknownNodes.Text(e.Namespace, e.Name) }

// Advised implements outcomes.Advised.
func (*UnknownNodesError) Advised() {}

// Expand returns the demand of the manifest. The error is an *UnknownNodesError,
// or describes the defect of the manifest.
func Expand(m Manifest) (Demand, error) {
	demand := Demand{Kind: m.Kind, Namespace: m.Object.GetNamespace(), Name: m.Object.GetName()}
	demand.Items = append(demand.Items, Item{Resource: m.Resource, Kind: m.Kind, Object: m.Object, Old: m.Live, Count: 1})
	if m.Present.Unlisted && m.Live != nil && m.Live.GetDeletionTimestamp() != nil {
		return demand, nil // controllers make nothing more of it
	}
	if err := demand.expand(m); err != nil {
		return Demand{}, fmt.Errorf("expanding %s %s/%s: %w", m.Kind, demand.Namespace, demand.Name, err)
	}
	if m.Kind == "HorizontalPodAutoscaler" {
		demand.note(autoscaler(m.Object))
	}
	if len(demand.Unread) > 0 {
		slices.Sort(demand.Unread)
		demand.Unread = slices.Compact(demand.Unread)
		demand.note(unreadTemplates(demand.Namespace, demand.Unread))
	}
	return demand, nil
}

// expand adds the objects that controllers make of the object.
func (d *Demand) expand(m Manifest) (err error) {
	switch object := m.Object.(type) {
	case *appsv1.Deployment:
		err = d.deployment(m, object)
	case *appsv1.StatefulSet:
		d.statefulSet(m, object)
	case *appsv1.DaemonSet:
		err = d.daemonSet(m, object)
	case *appsv1.ReplicaSet:
		d.copies(m, &object.Spec.Template, object.Spec.Replicas)
	case *corev1.ReplicationController:
		d.copies(m, object.Spec.Template, object.Spec.Replicas)
	case *batchv1.Job:
		d.job(m, object)
	case *batchv1.CronJob:
		d.cronJob(m, object)
	case *corev1.Pod:
		if m.Live == nil {
			d.Items = append(d.Items, d.madeFor(object, m.Present)...)
		}
	}
	if m.Live != nil && !m.Present.Unlisted {
		d.Items = append(d.Items, d.lacking(m.pods(), m.Present)...)
	}
	return err
}

func (d *Demand) add(item Item) {
	if item.Count > 0 {
		d.Items = append(d.Items, item)
	}
}

func (d *Demand) note(note string) {
	d.Notes = append(d.Notes, note)
}
