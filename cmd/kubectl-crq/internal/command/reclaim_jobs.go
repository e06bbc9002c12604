// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// finishedJobs finds Jobs that have ended. What they and their pods still use is for the evaluators to say.
func (f *finder) finishedJobs() ([]candidate, error) {
	var found []candidate
	for i := range f.Jobs {
		job := &f.Jobs[i]
		ended, how := endOf(job)
		if ended.IsZero() || !f.isOld(ended) || job.DeletionTimestamp != nil {
			continue
		}
		one := candidate{
			finding: render.Finding{
				ObjectName: render.ObjectName{Kind: "Job", Name: job.Name}, Finding: render.JobFinished,
				Message: how + " " + f.ago(ended) + " ago, and still counts.", Since: &metav1.Time{Time: ended},
			},
			holds: append([]held{{batchv1.Resource("jobs"), job}}, f.podsHeld(f.pods[job.UID])...),
		}
		offer(&one.finding, job, kubectl(job.Namespace, "delete", "job/"+job.Name), "the logs of its pods are lost.")
		found = append(found, one)
	}
	return found, nil
}

// endOf returns when a Job ended, and how; zero if it hasn't.
func endOf(job *batchv1.Job) (at time.Time, how string) {
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type { //nolint:exhaustive // other conditions don't end it
		case batchv1.JobComplete:
			return condition.LastTransitionTime.Time, "completed"
		case batchv1.JobFailed:
			return condition.LastTransitionTime.Time, "failed"
		}
	}
	return time.Time{}, ""
}

func (f *finder) ago(at time.Time) string { return duration.HumanDuration(f.meter.now.Sub(at)) }
