// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// judge returns the finding of each quota; none if the request doesn't change the demand.
func (h *Handler) judge(
	ctx context.Context, asked *subject, quotas []definition.Definition, covered namespaces.Covered,
) ([]finding, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	demand, err := asked.expand(asked.after)
	if err != nil {
		return nil, err
	}
	var before *fitting.Demand
	if asked.before != nil {
		// A workload that can't be expanded now was nothing before.
		if earlier, err := asked.expand(*asked.before); err == nil {
			before = &earlier
		}
	}
	rules := fitting.NewRules(h.types, h.Surroundings.Of(ctx, asked.after.Object.GetNamespace()))
	judging := &judging{fitting.NewFitter(h.Evaluators, rules.Complete), demand, before}
	var findings []finding
	for i := range quotas {
		if ctx.Err() != nil {
			return nil, errLate
		}
		quota := &quotas[i]
		limit, unknown := h.limit(quota, demand.Namespace, covered.Of(quota.Limits.Name))
		found, err := judging.find(limit)
		if err != nil {
			found = finding{unjudged: err.Error()}
		}
		found.quota, found.unknown, found.mode = limit.Name, unknown, quota.Preflight
		if !quota.Enforcement.Refuses() {
			found.mode, found.onlyWarns, found.certain = quotav1.PreflightWarn, true, judging.certain()
		}
		findings = append(findings, found)
	}
	return findings, nil
}

// expand returns the objects that controllers make of the workload. The object itself is charged by the webhook that
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

// limit returns a quota's rest, or why it is unknown.
func (h *Handler) limit(quota *definition.Definition, namespace string, knowledge ledger.Knowledge) (limit fitting.Limit, unknown string) {
	limit = fitting.Limit{Source: fitting.Shared, Name: quota.Quota.Name, Namespaces: []string{namespace}, Spec: quota.Quota.Spec}
	if quota.IsInvalid() {
		return limit, explanation(ledger.InvalidSpec)
	}
	room, reason := h.Ledgers.Current(quota.Quota.Name).Room(quota.Limits, knowledge)
	if reason != "" {
		return limit, explanation(reason)
	}
	limit.Spec.Hard, limit.Left, limit.Surge = room.Hard, room.Left, room.Surge
	return limit, ""
}

// judging judges one workload by one quota after the other.
type judging struct {
	fitter *fitting.Fitter
	demand fitting.Demand
	// before is the demand before; nil for none.
	before *fitting.Demand
}

// certain are the refusals that come from no quota.
func (j *judging) certain() []fitting.Refusal {
	verdict, err := j.fitter.Fit([]fitting.Demand{j.demand}, nil)
	if err != nil {
		return nil
	}
	return verdict.Refusals
}

func (j *judging) find(limit fitting.Limit) (finding, error) {
	verdict, err := j.verdict(&j.demand, limit)
	if err != nil {
		return finding{}, err
	}
	unjudged, err := j.unjudged(limit)
	if err != nil {
		return finding{}, err
	}
	if unjudged == "" && isSilent(verdict) {
		return finding{}, nil
	}
	earlier, err := j.verdict(j.before, limit)
	if err != nil {
		return finding{}, err
	}
	if j.before != nil && asksTheSame(j.before, &j.demand) && sameNeeds(earlier, verdict) {
		return finding{}, nil
	}
	found := finding{
		verdict: verdict, unjudged: unjudged, more: j.asksMore(earlier, verdict),
		run: j.demand.Pods == nil, unsure: j.demand.Unsure || j.demand.Unpriced != "",
	}
	if verdict.Outcome() == fitting.DoesNot {
		err = j.weigh(&found, limit)
	}
	return found, err
}

// isSilent reports whether there is nothing to say of a verdict.
func isSilent(verdict fitting.Verdict) bool {
	return verdict.Outcome() == fitting.Fits && !slices.ContainsFunc(verdict.Rows, waits) && !slices.ContainsFunc(verdict.Rows, takesSurge)
}

// asksMore reports whether more is short than before, or more is refused.
func (j *judging) asksMore(earlier, verdict fitting.Verdict) bool {
	return j.before == nil || isShorter(earlier, verdict) || len(verdict.Refusals) > 0 && missing(&j.demand) > missing(j.before)
}

