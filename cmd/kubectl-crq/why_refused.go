// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	jobutil "k8s.io/kubernetes/pkg/controller/job/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/internal/fitting"
)

func (d *diagnosis) findRefusals() {
	if len(d.Chain) == 0 {
		resource := reading.ResourceOf(d.Subject.GroupVersionKind).GroupResource()
		if refused := reading.RefusedByName(resource, d.Subject.Name, d.Events); len(refused) > 0 {
			d.refused = [][]reading.Refused{refused}
		}
		return
	}
	for _, link := range d.Chain {
		d.refused = append(d.refused, d.refusedOf(link))
	}
	d.followPods()
}

// followPods adds to the chain the first of the pods for which the creation of an object was refused. It stands for all
// pods with the same refusal.
func (d *diagnosis) followPods() {
	var refused []reading.Refused
	for i := range d.Pods {
		pod := &d.Pods[i]
		if !d.isOwn(pod) || pod.Status.Phase == corev1.PodRunning {
			continue
		}
		of := d.refusedOf(pod)
		for _, one := range of {
			refused = reading.Join(refused, one)
		}
		switch {
		case len(of) == 0:
		case len(d.Chain) == len(d.refused):
			d.Chain = append(d.Chain, pod)
		default:
			d.alike++
		}
	}
	if len(d.Chain) > len(d.refused) {
		d.refused = append(d.refused, refused)
	}
}

// refusedOf returns the refusals of a link that may still hold. A Job that has ended asks for nothing.
func (d *diagnosis) refusedOf(link client.Object) []reading.Refused {
	if hasEnded(link) {
		return nil
	}
	return reading.RefusedOf(link, reading.KindOf(link).Kind, d.Events, d.succeeded(link))
}

func hasEnded(link client.Object) bool {
	job, isJob := link.(*batchv1.Job)
	return isJob && jobutil.IsJobFinished(job)
}

// settling is how far the events, the objects and the status of one attempt may be apart.
const settling = 5 * time.Second

// succeeded returns when the controller of an object succeeded last, as far as is known. Refusals before that are over.
func (d *diagnosis) succeeded(object client.Object) time.Time {
	at := d.newestOf(object)
	if isServed(object) {
		at = later(at, d.meter.now)
	}
	return at.Add(-settling)
}

// newestOf returns when the newest object was created that another one controls.
func (d *diagnosis) newestOf(object client.Object) time.Time {
	var newest time.Time
	note := func(made client.Object) {
		if metav1.IsControlledBy(made, object) {
			newest = later(newest, made.GetCreationTimestamp().Time)
		}
	}
	for i := range d.Pods {
		note(&d.Pods[i])
	}
	for i := range d.Claims {
		note(&d.Claims[i])
	}
	for _, set := range d.Present.ReplicaSets {
		note(set)
	}
	for _, link := range d.Chain {
		note(link)
	}
	return newest
}

// isServed reports whether a controller says that none of its requests was refused last. Most have no word for it.
func isServed(object client.Object) bool {
	switch object.(type) {
	case *appsv1.ReplicaSet, *corev1.ReplicationController:
		return len(reading.RefusedByConditions(object)) == 0
	}
	return false
}

// latest returns the latest refusal, if there was one.
func (d *diagnosis) latest() (reading.Refused, bool) {
	var latest reading.Refused
	for _, refused := range d.refused {
		if len(refused) > 0 && refused[0].Last.After(latest.Last) {
			latest = refused[0]
		}
	}
	return latest, !latest.Last.IsZero()
}

// unseen returns the name of a quota that refused and that the user can't read.
func (d *diagnosis) unseen() (string, bool) {
	for _, refused := range slices.Concat(d.refused...) {
		if refused.Quota != "" && d.source(refused.Words) == "" {
			return refused.Quota, true
		}
	}
	return "", false
}

// isBy reports whether the words are those of the limit. A ClusterResourceQuota and a ResourceQuota of one name are
// told apart by their limits.
func (d *diagnosis) isBy(limit *fitting.Limit, words reading.Words) bool {
	return limit.Name == words.Quota && limit.Source == d.source(words)
}

// source returns the kind of the quota that refused; empty if there is no such quota in the namespace now.
func (d *diagnosis) source(words reading.Words) fitting.Source {
	var sources []fitting.Source
	for _, limit := range d.limits {
		if limit.Name != words.Quota {
			continue
		}
		sources = append(sources, limit.Source)
		if len(words.Limited) > 0 && quota.Equals(words.Limited, quota.Mask(limit.Spec.Hard, quota.ResourceNames(words.Limited))) {
			return limit.Source
		}
	}
	if len(sources) == 0 {
		return ""
	}
	return sources[0]
}

// refuser names the quota that refused: crq/NAME, quota/NAME, or as it was named if neither is there now.
func (d *diagnosis) refuser(words reading.Words) string {
	if source := d.source(words); source != "" {
		return string(source) + "/" + words.Quota
	}
	return words.Quota
}
