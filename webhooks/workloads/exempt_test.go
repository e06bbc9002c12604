// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

// run is a CronJob, so many of whose runs are under way.
func run(parallelism int32, active int) *batchv1.CronJob {
	cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "checkout", Name: "search", UID: "workload"}}
	cron.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent
	cron.Spec.JobTemplate.Spec = batchv1.JobSpec{Parallelism: &parallelism, Template: template()}
	cron.Status.Active = make([]corev1.ObjectReference, active)
	return cron
}

func managedBy(cron *batchv1.CronJob, controller string) *batchv1.CronJob {
	cron.Spec.JobTemplate.Spec.ManagedBy = &controller
	return cron
}

func deleted(deployment *appsv1.Deployment) *appsv1.Deployment {
	made := deployment.DeepCopy()
	made.DeletionTimestamp = ptr.To(metav1.Now())
	return made
}

// by is a request of another user.
func by(user string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	request.UserInfo.Username = user
	return request
}

func withDevices(deployment *appsv1.Deployment) *appsv1.Deployment {
	deployment.Spec.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("gpu")}}
	return deployment
}

func TestDenyLetsPassWhatMakesNothing(t *testing.T) {
	full := []limit{payments(quotav1.PreflightDeny, list("pods", "5"), list("pods", "3"))}
	for name, test := range map[string]answerTest{
		"a Deployment that is being deleted": {
			limits: full, request: update("deployments", deleted(running(3)), scaledTo(deleted(running(3)), 9)),
		},
		"a CronJob whose runs another controller manages": {
			limits: full, request: creation("cronjobs", managedBy(run(100, 0), "kueue.x-k8s.io/multikueue")),
		},
	} {
		t.Run(name, test.run)
	}
}

func TestAnAutoscalerGetsWhatFits(t *testing.T) {
	deny := []limit{payments(quotav1.PreflightDeny, list("pods", "9"), list("pods", "7"))}
	five := func(w *world) { w.live = []client.Object{running(5)} }
	const short = "quota payments: 7 of 8 pods fit now, short of pods 1" + why
	for name, test := range map[string]answerTest{
		"its controller": {limits: deny, world: five, request: by(autoscalerAccount, scaling(8)), want: []string{short}},
		"its controller, without an account of its own": {limits: deny, world: five, request: by(controllersAccount, scaling(8)), want: []string{short}},
		"a person":                     {limits: deny, world: five, request: by("jane", scaling(8)), denied: short},
		"its controller, but no scale": {limits: deny, request: by(autoscalerAccount, creation("deployments", deployment(3))), denied: "quota payments: 2 of 3 pods fit now, short of pods 1" + less},
	} {
		t.Run(name, test.run)
	}
}

func TestARunIsJudgedWhileAnotherIsUnderWay(t *testing.T) {
	few := []limit{payments(quotav1.PreflightDeny, list("pods", "200"), list("pods", "195"))}
	const see = "; see kubectl crq why cronjob/search -n checkout"
	for name, test := range map[string]answerTest{
		"none is under way": {
			limits: few, request: update("cronjobs", run(1, 0), run(100, 0)), denied: "quota payments: a run doesn't fit now, short of pods 95" + see,
		},
		"one is, which frees something when it ends": {
			limits: few, request: update("cronjobs", run(1, 1), run(100, 1)), want: []string{"quota payments: a run may not fit now, short of pods 95" + see},
		},
	} {
		t.Run(name, test.run)
	}
}

// invalid is a quota of which this release can't enforce the spec.
func invalid() definition.Definition {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "broken", UID: "uid", Generation: 1}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
	quota.Spec.Quota.Hard = list("pods", "8")
	quota.Spec.Quota.Scopes = []corev1.ResourceQuotaScope{"Nonsense"}
	return definition.Salvage(quota)
}

func TestWhyAQuotaIsNotJudgedIsSaid(t *testing.T) {
	few := payments(quotav1.PreflightDeny, list("pods", "8"), list("pods", "5"))
	devices := list("gpu.deviceclass.resource.k8s.io/devices", "2")
	const not = ": it is not known whether the workload's pods fit: "
	for name, test := range map[string]answerTest{
		"a spec that can't be enforced": {
			limits: []limit{few}, world: func(w *world) { w.definitions = append(w.definitions, invalid()) },
			request: creation("deployments", deployment(3)),
			want:    []string{"quota broken" + not + "the quota's spec is not valid for this version of the operator; not known: pods" + why},
		},
		"a spec that is newer than what this process knows": {
			limits: []limit{few}, request: creation("deployments", deployment(3)),
			world: func(w *world) {
				state := w.ledgers["payments"]
				state.Generation++
				w.ledgers["payments"] = state
			},
			want: []string{"quota payments" + not + "the quota's spec has just changed; not known: pods" + why},
		},
		"a quota of devices": {
			limits: []limit{payments(quotav1.PreflightDeny, devices, devices)}, request: creation("deployments", withDevices(deployment(3))),
			want: []string{"quota payments" + not + "the quota limits devices, and ResourceClaimTemplates aren't read" + why},
		},
		"a quota of devices, if nothing is made": {
			limits: []limit{payments("", devices, devices)}, request: update("deployments", withDevices(running(3)), scaledTo(withDevices(running(3)), 2)),
		},
		"a quota of devices that is short of something else, too": {
			limits:  []limit{payments(quotav1.PreflightDeny, list("pods", "8", "gpu.deviceclass.resource.k8s.io/devices", "2"), list("pods", "6"))},
			request: creation("deployments", withDevices(deployment(3))),
			denied:  "quota payments: at most 2 of 3 pods fit now, short of pods 1" + less,
		},
		"no pods, but a ReplicaSet": {
			limits:  []limit{payments("", list("count/replicasets.apps", "2"), list("count/replicasets.apps", "2"))},
			request: creation("deployments", deployment(0)),
			want:    []string{"quota payments: what is made besides pods doesn't fit now, short of count/replicasets.apps 1" + why},
		},
	} {
		t.Run(name, test.run)
	}
}
