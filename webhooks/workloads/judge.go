// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// finding is what there is to say of one quota.
type finding struct {
	quota string
	mode  quotav1.PreflightMode
	// unknown: the quota's ledger doesn't say what is left.
	unknown bool
	verdict fitting.Verdict
	room    fitting.Room
	// more: the request asks for more of what is short than was asked for before.
	more bool
	// outdated: the workload's status is older than its spec, so there may be more of it than is known.
	outdated bool
	// maybe: what is short rests on claims that may be there already.
	maybe bool
}

// judge returns what there is to say of each quota, which is nothing if the request changes nothing of
// what is asked for.
func (h *Handler) judge(
	ctx context.Context, asked *subject, quotas []definition.Definition, knowledge ledger.Knowledge,
) ([]finding, error) {
	demand, err := asked.expand(asked.after)
	if err != nil {
		return nil, err
	}
	var before *fitting.Demand
	if asked.before != nil {
		// What can't be expanded now was nothing before.
		if earlier, err := asked.expand(*asked.before); err == nil {
			before = &earlier
		}
	}
	rules := fitting.NewRules(h.types, h.Surroundings.Of(ctx, asked.after.Object.GetNamespace()))
	judging := &judging{fitting.NewFitter(h.Evaluators, rules.Complete), demand, before}
	var findings []finding
	for i := range quotas {
		limit, known := h.limit(&quotas[i], demand.Namespace, knowledge)
		found, err := judging.find(limit, known)
		if err != nil {
			return nil, err
		}
		found.quota, found.mode = limit.Name, quotas[i].Preflight
		findings = append(findings, found)
	}
	return findings, nil
}

// expand returns what controllers make of the workload. The object itself is charged by the webhook that
// enforces quotas, at the same time.
func (s *subject) expand(manifest fitting.Manifest) (fitting.Demand, error) {
	demand, err := fitting.Expand(manifest)
	if _, unknown := errors.AsType[*fitting.UnknownNodesError](err); unknown {
		s.unknownNodes = true
		manifest.Present.Nodes = oneNode
		demand, err = fitting.Expand(manifest)
	}
	if err != nil {
		return fitting.Demand{}, err
	}
	return demand.Made(), nil
}

func oneNode(*appsv1.DaemonSet) (int64, bool) { return 1, true }

// limit returns what a quota leaves. It is false if nobody can tell.
func (h *Handler) limit(quota *definition.Definition, namespace string, knowledge ledger.Knowledge) (fitting.Limit, bool) {
	limit := fitting.Limit{Source: fitting.Shared, Name: quota.Quota.Name, Namespaces: []string{namespace}, Spec: quota.Quota.Spec}
	if quota.IsInvalid() {
		return limit, false
	}
	room, unknown := h.Ledgers.Current(quota.Quota.Name).Room(quota.Limits, knowledge)
	if unknown != "" {
		return limit, false
	}
	limit.Spec.Hard, limit.Left = room.Hard, room.Left
	return limit, true
}

// judging judges one workload by one quota after the other.
type judging struct {
	fitter *fitting.Fitter
	demand fitting.Demand
	// before is what was asked for before; nil for nothing.
	before *fitting.Demand
}

func (j *judging) find(limit fitting.Limit, known bool) (finding, error) {
	verdict, err := j.verdict(&j.demand, limit)
	if err != nil {
		return finding{}, err
	}
	if verdict.Outcome() == fitting.Fits && !slices.ContainsFunc(verdict.Rows, waits) {
		return finding{}, nil // there is nothing to say
	}
	earlier, err := j.verdict(j.before, limit)
	if err != nil {
		return finding{}, err
	}
	if j.before != nil && asksTheSame(j.before, &j.demand) && sameNeeds(earlier, verdict) {
		return finding{}, nil
	}
	found := finding{
		verdict: verdict, unknown: !known, outdated: j.demand.Outdated,
		more: j.before == nil || asksMore(earlier, verdict) || len(verdict.Refusals) > 0 && missing(&j.demand) > missing(j.before),
	}
	if verdict.Outcome() == fitting.DoesNot {
		err = j.weigh(&found, limit)
	}
	return found, err
}

