// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// finishedJobs finds Jobs that have ended. The evaluators say how much they and their pods still use.
func (f *finder) finishedJobs() []candidate {
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
	return found
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

// services finds Services that have had no ready endpoint for long, and that no workload wants to serve.
func (f *finder) services() []candidate {
	var found []candidate
	for i := range f.Services {
		service := &f.Services[i]
		if service.Spec.Type == corev1.ServiceTypeExternalName || service.DeletionTimestamp != nil ||
			!f.isOld(service.CreationTimestamp.Time) || !f.isUnanswered(service) {
			continue
		}
		since := f.unansweredSince(service)
		if !f.isOld(since) {
			continue
		}
		found = append(found, f.unanswered(service, since))
	}
	return found
}

// unanswered is a finding. If nothing says since when, it claims nothing.
func (f *finder) unanswered(service *corev1.Service, since time.Time) candidate {
	kind, what, caution := render.ServiceWithoutEndpoints, "it", "nothing can reach it by its name or address any more."
	if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
		kind, what, caution = render.LoadBalancerWithoutEndpoints, "the load balancer", "its address is lost."
	}
	one := candidate{holds: []held{{corev1.Resource("services"), service}}, finding: render.Finding{
		ObjectName: render.ObjectName{Kind: "Service", Name: service.Name}, Finding: kind,
		Message: "no endpoint behind " + what + " is ready; since when isn't known. It was created " +
			f.ago(service.CreationTimestamp.Time) + " ago.",
	}}
	if !since.IsZero() {
		one.finding.Message = "no endpoint behind " + what + " has been ready for at least " + f.ago(since) + "."
		one.finding.Since = &metav1.Time{Time: since}
	}
	offer(&one.finding, service, kubectl(service.Namespace, "delete", "service/"+service.Name), caution)
	return one
}

// isUnanswered reports whether nothing is ready behind a Service, and nothing is going to be. If it has no selector,
// only the writer of its endpoints can know.
func (f *finder) isUnanswered(service *corev1.Service) bool {
	if len(service.Spec.Selector) == 0 || slices.ContainsFunc(f.slicesOf(service), isAnswering) {
		return false
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	return !slices.ContainsFunc(f.workloads, func(one workload) bool {
		return one.appetite == wants && selector.Matches(labels.Set(one.template.Labels))
	})
}

func (f *finder) slicesOf(service *corev1.Service) []discoveryv1.EndpointSlice {
	return slices.DeleteFunc(slices.Clone(f.Slices), func(slice discoveryv1.EndpointSlice) bool {
		return slice.Labels[discoveryv1.LabelServiceName] != service.Name
	})
}

// isAnswering reports whether any endpoint is ready. An endpoint that doesn't say counts as ready.
func isAnswering(slice discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(slice.Endpoints, func(endpoint discoveryv1.Endpoint) bool {
		return ptr.Deref(endpoint.Conditions.Ready, true)
	})
}

// unansweredSince returns since when at the latest nothing has been ready: when the endpoints and the readiness of the
// pods behind them changed last. It is zero if nothing says.
func (f *finder) unansweredSince(service *corev1.Service) time.Time {
	var since time.Time
	for _, slice := range f.slicesOf(service) {
		since = later(since, changeOf(&slice))
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	for i := range f.Pods {
		if one := &f.Pods[i]; selector.Matches(labels.Set(one.Labels)) {
			since = later(since, readinessOf(one))
		}
	}
	return since
}

// changeOf returns when an EndpointSlice was changed last, as far as is known.
func changeOf(slice *discoveryv1.EndpointSlice) time.Time {
	changed := slice.CreationTimestamp.Time
	if at, err := time.Parse(time.RFC3339Nano, slice.Annotations[corev1.EndpointsLastChangeTriggerTime]); err == nil {
		changed = later(changed, at)
	}
	for _, entry := range slice.ManagedFields {
		changed = later(changed, ptr.Deref(entry.Time, metav1.Time{}).Time)
	}
	return changed
}

// readinessOf returns since when at the latest a pod has been as ready as it is.
func readinessOf(of *corev1.Pod) time.Time {
	_, ready := podutil.GetPodCondition(&of.Status, corev1.PodReady)
	if ready == nil {
		return of.CreationTimestamp.Time
	}
	return later(of.CreationTimestamp.Time, ready.LastTransitionTime.Time)
}

// idleClaims finds claims that no pod mounts or has mounted of late, and that no workload would mount by itself; and
// claims that aren't bound.
func (f *finder) idleClaims() []candidate {
	used := f.mounted()
	var found []candidate
	for i := range f.Claims {
		claim := &f.Claims[i]
		_, mounted := used[claim.Name]
		if mounted && claim.Status.Phase == corev1.ClaimPending && claim.DeletionTimestamp == nil && f.isOld(claim.CreationTimestamp.Time) {
			found = append(found, candidate{holds: []held{{corev1.Resource("persistentvolumeclaims"), claim}}, finding: render.Finding{
				ObjectName: render.ObjectName{Kind: "PersistentVolumeClaim", Name: claim.Name}, Finding: render.ClaimUnbound,
				Message: "it hasn't been bound since it was created " + f.ago(claim.CreationTimestamp.Time) + " ago.",
				Caution: "a pod mounts it and waits. Look at why it isn't bound: " +
					kubectl(claim.Namespace, "describe", "persistentvolumeclaim/"+claim.Name) + ".",
			}})
		}
		if mounted || claim.DeletionTimestamp != nil || metav1.GetControllerOf(claim) != nil ||
			!f.isOld(claim.CreationTimestamp.Time) {
			continue
		}
		keepers := f.keepersOf(claim.Name)
		if slices.ContainsFunc(keepers, func(one keeper) bool { return one.appetite == wants }) {
			continue
		}
		found = append(found, f.unusedClaim(claim, keepers))
	}
	return found
}

// unusedClaim is a finding. Nothing says since when a claim is unused.
func (f *finder) unusedClaim(claim *corev1.PersistentVolumeClaim, keepers []keeper) candidate {
	one := candidate{holds: []held{{corev1.Resource("persistentvolumeclaims"), claim}}, finding: render.Finding{
		ObjectName: render.ObjectName{Kind: "PersistentVolumeClaim", Name: claim.Name}, Finding: render.ClaimUnused,
		Message: "no pod uses it. It was created " + f.ago(claim.CreationTimestamp.Time) + " ago",
	}}
	if len(keepers) == 0 {
		one.finding.Message += "."
		one.finding.Command = kubectl(claim.Namespace, "delete", "persistentvolumeclaim/"+claim.Name)
		one.finding.Caution = "its data is lost, unless the volume's reclaim policy is Retain. " +
			"Objects of custom resources that mount it aren't looked for."
		return one
	}
	var names []string
	for _, keeper := range keepers {
		names = append(names, keeper.text)
	}
	one.finding.Message += ", and is kept by " + strings.Join(names, " and ") + "."
	one.finding.Caution = "the pods that mount it may come back. Look at what it holds, and ask those who run them, before you delete it."
	return one
}

// mounted has the claims that pods use, or used until lately.
func (f *finder) mounted() map[string]struct{} {
	used := map[string]struct{}{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		if ended := endOfPod(pod); podutil.IsPodTerminal(pod) && !ended.IsZero() && f.isOld(ended) {
			continue
		}
		for _, name := range claimsOf(&pod.Spec) {
			used[name] = struct{}{}
		}
	}
	return used
}

// endOfPod returns when a pod that has ended did so at the latest; zero if its status doesn't say.
func endOfPod(pod *corev1.Pod) time.Time {
	var at time.Time
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil {
			at = later(at, ended.FinishedAt.Time)
		}
	}
	for _, condition := range pod.Status.Conditions {
		at = later(at, condition.LastTransitionTime.Time)
	}
	return at
}

func claimsOf(spec *corev1.PodSpec) []string {
	var names []string
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
	}
	return names
}

