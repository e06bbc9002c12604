// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

// diagnosis is the result of judging a situation.
type diagnosis struct {
	*reading.Situation
	meter  meter
	limits []fitting.Limit
	// refused has the refusals of the controller of each link of the chain; of a missing subject, its own refusals. The
	// latest comes first.
	refused [][]reading.Refused
	// link is the workload whose needs are judged, if makes is set.
	link  client.Object
	makes bool
	// demand is all that the workload still asks for, and all whether that fits; one is for its next object alone.
	demand   fitting.Demand
	all, one fitting.Verdict
	// alike is how many other pods were refused the same as the last link of the chain, a pod.
	alike int64
	// warn returns the latest warning about an object; empty if there is none.
	warn func(render.ObjectName) string
	// unknown is why it can't be told whether something is refused; empty if it can.
	unknown string
	notes   []string
}

// diagnose judges a situation. The error is that of kubectl if the subject doesn't exist and no request for it was refused.
func diagnose(
	situation *reading.Situation, types *fitting.Types, meter meter, warn func(render.ObjectName) string,
) (*render.Why, error) {
	d := &diagnosis{
		Situation: situation, meter: meter, warn: warn, limits: fitting.LimitsOf(situation.Limits.Views, situation.Limits.Quotas),
	}
	d.link, d.makes = d.Workload()
	d.findRefusals()
	if len(d.Chain) == 0 && d.refused == nil {
		return nil, apierrors.NewNotFound(reading.ResourceOf(d.Subject.GroupVersionKind).GroupResource(), d.Subject.Name)
	}
	if err := d.judge(types); err != nil {
		return nil, err
	}
	return d.answer()
}

