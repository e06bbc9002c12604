// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/reading"
)

func TestReclaimOfRollouts(t *testing.T) {
	stuck := func(since, command string) []string {
		return []string{"Deployment/web: 2 of its ReplicaSets have pods, and it has made no progress for " + since + "; 1 pod of them does nothing. " +
			"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] " + command}
	}
	const back = "kubectl rollout undo deployment/web --to-revision=1 -n shop (it goes back to the template of revision 1, of which most pods are ready.)"
	// between has a ready pod of revision 1, and one of revision 12 that is pending.
	between := func(i *reading.Inventory) {
		i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 1, "1"), replicaSet("web-2", 2, "12")}
		i.Pods = []corev1.Pod{ready(oldPod("a", "", "ReplicaSet", "web-1")), oldPod("b", corev1.PodPending, "ReplicaSet", "web-2")}
	}
	withDeadline := func(seconds int32, conditions []appsv1.DeploymentCondition) appsv1.Deployment {
		deployment := rolling("", 0)
		deployment.CreationTimestamp = before(300 * 24 * time.Hour)
		deployment.Spec.ProgressDeadlineSeconds, deployment.Status.Conditions = ptr.To(seconds), conditions
		return deployment
	}
	wantFindings(t, map[string]story{
		"its deadline is over, and it is told once": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Minute)}
			},
			stuck("60s", back),
		},
		"it goes on": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments, i.Pods = []appsv1.Deployment{rolling("ReplicaSetUpdated", time.Minute)}, i.Pods[:1]
			},
			nil,
		},
		"it has made no progress for longer than ten minutes": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(600, rolling("ReplicaSetUpdated", 11*time.Minute).Status.Conditions)}
				i.Pods[1].CreationTimestamp = before(11 * time.Minute)
			},
			stuck("11m", back),
		},
		"its owner lets it take longer": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(1200, rolling("ReplicaSetUpdated", 11*time.Minute).Status.Conditions)}
				i.Pods[1].CreationTimestamp = before(11 * time.Minute)
			},
			nil,
		},
		"it has no deadline, and has begun three seconds ago": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(math.MaxInt32, nil)}
				i.ReplicaSets[1].CreationTimestamp, i.Pods[1].CreationTimestamp = before(3*time.Second), before(2*time.Second)
			},
			nil,
		},
		"it has no deadline, and has begun three hours ago": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{withDeadline(math.MaxInt32, nil)}
				i.ReplicaSets[1].CreationTimestamp = before(3 * time.Hour)
			},
			stuck("120m", back),
		},
		"it goes back to the revision whose pods are ready, not to the one before": {
			func(i *reading.Inventory) {
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-2", 2, "2"), replicaSet("web-3", 0, "3"), replicaSet("web-4", 1, "4")}
				i.Pods = []corev1.Pod{ready(oldPod("a", "", "ReplicaSet", "web-2")), oldPod("b", corev1.PodPending, "ReplicaSet", "web-4")}
			},
			stuck("60m", "kubectl rollout undo deployment/web --to-revision=2 -n shop (it goes back to the template of revision 2, of which most pods are ready.)"),
		},
		"no older revision has a ready pod": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.Pods[0] = oldPod("a", corev1.PodRunning, "ReplicaSet", "web-1")
			},
			stuck("60m", "(no older ReplicaSet of it has a ready pod that it could go back to. Look at why the pods of each aren't ready.)"),
		},
		"another controller looks after it": {
			func(i *reading.Inventory) {
				between(i)
				i.Deployments = []appsv1.Deployment{rolling("ProgressDeadlineExceeded", time.Hour)}
				i.Deployments[0].OwnerReferences = above("Gateway")
			},
			stuck("60m", "(Gateway/above controls it, and may need it or make it again. Ask those who run Gateway/above.)"),
		},
		"it is paused with a pod more": {
			func(i *reading.Inventory) {
				paused := rolling("DeploymentPaused", time.Hour)
				paused.Spec.Paused = true
				i.Deployments = []appsv1.Deployment{paused}
				i.ReplicaSets = []appsv1.ReplicaSet{replicaSet("web-1", 2, "1"), replicaSet("web-2", 1, "2")}
				for _, name := range []string{"a", "b"} {
					i.Pods = append(i.Pods, oldPod(name, corev1.PodRunning, "ReplicaSet", "web-1"))
				}
				i.Pods = append(i.Pods, oldPod("c", corev1.PodRunning, "ReplicaSet", "web-2"))
			},
			[]string{"Deployment/web: 2 of its ReplicaSets have pods, and it has been paused in the middle of a rollout for 60m; 1 pod of them does nothing. " +
				"[crq/team count/pods: 1, pods: 1, requests.cpu: 100m] kubectl rollout resume deployment/web -n shop (it goes on to the newest template.)"},
		},
	})
}
