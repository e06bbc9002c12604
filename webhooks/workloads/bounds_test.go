// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// claiming has pods with so many claims of devices, each of a template of its own.
func claiming(deployment *appsv1.Deployment, claims int) *appsv1.Deployment {
	spec := &deployment.Spec.Template.Spec
	for i := range claims {
		spec.ResourceClaims = append(spec.ResourceClaims,
			corev1.PodResourceClaim{Name: fmt.Sprint("claim-", i), ResourceClaimTemplateName: ptr.To(fmt.Sprint("devices-", i))})
	}
	return deployment
}

func mounting(deployment *appsv1.Deployment, volumes int) *appsv1.Deployment {
	spec := &deployment.Spec.Template.Spec
	for i := range volumes {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: fmt.Sprint("volume-", i)})
	}
	return deployment
}

func TestAWorkloadOfTooManyPartsIsLetPass(t *testing.T) {
	few := []limit{payments("", list("pods", "8"), list("pods", "5"))}
	not := []string{"the operator did not check whether the workload's pods fit into the quotas: its pods have more than 500 containers, volumes and claims; check it with kubectl crq fit -f FILE"}
	short := []string{"quota payments: 3 of 8 pods fit now, short of pods 5" + why}
	for name, test := range map[string]answerTest{
		"claims":                 {limits: few, request: creation("deployments", claiming(deployment(8), 30000)), want: not},
		"volumes":                {limits: few, request: creation("deployments", mounting(deployment(8), 500)), want: not},
		"claims that were there": {limits: few, request: update("deployments", claiming(running(2), 501), deployment(8)), want: not},
		"not too many":           {limits: few, request: creation("deployments", mounting(deployment(8), 499)), want: short},
	} {
		t.Run(name, test.run)
	}
}

// As many are judged at once as there are processors. Others wait a moment, and are let pass.
func TestARequestIsLetPassWhileOthersAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newWorld(t, payments("", list("pods", "8"), list("pods", "5"))).handler()
		for range runtime.GOMAXPROCS(0) {
			if _, err := handler.turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		got := handler.answer(t.Context(), creation("deployments", deployment(8)))
		if fmt.Sprint(got.warnings) != "[the operator did not check whether the workload's pods fit into the quotas: too many others are being judged; check it with kubectl crq fit -f FILE]" ||
			got.outcome != metrics.PreflightUnjudged {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTurnsEnd(t *testing.T) {
	handler := newWorld(t, payments("", list("pods", "8"), list("pods", "5"))).handler()
	for range 3 * runtime.GOMAXPROCS(0) {
		if got := handler.answer(t.Context(), creation("deployments", deployment(8))); got.outcome != metrics.PreflightWarned {
			t.Fatalf("got %+v", got)
		}
	}
}

// After two seconds the caller waits no longer.
func TestARequestIsLetPassThatTakesTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, payments("", list("pods", "8"), list("pods", "5")))
		w.slow = true
		got := w.handler().Handle(t.Context(), creation("deployments", deployment(8)))
		if fmt.Sprint(got.Warnings) != "[the operator did not check whether the workload's pods fit into the quotas: it took too long; check it with kubectl crq fit -f FILE]" || !got.Allowed {
			t.Errorf("got %+v", got)
		}
	})
}
