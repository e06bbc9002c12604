// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"slices"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// finding is the result for one quota.
type finding struct {
	quota string
	mode  quotav1.PreflightMode
	// unknown says why the quota's ledger doesn't show its rest; empty if it
	// does.
	unknown string
	// unjudged says why nothing may be said to fit; empty if it may.
	unjudged string
	verdict  fitting.Verdict
	room     fitting.Room
	// more: the request asks for more of a short resource than was asked for
	// before.
	more bool
	// unsure: there may be more of the workload, or be freed, than is known. So a workload that is short may fit.
	unsure bool
	// atLeast: more pods may fit than room says.
	atLeast bool
	// onlyWarns: the quota refuses nothing.
	onlyWarns bool
	// certain are the refusals that are certain even if the quota only warns, because they come from no quota.
	certain []fitting.Refusal
	// run: the workload makes no pods at once. It is a CronJob, and a run of it is judged.
	run bool
}

// isShort reports whether not all fits now.
func (f *finding) isShort() bool { return f.verdict.Outcome() == fitting.DoesNot }

// denies reports whether the quota refuses the request.
func (f *finding) denies() bool {
	return f.mode == quotav1.PreflightDeny && f.isShort() && f.more && !f.unsure
}

// waits reports whether a rollout goes through, but without its whole surge.
func (f *finding) waits() bool {
	return !f.isShort() && slices.ContainsFunc(f.verdict.Rows, waits)
}

// isOnlySurge reports whether there is nothing to say but that a rollout takes surge, and fits.
func (f *finding) isOnlySurge() bool {
	return f.unjudged == "" && f.verdict.Outcome() == fitting.Fits && !f.waits() && slices.ContainsFunc(f.verdict.Rows, takesSurge)
}

// outcome is that of a finding that is told, and isn't short.
func (f *finding) outcome() metrics.Preflight {
	switch {
	case f.isOnlySurge():
		return metrics.PreflightFits
	case f.unjudged == "" && f.waits():
		return metrics.PreflightWarned
	default:
		return metrics.PreflightUnjudged
	}
}

// worst orders findings: refusals, workloads that can never fit, the fewest pods, the rest, and findings of quotas that
// only warn.
func worst(a, b finding) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.part(), b.part()), cmp.Compare(a.quota, b.quota))
}

func (f *finding) rank() int {
	const last = 4
	switch {
	case f.onlyWarns:
		return last
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

// shortages are the names of the quotas of which something is short that they enforce.
func shortages(findings []finding) []string {
	var names []string
	for i := range findings {
		if findings[i].isShort() && !findings[i].onlyWarns {
			names = append(names, findings[i].quota)
		}
	}
	return names
}
