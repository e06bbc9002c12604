// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestWhyOfOneObject(t *testing.T) {
	claimEvent := corev1.Event{
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "one"}, Reason: "FailedBinding", LastTimestamp: metav1.NewTime(noon),
		Message: "ephemeral volume scratch: create PVC one-scratch: exceeded quota: team, requested: persistentvolumeclaims=1, " +
			"used: persistentvolumeclaims=2, limited: persistentvolumeclaims=2",
	}
	refused := corev1.Event{LastTimestamp: metav1.NewTime(noon), Message: `refused pods "one": exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5`}
	pending := builders.Pod("shop", "one").Obj()
	pending.Status.Phase = corev1.PodPending
	full := view("team", amounts("pods", "5", "persistentvolumeclaims", "2"), amounts("pods", "5", "persistentvolumeclaims", "2"), nil)
	free := view("team", amounts("pods", "5", "persistentvolumeclaims", "2"), amounts("pods", "4", "persistentvolumeclaims", "1"), nil)
	for name, test := range map[string]struct {
		subject string
		object  client.Object
		event   corev1.Event
		view    quotav1.LocalResourceQuota
		want    string
	}{
		"a pod exists":             {"pod/one", pending, corev1.Event{}, full, "Nothing is refused: Pod/one exists, and is pending."},
		"its claim is refused":     {"pod/one", pending, claimEvent, full, "Pod/one exists, and an object that is made for it is refused: crq/team is short of persistentvolumeclaims: 1."},
		"its claim fits now":       {"pod/one", pending, claimEvent, free, "Pod/one exists, and an object that is made for it is refused, and there is room now: its controller tries again by itself."},
		"it was refused":           {"pod/one", nil, refused, full, "Pod/one doesn't exist, because it was refused: crq/team is short of pods: 1."},
		"it fits now":              {"pod/one", nil, refused, free, "Pod/one doesn't exist, because it was refused, and there is room now: create it again."},
		"a Service has no address": {"svc/one", builders.Service("shop", "one").Type(corev1.ServiceTypeLoadBalancer, 80).Obj(), corev1.Event{}, full, "Nothing is refused: Service/one exists, and its load balancer has no address yet."},
	} {
		t.Run(name, func(t *testing.T) {
			scene := &scene{Situation: &reading.Situation{Subject: subjectOf(t, test.subject), Namespace: "shop", Events: []corev1.Event{test.event}}}
			scene.Limits.Views = append(scene.Limits.Views, test.view)
			if test.object != nil {
				scene.Chain = []reading.Link{{Kind: scene.Subject.Kind, Object: test.object}}
			}
			got, err := scene.diagnosed(t)
			if err != nil || got.Summary != test.want {
				t.Errorf("got %v, %v", got.Summary, err)
			}
		})
	}
	t.Run("nobody has heard of it", func(t *testing.T) {
		scene := &scene{Situation: &reading.Situation{Subject: subjectOf(t, "pod/one"), Namespace: "shop"}}
		_, err := scene.diagnosed(t)
		if !apierrors.IsNotFound(err) || err.Error() != `pods "one" not found` {
			t.Errorf("got %v", err)
		}
	})
}

func TestWhyOfACronJob(t *testing.T) {
	cron, job := builders.CronJob("shop", "nightly"), builders.Job("shop", "nightly-1")
	cron.UID, job.UID = "cron", "job"
	for _, spec := range []*batchv1.JobSpec{&cron.Spec.JobTemplate.Spec, &job.Spec} {
		spec.Parallelism, spec.Completions, spec.Suspend = ptr.To[int32](1), ptr.To[int32](1), nil
	}
	kind := func(name string) reading.Kind { return subjectOf(t, name+"/any").Kind }
	chain := []reading.Link{{Kind: kind("cronjob"), Object: cron}, {Kind: kind("job"), Object: job}}
	full, free := view("team", amounts("pods", "1"), amounts("pods", "1"), nil), view("team", amounts("pods", "2"), amounts("pods", "1"), nil)
	const short = "The next run of CronJob/nightly doesn't fit: crq/team is short of pods: 1."
	for name, test := range map[string]struct {
		chain []reading.Link
		ended bool
		view  quotav1.LocalResourceQuota
		want  string
		// change is done to the CronJob.
		change func(*batchv1.CronJob)
	}{
		"no Job yet":         {chain: chain[:1], view: full, want: short},
		"its Job has ended":  {chain: chain, ended: true, view: full, want: short},
		"its Job is refused": {chain: chain, view: full, want: "Job/nightly-1 lacks its pod: crq/team is short of pods: 1."},
		"there is room":      {chain: chain, ended: true, view: free, want: "Nothing is refused: the next run of CronJob/nightly would fit now."},
		"it is suspended": {
			chain: chain, ended: true, view: full, want: "Nothing is refused: CronJob/nightly is suspended, so that no run begins.",
			change: func(cron *batchv1.CronJob) { cron.Spec.Suspend = ptr.To(true) },
		},
		"its policy forbids a run beside the current one": {
			chain: chain[:1], view: full,
			want: "Nothing is refused: a run of CronJob/nightly goes on, and its concurrencyPolicy lets no other one run beside it.",
			change: func(cron *batchv1.CronJob) {
				cron.Spec.ConcurrencyPolicy, cron.Status.Active = batchv1.ForbidConcurrent, []corev1.ObjectReference{{Name: "nightly-1"}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job.Status.Conditions = nil
			if test.ended {
				job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
			}
			scene := &scene{Situation: &reading.Situation{Subject: subjectOf(t, "cj/nightly"), Namespace: "shop", Chain: test.chain}}
			scene.Limits.Views = append(scene.Limits.Views, test.view)
			if test.change != nil {
				changed := cron.DeepCopy()
				test.change(changed)
				scene.Chain = append([]reading.Link{{Kind: test.chain[0].Kind, Object: changed}}, test.chain[1:]...)
			}
			// As long as the Job goes on, it was refused by another webhook; afterwards that is over.
			if test.ended {
				scene.Events = append(scene.Events, refusedEvent("Job", "nightly-1", byMesh, 600))
			}
			got, err := scene.diagnosed(t)
			if err != nil || got.Summary != test.want {
				t.Errorf("got %v, %v", got.Summary, err)
			}
		})
	}
}
