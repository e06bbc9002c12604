// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// balancers finds load balancers that have had no ready endpoint for long, and that no workload wants to stand behind.
func (f *finder) balancers() ([]candidate, error) {
	var found []candidate
	for i := range f.Services {
		service := &f.Services[i]
		if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.DeletionTimestamp != nil ||
			!f.isOld(service.CreationTimestamp.Time) || !f.isUnanswered(service) {
			continue
		}
		since := f.unansweredSince(service)
		if !f.isOld(since) {
			continue
		}
		found = append(found, f.unanswered(service, since))
	}
	return found, nil
}

// unanswered is a finding. If nothing says since when, it claims nothing.
func (f *finder) unanswered(service *corev1.Service, since time.Time) candidate {
	one := candidate{holds: []held{{corev1.Resource("services"), service}}, finding: render.Finding{
		ObjectName: render.ObjectName{Kind: "Service", Name: service.Name}, Finding: render.LoadBalancerWithoutEndpoints,
		Message: "no endpoint behind the load balancer is ready; since when isn't known. It was created " +
			f.ago(service.CreationTimestamp.Time) + " ago.",
	}}
	if !since.IsZero() {
		one.finding.Message = "no endpoint behind the load balancer has been ready for at least " + f.ago(since) + "."
		one.finding.Since = &metav1.Time{Time: since}
	}
	offer(&one.finding, service, kubectl(service.Namespace, "delete", "service/"+service.Name), "its address is lost.")
	return one
}

// isUnanswered reports whether nothing is ready behind a Service, and nothing is going to be. If it has no selector,
// nobody but who writes its endpoints can tell.
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

// isAnswering reports whether any endpoint is ready. One that doesn't say counts as ready.
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
	_, ready := pod.GetPodCondition(&of.Status, corev1.PodReady)
	if ready == nil {
		return of.CreationTimestamp.Time
	}
	return later(of.CreationTimestamp.Time, ready.LastTransitionTime.Time)
}
