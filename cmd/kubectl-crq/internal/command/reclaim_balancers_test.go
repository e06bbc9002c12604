// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func TestReclaimOfJobs(t *testing.T) {
	wantFindings(t, map[string]story{
		"a finished Job counts with its pods, which use no CPU any more": {
			func(i *reading.Inventory) {
				i.Jobs = []batchv1.Job{finished(batchv1.JobComplete, 2*time.Hour)}
				i.Pods = []corev1.Pod{oldPod("import-a", corev1.PodSucceeded, "Job", "import")}
			},
			[]string{"Job/import: completed 120m ago, and still counts. [crq/team count/jobs.batch: 1, count/pods: 1] kubectl delete job/import -n shop " +
				"(the logs of its pods are lost.)"},
		},
		"a Job has just failed": {
			func(i *reading.Inventory) { i.Jobs = []batchv1.Job{finished(batchv1.JobFailed, time.Minute)} }, nil,
		},
	})
}

func TestReclaimOfLoadBalancers(t *testing.T) {
	const lost = "[crq/team services.loadbalancers: 1] kubectl delete service/web -n shop (its address is lost.)"
	since := func(ago string) []string {
		return []string{"Service/web: no endpoint behind the load balancer has been ready for at least " + ago + ". " + lost}
	}
	// behind has a load balancer, and one pod behind it, which is as ready as the conditions say.
	behind := func(i *reading.Inventory, conditions []corev1.PodCondition) {
		pod := oldPod("web-1", corev1.PodRunning)
		pod.Labels, pod.Status.Conditions = map[string]string{"app": "web"}, conditions
		i.Services, i.Slices = []corev1.Service{balancer("web")}, []discoveryv1.EndpointSlice{endpoints("web", ptr.To(false))}
		i.Pods = []corev1.Pod{pod}
	}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web", "tier": "front"}}}
	wantFindings(t, map[string]story{
		"nothing says since when": {
			func(i *reading.Inventory) { i.Services = []corev1.Service{balancer("web")} },
			[]string{"Service/web: no endpoint behind the load balancer is ready; since when isn't known. It was created 300d ago. " + lost},
		},
		"its pod hasn't been ready for long": {
			func(i *reading.Inventory) { behind(i, readySince(corev1.ConditionFalse, 90*time.Minute)) }, since("90m"),
		},
		"its pod was ready a minute ago": {
			func(i *reading.Inventory) { behind(i, readySince(corev1.ConditionFalse, time.Minute)) }, nil,
		},
		"its pod was restarted five seconds ago": {
			func(i *reading.Inventory) {
				behind(i, nil)
				i.Pods[0].CreationTimestamp = before(5 * time.Second)
			},
			nil,
		},
		"its endpoints were triggered to change a minute ago": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Slices[0].Annotations = map[string]string{corev1.EndpointsLastChangeTriggerTime: before(time.Minute).Format(time.RFC3339Nano)}
			},
			nil,
		},
		"its last pod went a minute ago": {
			func(i *reading.Inventory) {
				behind(i, nil)
				i.Pods, i.Slices[0].Endpoints = nil, nil
				i.Slices[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: ptr.To(before(time.Minute))}}
			},
			nil,
		},
		"its last pod went long ago": {
			func(i *reading.Inventory) {
				behind(i, nil)
				i.Pods, i.Slices[0].Endpoints = nil, nil
				i.Slices[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kube-controller-manager", Time: ptr.To(before(2 * time.Hour))}}
			},
			since("120m"),
		},
		"a Deployment is about to stand behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Deployments = []appsv1.Deployment{*builders.Deployment("shop", "web", 1)}
				i.Deployments[0].Spec.Template = template
			},
			nil,
		},
		"a ReplicaSet of somebody's own controller is about to stand behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.ReplicaSets = []appsv1.ReplicaSet{{ObjectMeta: builders.Meta("shop", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Template: template}}}
			},
			nil,
		},
		"a Deployment that is scaled to nothing stands behind it": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Deployments = []appsv1.Deployment{*builders.Deployment("shop", "web", 0)}
				i.Deployments[0].Spec.Template = template
			},
			since("90m"),
		},
		"it has no selector, so that somebody else writes its endpoints": {
			func(i *reading.Inventory) {
				behind(i, readySince(corev1.ConditionFalse, 90*time.Minute))
				i.Services[0].Spec.Selector = nil
			},
			nil,
		},
		"an endpoint is ready, or doesn't say, or it is no load balancer": {
			func(i *reading.Inventory) {
				i.Services = []corev1.Service{balancer("ready"), balancer("unsaid"), *builders.Service("shop", "plain").Obj()}
				i.Slices = []discoveryv1.EndpointSlice{endpoints("ready", ptr.To(true)), endpoints("unsaid", nil)}
			},
			nil,
		},
		"a right is missing": {
			func(i *reading.Inventory) {
				i.Forbidden = []string{"endpointslices"}
				i.Services = []corev1.Service{balancer("web")}
			},
			nil,
		},
	})
}
