// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package fitting

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// job runs some pods at once, and more as these end. Pods that have ended stay,
// and a quota may count them.
func (d *Demand) job(m Manifest, job *batchv1.Job) {
	live, _ := m.Live.(*batchv1.Job)
	switch {
	case live != nil && hasEnded(live):
		return
	case ptr.Deref(job.Spec.Suspend, false):
		d.note(suspended("Job", d.Namespace, d.Name))
		return
	case isManagedElsewhere(&job.Spec):
		d.note(managedElsewhere("Job", d.Namespace, d.Name))
		return
	}
	var succeeded int64
	present := int64(len(ownedBy(m.Live, m.Present.Pods)))
	if live != nil {
		succeeded = int64(live.Status.Succeeded)
		if m.Present.Unlisted {
			present = max(0, int64(live.Status.Active))
		}
	}
	atOnce, later := podsOf(&job.Spec, succeeded)
	d.Pods = &Pods{
		New: d.ofTemplate(&job.Spec.Template, m.Present), Wanted: atOnce, Present: present,
	}
	d.add(d.ended(&job.Spec.Template, later, AsPodsEnd))
}

func isManagedElsewhere(spec *batchv1.JobSpec) bool {
	return ptr.Deref(spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName
}

// podsOf returns how many pods run at once, and how many follow these.
func podsOf(spec *batchv1.JobSpec, succeeded int64) (atOnce, later int64) {
	parallelism := int64(ptr.Deref(spec.Parallelism, 1))
	if spec.Completions == nil {
		if succeeded > 0 { // A queue that is empty: no pod follows.
			return 0, 0
		}
		return parallelism, 0
	}
	left := max(0, int64(*spec.Completions)-succeeded)
	atOnce = min(parallelism, left)
	if atOnce == 0 {
		return 0, 0
	}
	return atOnce, left - atOnce
}

// ended are pods that ran to their end after others: nothing but the object is
// left of each.
func (d *Demand) ended(template *corev1.PodTemplateSpec, count int64, when When) Item {
	pod := &corev1.Pod{Spec: *template.Spec.DeepCopy(), Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}
	pod.Namespace = d.Namespace
	return Item{Resource: podResource, Kind: "Pod", Object: pod, Count: count, When: when}
}

func hasEnded(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if condition.Status == corev1.ConditionTrue &&
			(condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
			return true
		}
	}
	return false
}

// cronJob makes nothing at once. One run of it is counted as if it began now: its owner doesn't want a schedule that is
// refused every night. If a run that is under way must end before, its end frees something that isn't known. If the
// present objects were listed, the next run isn't counted then.
func (d *Demand) cronJob(m Manifest, cron *batchv1.CronJob) {
	if ptr.Deref(cron.Spec.Suspend, false) {
		d.note(suspended("CronJob", d.Namespace, d.Name))
		return
	}
	live, _ := m.Live.(*batchv1.CronJob)
	alone := cron.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent
	if running := live != nil && len(live.Status.Active) > 0; running && alone {
		if !m.Present.Unlisted {
			return
		}
		d.Unsure = true
	}
	d.note(oneRun(d.Namespace, d.Name, alone))
	run := &batchv1.Job{}
	run.Namespace = d.Namespace
	d.add(Item{Resource: jobResource, Kind: "Job", Object: run, Count: 1, When: AtEachRun})
	spec := &cron.Spec.JobTemplate.Spec
	if ptr.Deref(spec.Suspend, false) {
		return
	}
	if isManagedElsewhere(spec) {
		d.note(managedElsewhere("CronJob", d.Namespace, d.Name))
		return
	}
	atOnce, later := podsOf(spec, 0)
	for _, item := range d.ofTemplate(&spec.Template, m.Present) {
		item.Count, item.When = atOnce, AtEachRun
		d.add(item)
	}
	d.add(d.ended(&spec.Template, later, AtEachRun))
}