// judge compares the workload's need with the rest of the quotas.
func (d *diagnosis) judge(types *fitting.Types) error {
	if !d.makes {
		if d.Target == reading.TargetForeign {
			d.unknown = d.name() + " " + stateOf(d.Chain[0]) + d.targetText()
		}
		return nil
	}
	if cron, ok := d.Chain[0].(*batchv1.CronJob); ok && hasEnded(d.link) { // It is asked about its next run.
		d.link = cron
	}
	object, kind := d.link, reading.KindOf(d.link)
	var err error
	d.demand, err = fitting.Expand(fitting.Manifest{
		Resource: reading.ResourceOf(kind), Kind: kind.Kind, Object: object, Live: object, Present: d.Present,
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
	fitter := fitting.NewFitter(d.meter.evaluators, rules.Admit)
	if d.all, err = fitter.Fit([]fitting.Demand{d.demand}, d.limits); err != nil {
		return err
	}
	d.one, err = fitter.Fit([]fitting.Demand{next(d.demand)}, d.limits)
	return err
}

// isOutdated reports whether the present objects are known only by the status, and that is older than the object's spec.
func (d *diagnosis) isOutdated(object client.Object) bool {
	of, scales := scaleOf(object)
	return d.Present.Unlisted && scales && of.observed < object.GetGeneration()
}

// next is the demand for one more of each object that a controller makes; if all pods are there, for one object that
// they lack.
func next(demand fitting.Demand) fitting.Demand {
	one := fitting.Demand{Kind: demand.Kind, Namespace: demand.Namespace, Name: demand.Name}
	isWhole := demand.Pods == nil || demand.Pods.Missing() == 0
	for _, item := range demand.Items {
		if item.Old == nil && item.When != fitting.AsPodsEnd {
			item.Count = 1
			one.Items = append(one.Items, item)
		}
	}
	if demand.Pods != nil && isWhole {
		one.Items = slices.CompactFunc(one.Items, func(a, b fitting.Item) bool { return a.Kind == b.Kind })
	}
	if !isWhole {
		one.Pods = &fitting.Pods{New: demand.Pods.New, Wanted: 1}
	}
	return one
}

// missing returns how many pods the workload lacks, and of how many; and the other objects that it lacks.
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

// replaces reports whether missing pods replace older pods that are still there.
func (d *diagnosis) replaces() bool { return d.demand.Pods != nil && d.demand.Pods.Replaced() > 0 }

// isCron reports whether the next run of a CronJob is judged.
func (d *diagnosis) isCron() bool {
	_, cron := d.link.(*batchv1.CronJob)
	return d.makes && cron
}

// lacks reports whether anything is missing that may be refused.
func (d *diagnosis) lacks() bool {
	pods, _, others := d.missing()
	return len(d.Chain) == 0 || d.makes && (pods > 0 || len(others) > 0 || d.isCron() && len(d.all.Rows)+len(d.all.Refusals) > 0)
}

// quotas returns the need of each quota, without its holders: of the quotas that are short, and of the quotas that refused.
func (d *diagnosis) quotas() []render.WhyQuota {
	latest, refused := d.latest()
	var found []render.WhyQuota
	for i := range d.limits {
		limit := &d.limits[i]
		if limit.Admits != "" {
			continue
		}
		quota := render.WhyQuota{Quota: quotaName(limit)}
		for _, row := range d.all.Rows {
			if row.Limit.Name == limit.Name && row.Limit.Source == limit.Source {
				quota.Rows = append(quota.Rows, d.judged(limit, row))
			}
		}
		isLatest := refused && d.isBy(limit, latest.Words)
		d.amend(&quota, limit)
		quota.Surge = d.surge(limit)
		if len(quota.Rows) > 0 && (isLatest || quota.IsShort() || quota.IsUncounted()) {
			found = append(found, quota)
		}
	}
	return found
}

// waiting returns the views' entries for controllers of the chain that wait.
func (d *diagnosis) waiting() []render.WhyWaiting {
	var found []render.WhyWaiting
	for i := range d.Limits.Views {
		view := &d.Limits.Views[i]
		blocked := meta.FindStatusCondition(view.Status.Conditions, quotav1.ConditionBlocked)
		for _, owner := range view.Status.Waiting {
			if slices.ContainsFunc(d.Chain, func(link client.Object) bool {
				return nameOf(link) == render.ObjectName{Kind: owner.Kind, Name: owner.Name}
			}) {
				found = append(found, render.WhyWaiting{
					ObjectName: render.ObjectName{Kind: owner.Kind, Name: owner.Name},
					Quota:      string(fitting.Shared) + "/" + view.Name, Since: owner.Since, Short: owner.Short,
					Woken: blocked != nil && strings.Contains(blocked.Message, quotav1.WokenWhenItFits),
				})
			}
		}
	}
	return found
}

// woken returns when the operator told the link's controller last that there is room.
func woken(link client.Object) *metav1.Time {
	at, err := time.Parse(time.RFC3339, link.GetAnnotations()[quotav1.RoomAnnotation])
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// isOwn reports whether the subject's controllers made an object.
func (d *diagnosis) isOwn(object client.Object) bool {
	isOwner := func(owner client.Object) bool { return metav1.IsControlledBy(object, owner) }
	return slices.ContainsFunc(d.Chain, isOwner) ||
		slices.ContainsFunc(d.Present.ReplicaSets, func(set *appsv1.ReplicaSet) bool { return isOwner(set) })
}

// amend raises the need of a limit to the amount that was requested of it: other webhooks may add to objects.
func (d *diagnosis) amend(quota *render.WhyQuota, limit *fitting.Limit) {
	for _, refused := range slices.Concat(d.refused...) {
		if !d.isBy(limit, refused.Words) || !d.trusts(refused) {
			continue
		}
		for name, requested := range refused.Requested {
			d.raise(quota, limit, name, requested)
		}
	}
	slices.SortFunc(quota.Rows, func(a, b render.WhyRow) int { return cmp.Compare(a.Resource, b.Resource) })
}

// trusts reports whether a message shows the need of objects. If the template was changed afterwards, it doesn't.
func (d *diagnosis) trusts(refused reading.Refused) bool {
	return len(refused.Requested) > 0 && (!d.makes || !templateChange(d.Maker()).After(refused.Last))
}

// templateChange returns when a workload was changed in a way that may have changed its template; zero if it wasn't.
func templateChange(object client.Object) time.Time {
	var changed time.Time
	switch object.(type) {
	case *appsv1.ReplicaSet, *batchv1.Job: // Theirs stays as it was.
		return changed
	}
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:template"`) {
			changed = later(changed, entry.Time.Time)
		}
	}
	return changed
}

// raise makes a row have at least the requested amount of its resource.
func (d *diagnosis) raise(quota *render.WhyQuota, limit *fitting.Limit, name corev1.ResourceName, requested resource.Quantity) {
	at := slices.IndexFunc(quota.Rows, func(row render.WhyRow) bool { return row.Resource == name })
	if at < 0 {
		quota.Rows = append(quota.Rows, d.row(limit, name, requested, d.forAll(requested)))
		return
	}
	row := &quota.Rows[at]
	one, all := row.One, row.All
	if one.Cmp(requested) < 0 {
		if all = d.forAll(requested); !one.IsZero() {
			all = scaled(row.All, requested, one)
		}
		one = requested
		d.noteOnce(requestsMore(name))
	}
	if all.Cmp(requested) < 0 { // It takes the room that others free on the way, and was refused all the same.
		all = requested
	}
	*row = d.row(limit, name, one, all)
}

// forAll returns the need of all missing pods for a resource that their template doesn't request. In a rollout older
// ones make room for them, so a single one matters.
func (d *diagnosis) forAll(requested resource.Quantity) resource.Quantity {
	all := requested.DeepCopy()
	if pods, _, _ := d.missing(); pods > 1 && !d.replaces() {
		all.Mul(pods)
	}
	return all
}

// scaled returns the amount, times by how much the one is larger than the other.
func scaled(amount, larger, smaller resource.Quantity) resource.Quantity {
	product := new(big.Int).Mul(big.NewInt(amount.MilliValue()), big.NewInt(larger.MilliValue()))
	product.Quo(product, big.NewInt(smaller.MilliValue()))
	if !product.IsInt64() {
		return *resource.NewQuantity(math.MaxInt64, larger.Format)
	}
	return *resource.NewMilliQuantity(product.Int64(), larger.Format)
}

func (d *diagnosis) noteOnce(note string) {
	if !slices.Contains(d.notes, note) {
		d.notes = append(d.notes, note)
	}
}
