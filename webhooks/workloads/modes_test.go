// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func moded(limit limit, mode quotav1.EnforcementMode) limit {
	limit.enforcement = mode
	return limit
}

func TestWhatAQuotaDoesNotEnforceIsNotRefused(t *testing.T) {
	const (
		audit, warn = quotav1.EnforcementAudit, quotav1.EnforcementWarn
		short       = "quota payments: 3 of 8 pods fit now, short of pods 5" + why
		shortWarned = "quota payments only warns: 3 of 8 pods fit now, short of pods 5" + why
	)
	pods := payments(quotav1.PreflightDeny, list("pods", "8"), list("pods", "5"))
	workload := creation("deployments", deployment(8, "cpu", "1"))
	for name, test := range map[string]answerTest{
		"Audit: nothing is said":              {limits: []limit{moded(pods, audit)}, request: workload},
		"Warn: it is said that it only warns": {limits: []limit{moded(pods, warn)}, request: workload, want: []string{shortWarned}},
		"all is told of a quota that warns, after what is refused": {
			limits: []limit{
				{name: "a", hard: list("pods", "6"), used: list("pods", "6"), enforcement: warn},
				payments("", list("pods", "8"), list("pods", "5")),
			},
			request: workload,
			want: []string{
				short, "quota a only warns: 8 pods can never fit (0 fit now), because that is more than the limit: pods 8 of 6" + why,
			},
		},
		"what a pod would have to state": {
			limits:  []limit{moded(payments(quotav1.PreflightDeny, list("limits.cpu", "8"), list("limits.cpu", "5")), warn)},
			request: creation("deployments", deployment(8)),
			want:    []string{"its pods would be refused: failed quota: payments: must specify limits.cpu for: main (the quota only warns)" + why},
		},
		"a LimitRange refuses all the same": {
			limits: []limit{moded(pods, warn)},
			world: func(w *world) {
				w.surroundings.LimitRanges = []corev1.LimitRange{{
					Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: list("cpu", "1")}}},
				}}
				w.surroundings.LimitRanges[0].Namespace = "checkout"
			},
			request: creation("deployments", deployment(1, "cpu", "2")),
			want:    []string{"its pods will be refused: maximum cpu usage per Container is 1.  No limit is specified" + why},
		},
		"a rollout that would be stuck": {
			limits:  []limit{moded(payments("", list("pods", "8"), list("pods", "8")), warn)},
			request: update("deployments", running(2), surging(deployment(2, "cpu", "1"), 1, 0)),
			want:    []string{"quota payments only warns: the rollout would be stuck, short of pods 1" + why},
		},
		"a quota that isn't counted": {
			limits: []limit{moded(payments(quotav1.PreflightDeny, list("pods", "8"), nil), warn)}, request: creation("deployments", deployment(1)),
			want: []string{"quota payments only warns: it is not known whether the workload's pods fit: usage is still being counted; not known: pods" + why},
		},
	} {
		t.Run(name, test.run)
	}
}

// The event tells that objects are refused.
func TestNoEventTellsOfWhatAQuotaOnlyWarnsOf(t *testing.T) {
	w := newWorld(t, moded(payments("", list("pods", "8"), list("pods", "5")), quotav1.EnforcementWarn))
	w.handler().Handle(t.Context(), update("deployments", running(1), deployment(8)))
	if len(w.recorder.told) > 0 {
		t.Errorf("told %q", w.recorder.told)
	}
}