// weigh finds out how far what doesn't fit would come, and whether that is sure.
func (j *judging) weigh(found *finding, limit fitting.Limit) error {
	var err error
	if found.room, err = j.fitter.Room(j.demand, limit); err != nil {
		return err
	}
	certain := j.demand
	certain.Items = slices.DeleteFunc(slices.Clone(certain.Items), func(item fitting.Item) bool { return item.EachPod })
	if len(certain.Items) == len(j.demand.Items) {
		return nil
	}
	without, err := j.verdict(&certain, limit)
	found.maybe = without.Outcome() != fitting.DoesNot
	return err
}

func (j *judging) verdict(demand *fitting.Demand, limit fitting.Limit) (fitting.Verdict, error) {
	if demand == nil {
		return fitting.Verdict{}, nil
	}
	return j.fitter.Fit([]fitting.Demand{*demand}, []fitting.Limit{limit})
}

func missing(demand *fitting.Demand) int64 {
	if demand.Pods == nil {
		return 0
	}
	return demand.Pods.Missing()
}

// asksTheSame reports whether two demands are for as many of the same objects.
func asksTheSame(a, b *fitting.Demand) bool {
	if missing(a) != missing(b) || (a.Pods == nil) != (b.Pods == nil) || !apiequality.Semantic.DeepEqual(a.Items, b.Items) {
		return false
	}
	return a.Pods == nil || apiequality.Semantic.DeepEqual(a.Pods.New, b.Pods.New)
}

// sameNeeds reports whether two verdicts are about the same needs.
func sameNeeds(a, b fitting.Verdict) bool {
	return slices.Equal(a.Refusals, b.Refusals) && slices.EqualFunc(a.Rows, b.Rows, func(a, b fitting.Row) bool {
		return a.Resource == b.Resource && a.Requested.Cmp(b.Requested) == 0 &&
			a.InTheEnd.Cmp(b.InTheEnd) == 0 && a.WholeSurge.Cmp(b.WholeSurge) == 0
	})
}

// asksMore reports whether more is short than before, or more is refused.
func asksMore(before, after fitting.Verdict) bool {
	short := map[corev1.ResourceName]fitting.Row{}
	for _, row := range before.Rows {
		short[row.Resource] = row
	}
	return slices.ContainsFunc(after.Rows, func(row fitting.Row) bool {
		return row.Shortfall.Cmp(short[row.Resource].Shortfall) > 0
	}) || slices.ContainsFunc(after.Refusals, func(refusal fitting.Refusal) bool { return !slices.Contains(before.Refusals, refusal) })
}

// isShort reports whether not all fits now.
func (f *finding) isShort() bool { return f.verdict.Outcome() == fitting.DoesNot }

// denies reports whether the quota refuses the request.
func (f *finding) denies() bool {
	return f.mode == quotav1.PreflightDeny && f.isShort() && f.more && !f.outdated && !f.maybe
}

// waits reports whether a rollout goes through, but without its whole surge.
func (f *finding) waits() bool {
	return !f.isShort() && slices.ContainsFunc(f.verdict.Rows, waits)
}

// outcome is that of a finding that is told, and isn't short.
func (f *finding) outcome() metrics.Preflight {
	if f.waits() {
		return metrics.PreflightWarned
	}
	return metrics.PreflightUnjudged
}

// worst orders findings: refusals, what can never fit, the fewest pods, and the rest.
func worst(a, b finding) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.part(), b.part()), cmp.Compare(a.quota, b.quota))
}

func (f *finding) rank() int {
	switch {
	case len(f.verdict.Refusals) > 0:
		return 0
	case f.isShort() && len(f.room.Never) > 0:
		return 1
	case f.isShort():
		return 2
	default:
		return 3
	}
}

// part is which part of the pods fit.
func (f *finding) part() float64 { return float64(f.room.Fit) / float64(max(1, f.room.Wanted)) }

// shortages are the names of the quotas of which something is short.
func shortages(findings []finding) []string {
	var names []string
	for i := range findings {
		if findings[i].isShort() {
			names = append(names, findings[i].quota)
		}
	}
	return names
}