// unjudged says why nothing may be said to fit into a quota: the objects may cost more than is charged.
func (j *judging) unjudged(limit fitting.Limit) (string, error) {
	if len(j.demand.Unread) > 0 && limitsDevices(limit) && (j.demand.Pods == nil || missing(&j.demand) > 0) {
		return outcomes.JudgingDevices.Text(), nil
	}
	if j.demand.Unpriced == "" {
		return "", nil
	}
	touches, err := j.fitter.Touches(j.demand, limit)
	if err != nil || !touches {
		return "", err
	}
	return j.demand.Unpriced, nil
}

func limitsDevices(limit fitting.Limit) bool {
	for name := range limit.Spec.Hard {
		if strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) ||
			strings.HasPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass) {
			return true
		}
	}
	return false
}

// weigh finds out how far a workload that doesn't fit would come, and whether that is sure. It isn't if it rests on
// objects that may be there already, or on older pods that are made before they are replaced: if these are refused, the
// rollout goes on without them. Nor is it of a rollout under a quota that is above its limit, if the surge suffices: its pods
// may replace others, or be made after others have gone.
func (j *judging) weigh(found *finding, limit fitting.Limit) error {
	var err error
	if found.room, err = j.fitter.Room(j.demand, limit); err != nil {
		return err
	}
	certain := j.demand
	certain.Items = slices.DeleteFunc(slices.Clone(certain.Items), func(item fitting.Item) bool { return item.Maybe })
	if certain.Pods != nil {
		certain.Pods = ptr.To(*certain.Pods)
		certain.Pods.Grows = 0
	}
	without, err := j.verdict(&certain, limit)
	if err != nil {
		return err
	}
	mayTakeSurge, err := j.mayTakeSurge(without, limit)
	if err != nil {
		return err
	}
	found.unsure = found.unsure || without.Outcome() != fitting.DoesNot || mayTakeSurge
	room, err := j.fitter.Room(certain, limit)
	found.atLeast = found.unsure || room.Fit > found.room.Fit
	return err
}

// mayTakeSurge reports whether a rollout would fit if all of its pods replaced others, and each of them may or may not.
func (j *judging) mayTakeSurge(verdict fitting.Verdict, limit fitting.Limit) (bool, error) {
	pods := j.demand.Pods
	if limit.Surge == nil || pods == nil || pods.Replaced() == 0 || pods.Surge == 0 || pods.Unavailable == 0 ||
		slices.ContainsFunc(verdict.Rows, func(row fitting.Row) bool { return !row.Shortfall.IsZero() && row.Available.Sign() >= 0 }) {
		return false, nil
	}
	limit.Left = quota.Add(limit.Left, quota.Mask(limit.Surge, quota.ResourceNames(limit.Left)))
	all, err := j.verdict(&j.demand, limit)
	return all.Outcome() == fitting.Fits, err
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

// asksTheSame reports whether two demands are for as many of the same objects. If other numbers of pods are wanted,
// they aren't, though as many may be missing: of a StatefulSet that is scaled down, the missing pods aren't known.
func asksTheSame(a, b *fitting.Demand) bool {
	if (a.Pods == nil) != (b.Pods == nil) || !apiequality.Semantic.DeepEqual(a.Items, b.Items) {
		return false
	}
	return a.Pods == nil || a.Pods.Wanted == b.Pods.Wanted && missing(a) == missing(b) &&
		apiequality.Semantic.DeepEqual(a.Pods.New, b.Pods.New)
}

// sameNeeds reports whether two verdicts are about the same needs.
func sameNeeds(a, b fitting.Verdict) bool {
	return slices.Equal(a.Refusals, b.Refusals) && slices.EqualFunc(a.Rows, b.Rows, func(a, b fitting.Row) bool {
		return a.Resource == b.Resource && a.Requested.Cmp(b.Requested) == 0 &&
			a.InTheEnd.Cmp(b.InTheEnd) == 0 && a.WholeSurge.Cmp(b.WholeSurge) == 0
	})
}

// isShorter reports whether more is short than before, or something else is refused.
func isShorter(before, after fitting.Verdict) bool {
	short := map[corev1.ResourceName]fitting.Row{}
	for _, row := range before.Rows {
		short[row.Resource] = row
	}
	return slices.ContainsFunc(after.Rows, func(row fitting.Row) bool {
		return row.Shortfall.Cmp(short[row.Resource].Shortfall) > 0
	}) || slices.ContainsFunc(after.Refusals, func(refusal fitting.Refusal) bool { return !slices.Contains(before.Refusals, refusal) })
}