// keeper is a workload whose pods mount a claim.
type keeper struct {
	text     string
	appetite appetite
}

// keepersOf returns all workloads that a claim may be kept for. A ReplicaSet isn't named beside its Deployment.
func (f *finder) keepersOf(claim string) []keeper {
	var keepers []keeper
	for i := range f.workloads {
		one := &f.workloads[i]
		if one.appetite == isOver {
			continue
		}
		if set, ok := one.object.(*appsv1.StatefulSet); ok {
			if ordinal, of := ordinalOfClaim(set, claim); of {
				keepers = append(keepers, keeper{fmt.Sprintf("%s, ordinal %d", one.text(), ordinal), appetiteAt(set, ordinal)})
				continue
			}
		}
		if mounts(one, claim) && !f.isMountedAbove(one, claim) {
			keepers = append(keepers, keeper{one.text(), one.appetite})
		}
	}
	return keepers
}

func mounts(of *workload, claim string) bool {
	return slices.Contains(claimsOf(&of.template.Spec), claim)
}

// isMountedAbove reports whether the workload rests, and its owner mounts the claim, too.
func (f *finder) isMountedAbove(of *workload, claim string) bool {
	reference, owned := ownerOf(of.object)
	if !owned || of.appetite != rests {
		return false
	}
	above := f.known(reference)
	return above != nil && mounts(above, claim)
}

// ordinalOfClaim returns for which pod a StatefulSet's template made a claim.
func ordinalOfClaim(set *appsv1.StatefulSet, claim string) (int, bool) {
	for i := range set.Spec.VolumeClaimTemplates {
		rest, ok := strings.CutPrefix(claim, set.Spec.VolumeClaimTemplates[i].Name+"-"+set.Name+"-")
		if !ok {
			continue
		}
		if ordinal, err := strconv.Atoi(rest); err == nil && strconv.Itoa(ordinal) == rest {
			return ordinal, true
		}
	}
	return 0, false
}

func appetiteAt(set *appsv1.StatefulSet, ordinal int) appetite {
	first := firstOrdinal(set)
	if ordinal >= first && ordinal < first+int(ptr.Deref(set.Spec.Replicas, 1)) {
		return wants
	}
	return rests
}
