// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

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
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// inNamespace is the end of each command.
func inNamespace(object client.Object) string { return " -n " + object.GetNamespace() }

// finishedJobs finds Jobs that have ended. What they and their pods still use is for the evaluators to say.
func (f *finder) finishedJobs() ([]candidate, error) {
	var found []candidate
	for i := range f.Jobs {
		job := &f.Jobs[i]
		ended, how := endOf(job)
		if ended.IsZero() || !f.isOld(ended) || job.DeletionTimestamp != nil {
			continue
		}
		found = append(found, candidate{
			finding: render.Finding{
				ObjectName: render.ObjectName{Kind: "Job", Name: job.Name}, Finding: render.JobFinished,
				Message: how + " " + f.ago(ended) + " ago, and still counts.", Since: metav1.NewTime(ended),
				Command: "kubectl delete job/" + job.Name + inNamespace(job), Caution: "the logs of its pods are lost.",
			},
			holds: append([]held{{batchv1.Resource("jobs"), job}}, f.podsHeld(f.pods[job.UID])...),
		})
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

// balancers finds load balancers that nobody answers behind.
func (f *finder) balancers() ([]candidate, error) {
	var found []candidate
	for i := range f.Services {
		service := &f.Services[i]
		if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.DeletionTimestamp != nil ||
			!f.isOld(service.CreationTimestamp.Time) || f.hasEndpoint(service.Name) {
			continue
		}
		found = append(found, candidate{
			finding: render.Finding{
				ObjectName: render.ObjectName{Kind: "Service", Name: service.Name}, Finding: render.LoadBalancerWithoutEndpoints,
				Message: "no endpoint behind the load balancer is ready. It was created " + f.ago(service.CreationTimestamp.Time) + " ago.",
				Since:   service.CreationTimestamp,
				Command: "kubectl delete service/" + service.Name + inNamespace(service), Caution: "its address is lost.",
			},
			holds: []held{{corev1.Resource("services"), service}},
		})
	}
	return found, nil
}

// hasEndpoint reports whether any endpoint of a Service is ready. An endpoint that doesn't say counts as ready.
func (f *finder) hasEndpoint(service string) bool {
	isReady := func(endpoint discoveryv1.Endpoint) bool { return ptr.Deref(endpoint.Conditions.Ready, true) }
	return slices.ContainsFunc(f.Slices, func(slice discoveryv1.EndpointSlice) bool {
		return slice.Labels[discoveryv1.LabelServiceName] == service && slices.ContainsFunc(slice.Endpoints, isReady)
	})
}

// unusedClaims finds claims that no pod mounts, and that no workload would mount by itself.
func (f *finder) unusedClaims() ([]candidate, error) {
	used := f.mounted()
	var found []candidate
	for i := range f.Claims {
		claim := &f.Claims[i]
		if _, mounted := used[claim.Name]; mounted || claim.DeletionTimestamp != nil || metav1.GetControllerOf(claim) != nil ||
			!f.isOld(claim.CreationTimestamp.Time) {
			continue
		}
		kept, needed := f.keptBy(claim.Name)
		if needed {
			continue
		}
		message := "no pod uses it. It was created " + f.ago(claim.CreationTimestamp.Time) + " ago"
		if kept != "" {
			message += ", and is kept by " + kept
		}
		found = append(found, candidate{
			finding: render.Finding{
				ObjectName: render.ObjectName{Kind: "PersistentVolumeClaim", Name: claim.Name}, Finding: render.ClaimUnused,
				Message: message + ".", Since: claim.CreationTimestamp,
				Command: "kubectl delete persistentvolumeclaim/" + claim.Name + inNamespace(claim),
				Caution: "its data is lost, unless the volume's reclaim policy is Retain.",
			},
			holds: []held{{corev1.Resource("persistentvolumeclaims"), claim}},
		})
	}
	return found, nil
}

// mounted has the claims that pods use which have not ended.
func (f *finder) mounted() map[string]struct{} {
	used := map[string]struct{}{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, name := range claimsOf(&pod.Spec) {
			used[name] = struct{}{}
		}
	}
	return used
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

// keptBy returns which workload a claim is kept for that has no pod to use it now. It is needed if the workload wants
// such a pod, or runs at times.
func (f *finder) keptBy(claim string) (kept string, needed bool) {
	for i := range f.StatefulSets {
		set := &f.StatefulSets[i]
		if ordinal, of := ordinalOfClaim(set, claim); of {
			return fmt.Sprintf("StatefulSet %s, ordinal %d", set.Name, ordinal), wants(set, ordinal)
		}
		if slices.Contains(claimsOf(&set.Spec.Template.Spec), claim) {
			return "StatefulSet " + set.Name, ptr.Deref(set.Spec.Replicas, 1) > 0
		}
	}
	for i := range f.Deployments {
		if deployment := &f.Deployments[i]; slices.Contains(claimsOf(&deployment.Spec.Template.Spec), claim) {
			return "Deployment " + deployment.Name, ptr.Deref(deployment.Spec.Replicas, 1) > 0
		}
	}
	for i := range f.CronJobs {
		if cron := &f.CronJobs[i]; slices.Contains(claimsOf(&cron.Spec.JobTemplate.Spec.Template.Spec), claim) {
			return "CronJob " + cron.Name, !ptr.Deref(cron.Spec.Suspend, false)
		}
	}
	for i := range f.Jobs {
		job := &f.Jobs[i]
		if ended, _ := endOf(job); ended.IsZero() && slices.Contains(claimsOf(&job.Spec.Template.Spec), claim) {
			return "Job " + job.Name, !ptr.Deref(job.Spec.Suspend, false)
		}
	}
	return "", false
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

func wants(set *appsv1.StatefulSet, ordinal int) bool {
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	return ordinal >= first && ordinal < first+int(ptr.Deref(set.Spec.Replicas, 1))
}

func (f *finder) ago(at time.Time) string { return duration.HumanDuration(f.meter.now.Sub(at)) }
