// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// stuckAfter is how long a Deployment makes no progress before it counts as stuck, unless it may take longer.
const stuckAfter = 10 * time.Minute

// rollout is a Deployment of which two ReplicaSets or more want pods.
type rollout struct {
	*appsv1.Deployment
	newest *appsv1.ReplicaSet
	older  []*appsv1.ReplicaSet
}

// rollouts finds Deployments that are stuck between two ReplicaSets or more.
func (f *finder) rollouts() []candidate {
	var found []candidate
	for i := range f.Deployments {
		of, rolls := f.rolloutOf(&f.Deployments[i])
		if !rolls || of.DeletionTimestamp != nil {
			continue
		}
		since, stuck := f.stuckSince(of)
		idle := f.idleOf(of)
		if !stuck || len(idle) == 0 {
			continue
		}
		f.stuck[of.UID] = struct{}{}
		one := candidate{holds: f.podsHeld(idle), finding: render.Finding{
			ObjectName: render.ObjectName{Kind: "Deployment", Name: of.Name}, Finding: render.RolloutStuck,
			Since: &metav1.Time{Time: since}, Message: f.stuckText(of, len(idle), since),
		}}
		command, caution := f.leading(of)
		offer(&one.finding, of.Deployment, command, caution)
		found = append(found, one)
	}
	return found
}

func (f *finder) rolloutOf(deployment *appsv1.Deployment) (rollout, bool) {
	var sets []*appsv1.ReplicaSet
	for i := range f.ReplicaSets {
		if set := &f.ReplicaSets[i]; isOf(set, deployment.UID) && ptr.Deref(set.Spec.Replicas, 1) > 0 {
			sets = append(sets, set)
		}
	}
	if len(sets) < 2 {
		return rollout{}, false
	}
	slices.SortFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revision(b), revision(a)) })
	return rollout{deployment, sets[0], sets[1:]}, true
}

func isOf(set *appsv1.ReplicaSet, deployment types.UID) bool {
	above, owned := ownerOf(set)
	return owned && above.uid == deployment
}

// emptySets finds ReplicaSets that have no pods and want none: old ones that a Deployment keeps of older templates, and
// ones without a controller.
func (f *finder) emptySets() []candidate {
	newest := map[types.UID]int64{} // Deployment -> the revision of its current template
	for i := range f.ReplicaSets {
		if above, owned := ownerOf(&f.ReplicaSets[i]); owned {
			newest[above.uid] = max(newest[above.uid], revision(&f.ReplicaSets[i]))
		}
	}
	var found []candidate
	for i := range f.ReplicaSets {
		set := &f.ReplicaSets[i]
		above, owned := ownerOf(set)
		if _, told := f.stuck[above.uid]; told || !f.isEmpty(set) || owned && revision(set) == newest[above.uid] {
			continue
		}
		one := candidate{holds: []held{{appsv1.Resource("replicasets"), set}}, finding: render.Finding{
			ObjectName: render.ObjectName{Kind: "ReplicaSet", Name: set.Name}, Finding: render.ReplicaSetEmpty,
			Message: "it has no pods and wants none. It was created " + f.ago(set.CreationTimestamp.Time) + " ago.",
		}}
		command := kubectl(set.Namespace, "delete", "replicaset/"+set.Name)
		if owned && above.Kind == "Deployment" {
			one.finding.Command = command
			one.finding.Caution = fmt.Sprintf("%s can't go back to revision %d then.", above.objectName(), revision(set))
		} else {
			offer(&one.finding, set, command, "")
		}
		found = append(found, one)
	}
	return found
}

// isEmpty reports whether a ReplicaSet is old, has no pods, wants none, and isn't being deleted.
func (f *finder) isEmpty(set *appsv1.ReplicaSet) bool {
	return set.DeletionTimestamp == nil && ptr.Deref(set.Spec.Replicas, 1) <= 0 && len(f.pods[set.UID]) == 0 &&
		f.isOld(set.CreationTimestamp.Time)
}

// idleOf returns the pods that a rollout has and doesn't need.
func (f *finder) idleOf(of rollout) []*corev1.Pod {
	if of.Spec.Paused {
		return f.surplus(of)
	}
	return slices.DeleteFunc(slices.Clone(f.pods[of.newest.UID]), podutil.IsPodReady)
}

// surplus are the pods of older ReplicaSets that are more than the Deployment wants in all.
func (f *finder) surplus(of rollout) []*corev1.Pod {
	var older []*corev1.Pod
	for _, set := range of.older {
		older = append(older, f.pods[set.UID]...)
	}
	more := len(older) + len(f.pods[of.newest.UID]) - int(ptr.Deref(of.Spec.Replicas, 1))
	return older[:max(0, min(more, len(older)))]
}

// leading returns the command that leads out of a rollout.
func (f *finder) leading(of rollout) (command, caution string) {
	if of.Spec.Paused {
		return kubectl(of.Namespace, "rollout", "resume", "deployment/"+of.Name), "it goes on to the newest template."
	}
	serving := slices.MaxFunc(of.older, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(f.readyOf(a), f.readyOf(b)) })
	if f.readyOf(serving) == 0 || revision(serving) == 0 {
		return "", "no older ReplicaSet of it has a ready pod that it could go back to. Look at why the pods of each aren't ready."
	}
	back := strconv.FormatInt(revision(serving), 10)
	return kubectl(of.Namespace, "rollout", "undo", "deployment/"+of.Name, "--to-revision="+back),
		"it goes back to the template of revision " + back + ", of which most pods are ready."
}

func (f *finder) readyOf(set *appsv1.ReplicaSet) int {
	return len(slices.DeleteFunc(slices.Clone(f.pods[set.UID]), func(pod *corev1.Pod) bool { return !podutil.IsPodReady(pod) }))
}

// stuckSince reports since when at the latest a Deployment has made no progress, and whether that is too long.
func (f *finder) stuckSince(of rollout) (since time.Time, stuck bool) {
	condition := util.GetDeploymentCondition(of.Status, appsv1.DeploymentProgressing)
	if condition != nil && condition.Reason == util.TimedOutReason {
		return condition.LastUpdateTime.Time, true
	}
	since = of.newest.CreationTimestamp.Time
	for _, pod := range f.pods[of.newest.UID] {
		since = later(since, pod.CreationTimestamp.Time)
	}
	if condition != nil {
		since = later(since, condition.LastUpdateTime.Time)
	}
	return since, f.meter.now.Sub(since) >= f.patience(of.Deployment)
}

// patience is how long a Deployment may make no progress. A Deployment that says that it may take longer, or forever,
// is taken at its word.
func (f *finder) patience(of *appsv1.Deployment) time.Duration {
	deadline := ptr.Deref(of.Spec.ProgressDeadlineSeconds, math.MaxInt32)
	if of.Spec.Paused || deadline == math.MaxInt32 {
		return f.olderThan
	}
	if longer := time.Duration(deadline) * time.Second; longer > stuckAfter {
		return longer
	}
	return min(stuckAfter, f.olderThan)
}

func (f *finder) stuckText(of rollout, idle int, since time.Time) string {
	state := "made no progress"
	if of.Spec.Paused {
		state = "been paused in the middle of a rollout"
	}
	return fmt.Sprintf("%d of its ReplicaSets have pods, and it has %s for %s; %s", 1+len(of.older), state,
		duration.HumanDuration(f.meter.now.Sub(since)), "idle: "+plural(int64(idle), "pod")+".")
}

func revision(set *appsv1.ReplicaSet) int64 {
	number, _ := strconv.ParseInt(set.Annotations[util.RevisionAnnotation], 10, 64)
	return number
}
