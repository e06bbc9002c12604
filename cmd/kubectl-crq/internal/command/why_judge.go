// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// diagnosis is what a situation comes to.
type diagnosis struct {
	*reading.Situation
	meter  meter
	limits []fitting.Limit
	// refused has what the controller of each link of the chain was refused; of a missing subject, what it was refused
	// itself. The latest comes first.
	refused [][]reading.Refused
	// link is the workload whose needs are judged, if makes is set.
	link  reading.Link
	makes bool
	// demand is all that the workload still asks for, and all whether that fits; one is for its next object alone.
	demand   fitting.Demand
	all, one fitting.Verdict
	// unknown is why it can't be told whether something is refused; empty if it can.
	unknown string
	notes   []string
}

// diagnose judges a situation. The error is that of kubectl if the subject doesn't exist and nobody refused it.
func diagnose(situation *reading.Situation, types *fitting.Types, meter meter) (*render.Why, error) {
	d := &diagnosis{Situation: situation, meter: meter, limits: fitting.LimitsOf(situation.Limits.Views, situation.Limits.Quotas)}
	d.findRefusals()
	if len(d.Chain) == 0 && d.refused == nil {
		return nil, notFound(d.Subject)
	}
	if err := d.judge(types); err != nil {
		return nil, err
	}
	return d.answer()
}

// judge compares what the workload needs with what is left.
func (d *diagnosis) judge(types *fitting.Types) error {
	if d.link, d.makes = d.Workload(); !d.makes {
		if d.Target == reading.TargetForeign {
			d.unknown = d.name() + " " + stateOf(d.Chain[0].Object) + d.targetText()
		}
		return nil
	}
	if hasEnded(d.link) && len(d.Chain) > 1 { // A CronJob is asked about its next run.
		d.link = d.Chain[len(d.Chain)-2]
	}
	object := d.link.Object
	var err error
	d.demand, err = fitting.Expand(fitting.Manifest{
		Resource: d.link.Kind.Resource(), Kind: d.link.Kind.Kind, Object: object, Live: object, Present: d.Present,
	})
	if unknown := (*fitting.UnknownNodesError)(nil); errors.As(err, &unknown) || err == nil && d.isOutdated(object) {
		d.makes, d.unknown = false, notYetObserved(d.name())
		return nil
	}
	if err != nil {
		return err
	}
	d.notes = append(d.notes, d.demand.Notes...)
	rules := fitting.NewRules(types, d.Surroundings)
	fitter := fitting.NewFitter(d.meter.evaluators, rules.Complete)
	if d.all, err = fitter.Fit([]fitting.Demand{d.demand}, d.limits); err != nil {
		return err
	}
	d.one, err = fitter.Fit([]fitting.Demand{next(d.demand)}, d.limits)
	return err
}

// isOutdated reports whether only the status says what there is, and that is older than the object's spec.
func (d *diagnosis) isOutdated(object client.Object) bool {
	if !d.Present.Unlisted {
		return false
	}
	observed := object.GetGeneration()
	switch object := object.(type) {
	case *appsv1.Deployment:
		observed = object.Status.ObservedGeneration
	case *appsv1.ReplicaSet:
		observed = object.Status.ObservedGeneration
	case *appsv1.StatefulSet:
		observed = object.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		observed = object.Status.ObservedGeneration
	case *corev1.ReplicationController:
		observed = object.Status.ObservedGeneration
	}
	return observed < object.GetGeneration()
}

// next is the demand for one more of each object that a controller makes.
func next(demand fitting.Demand) fitting.Demand {
	one := fitting.Demand{Kind: demand.Kind, Namespace: demand.Namespace, Name: demand.Name}
	for _, item := range demand.Items {
		if item.Old == nil && item.When != fitting.AsPodsEnd {
			item.Count = 1
			one.Items = append(one.Items, item)
		}
	}
	if demand.Pods != nil {
		one.Pods = &fitting.Pods{New: demand.Pods.New, Wanted: 1}
	}
	return one
}

// missing returns how many pods the workload lacks, and of how many; and what else it lacks.
func (d *diagnosis) missing() (pods, of int64, others []fitting.Item) {
	if d.demand.Pods != nil {
		pods, of = d.demand.Pods.Missing(), d.demand.Pods.Wanted
	}
	for _, item := range d.demand.Items {
		if item.Old == nil && item.When == fitting.Now {
			others = append(others, item)
		}
	}
	return pods, of, others
}

// replaces reports whether missing pods replace older ones that are still there.
func (d *diagnosis) replaces() bool { return d.demand.Pods != nil && d.demand.Pods.Replaced() > 0 }

// isCron reports whether the next run of a CronJob is judged.
func (d *diagnosis) isCron() bool {
	_, cron := d.link.Object.(*batchv1.CronJob)
	return d.makes && cron
}

// lacks reports whether anything is missing.
func (d *diagnosis) lacks() bool {
	pods, _, others := d.missing()
	return pods > 0 || len(others) > 0 || d.isCron() && len(d.all.Rows)+len(d.all.Refusals) > 0
}

// quotas returns what is needed of each quota, without who holds it: of those that are short, and of those that
// refused.
func (d *diagnosis) quotas() []render.WhyQuota {
	latest, refused := d.latest()
	var found []render.WhyQuota
	for i := range d.limits {
		limit := &d.limits[i]
		quota := render.WhyQuota{Quota: quotaName(limit)}
		for _, row := range d.all.Rows {
			if row.Limit.Name == limit.Name && row.Limit.Source == limit.Source {
				quota.Rows = append(quota.Rows, d.row(limit, row.Resource, d.nextOf(limit, row.Resource), row.Requested))
			}
		}
		isLatest := refused && d.isBy(limit, latest.Words)
		d.amend(&quota, limit)
		if len(quota.Rows) > 0 && (isLatest || quota.IsShort() || !isCounted(quota)) {
			found = append(found, quota)
		}
	}
	return found
}

func isUncounted(quota render.WhyQuota) bool { return !isCounted(quota) }

func isCounted(quota render.WhyQuota) bool {
	return !slices.ContainsFunc(quota.Rows, func(row render.WhyRow) bool { return row.Available == nil })
}

// waiting returns what the views say of controllers of the chain that wait.
func (d *diagnosis) waiting() []render.WhyWaiting {
	var found []render.WhyWaiting
	for i := range d.Limits.Views {
		view := &d.Limits.Views[i]
		for _, owner := range view.Status.Waiting {
			if slices.ContainsFunc(d.Chain, func(link reading.Link) bool {
				return link.Kind.Kind == owner.Kind && link.Object.GetName() == owner.Name
			}) {
				found = append(found, render.WhyWaiting{
					ObjectName: render.ObjectName{Kind: owner.Kind, Name: owner.Name},
					Quota:      string(fitting.Shared) + "/" + view.Name, Since: owner.Since, Short: owner.Short,
				})
			}
		}
	}
	return found
}

// woken returns when the operator told the link's controller last that there is room.
func woken(link reading.Link) *metav1.Time {
	at, err := time.Parse(time.RFC3339, link.Object.GetAnnotations()[quotav1.RoomAnnotation])
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// owners are the objects that control the subject's pods.
func (d *diagnosis) owners() map[types.UID]struct{} {
	owners := map[types.UID]struct{}{}
	for _, link := range d.Chain {
		owners[link.Object.GetUID()] = struct{}{}
	}
	for _, set := range d.Present.ReplicaSets {
		owners[set.UID] = struct{}{}
	}
	return owners
}
