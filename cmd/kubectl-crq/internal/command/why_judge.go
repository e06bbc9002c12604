// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	notes    []string
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

func (d *diagnosis) findRefusals() {
	if len(d.Chain) == 0 {
		resource := d.Subject.Resource().Resource
		if refused := reading.RefusedByName(resource, d.Subject.Name, d.Events); len(refused) > 0 {
			d.refused = [][]reading.Refused{refused}
		}
		return
	}
	for _, link := range d.Chain {
		d.refused = append(d.refused, reading.RefusedOf(link.Object, link.Kind.Kind, d.Events))
	}
}

// latest returns the latest refusal, if there was one.
func (d *diagnosis) latest() (reading.Refused, bool) {
	var latest reading.Refused
	for _, refused := range d.refused {
		if len(refused) > 0 && refused[0].Last.After(latest.Last) {
			latest = refused[0]
		}
	}
	return latest, !latest.Last.IsZero()
}

// judge compares what the workload needs with what is left.
func (d *diagnosis) judge(types *fitting.Types) error {
	if d.link, d.makes = d.Workload(); !d.makes {
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
	if unknown := (*fitting.UnknownNodesError)(nil); errors.As(err, &unknown) {
		d.makes = false
		d.notes = append(d.notes, notYetObserved(d.name()))
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

func hasEnded(link reading.Link) bool {
	job, ok := link.Object.(*batchv1.Job)
	return ok && slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Status == corev1.ConditionTrue &&
			(condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed)
	})
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
		if isLatest && d.trusts(latest) {
			d.amend(&quota, limit, latest)
		}
		if len(quota.Rows) > 0 && (isLatest || quota.IsShort() || !isCounted(quota)) {
			found = append(found, quota)
		}
	}
	return found
}

func isCounted(quota render.WhyQuota) bool {
	return !slices.ContainsFunc(quota.Rows, func(row render.WhyRow) bool { return row.Available == nil })
}

// trusts reports whether the message says more of what an object needs than its template. A message of a set whose
// template may have changed since doesn't.
func (d *diagnosis) trusts(refused reading.Refused) bool {
	if len(refused.Requested) == 0 {
		return false
	}
	if !d.makes {
		return true
	}
	kind := d.Maker().Kind.Kind
	return kind == "ReplicaSet" || kind == "Job"
}

// amend raises what is needed to what was requested: other webhooks may have added to the object.
func (d *diagnosis) amend(quota *render.WhyQuota, limit *fitting.Limit, refused reading.Refused) {
	pods, _, _ := d.missing()
	for name, requested := range refused.Requested {
		all := requested.DeepCopy()
		if pods > 1 && d.makes {
			all.Mul(pods)
		}
		at := slices.IndexFunc(quota.Rows, func(row render.WhyRow) bool { return row.Resource == name })
		switch {
		case at < 0:
			quota.Rows = append(quota.Rows, d.row(limit, name, requested, all))
		case quota.Rows[at].One.Cmp(requested) < 0:
			quota.Rows[at] = d.row(limit, name, requested, all)
			d.notes = append(d.notes, requestsMore(name))
		}
	}
	slices.SortFunc(quota.Rows, func(a, b render.WhyRow) int { return compareNames(a.Resource, b.Resource) })
}

// isBy reports whether the words are those of the limit. A ClusterResourceQuota and a ResourceQuota of one name are
// told apart by their limits.
func (d *diagnosis) isBy(limit *fitting.Limit, words reading.Words) bool {
	return limit.Name == words.Quota && limit.Source == d.source(words)
}

// source returns what kind of quota refused; empty if there is no such quota in the namespace now.
func (d *diagnosis) source(words reading.Words) fitting.Source {
	var sources []fitting.Source
	for _, limit := range d.limits {
		if limit.Name != words.Quota {
			continue
		}
		sources = append(sources, limit.Source)
		if len(words.Limited) > 0 && slices.Equal(amountsOf(words.Limited), amountsOf(masked(limit.Spec.Hard, words.Limited))) {
			return limit.Source
		}
	}
	if len(sources) == 0 {
		return ""
	}
	return sources[0]
}

// refuser names the quota that refused: crq/NAME, quota/NAME, or as it was named if neither is there now.
func (d *diagnosis) refuser(words reading.Words) string {
	if source := d.source(words); source != "" {
		return string(source) + "/" + words.Quota
	}
	return words.Quota
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
