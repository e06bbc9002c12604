// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// rollouts finds Deployments of which two ReplicaSets or more have pods, and that make no progress.
func (f *finder) rollouts() ([]candidate, error) {
	var found []candidate
	for i := range f.Deployments {
		deployment := &f.Deployments[i]
		sets := f.scaledUp(deployment.UID)
		since, stuck := f.stuckSince(deployment)
		if len(sets) < 2 || !stuck || deployment.DeletionTimestamp != nil {
			continue
		}
		newest := slices.MaxFunc(sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revision(a), revision(b)) })
		one := candidate{finding: render.Finding{
			ObjectName: render.ObjectName{Kind: "Deployment", Name: deployment.Name}, Finding: render.RolloutStuck,
			Since: metav1.NewTime(since), Command: "kubectl rollout undo deployment/" + deployment.Name + inNamespace(deployment),
			Caution: "it goes back to the template before.",
		}}
		idle := slices.DeleteFunc(slices.Clone(f.pods[newest.UID]), isReady)
		if deployment.Spec.Paused {
			one.finding.Command = "kubectl rollout resume deployment/" + deployment.Name + inNamespace(deployment)
			one.finding.Caution = "it goes on to the newest template."
			idle = f.surplus(deployment, sets, newest)
		}
		if len(idle) == 0 {
			continue
		}
		f.stuck[deployment.UID] = struct{}{}
		one.finding.Message = f.stuckText(deployment, len(sets), len(idle), since)
		one.holds = f.podsHeld(idle)
		found = append(found, one)
	}
	return found, nil
}

// scaledUp returns the ReplicaSets of a Deployment that want pods.
func (f *finder) scaledUp(deployment types.UID) []*appsv1.ReplicaSet {
	var sets []*appsv1.ReplicaSet
	for i := range f.ReplicaSets {
		set := &f.ReplicaSets[i]
		if f.isOf(set, deployment) && ptr.Deref(set.Spec.Replicas, 1) > 0 {
			sets = append(sets, set)
		}
	}
	return sets
}

func (f *finder) isOf(set *appsv1.ReplicaSet, deployment types.UID) bool {
	above := f.above[set.UID]
	return above != nil && above.UID == deployment
}

// surplus are the pods of older ReplicaSets that are more than the Deployment wants in all.
func (f *finder) surplus(deployment *appsv1.Deployment, sets []*appsv1.ReplicaSet, newest *appsv1.ReplicaSet) []*corev1.Pod {
	var older []*corev1.Pod
	for _, set := range sets {
		if set != newest {
			older = append(older, f.pods[set.UID]...)
		}
	}
	more := len(older) + len(f.pods[newest.UID]) - int(ptr.Deref(deployment.Spec.Replicas, 1))
	return older[:max(0, min(more, len(older)))]
}

// stuckSince reports since when a Deployment has made no progress, and whether that is too long.
func (f *finder) stuckSince(deployment *appsv1.Deployment) (time.Time, bool) {
	condition := util.GetDeploymentCondition(deployment.Status, appsv1.DeploymentProgressing)
	if condition == nil {
		return deployment.CreationTimestamp.Time, f.meter.now.Sub(deployment.CreationTimestamp.Time) >= min(stuckAfter, f.olderThan)
	}
	since := condition.LastUpdateTime.Time
	return since, condition.Reason == util.TimedOutReason || f.meter.now.Sub(since) >= min(stuckAfter, f.olderThan)
}

func (f *finder) stuckText(deployment *appsv1.Deployment, sets, idle int, since time.Time) string {
	state := "made no progress"
	if deployment.Spec.Paused {
		state = "been paused in the middle of a rollout"
	}
	return fmt.Sprintf("%d of its ReplicaSets have pods, and it has %s for %s; %s", sets, state,
		duration.HumanDuration(f.meter.now.Sub(since)), plural(int64(idle), "pod")+" of them "+does(idle)+" nothing.")
}

func does(count int) string {
	if count == 1 {
		return "does"
	}
	return "do"
}

func revision(set *appsv1.ReplicaSet) int64 {
	number, _ := strconv.ParseInt(set.Annotations[util.RevisionAnnotation], 10, 64)
	return number
}

// idlePods finds pods that have been pending or crash-looping for long, by who made them.
func (f *finder) idlePods() ([]candidate, error) {
	makers := map[render.ObjectName]*maker{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		state, message, idle := f.idle(pod)
		made := f.makerOf(pod)
		if lives(pod) {
			f.living[made.uid]++
		}
		if _, told := f.stuck[made.uid]; told || !idle {
			continue
		}
		known := makers[made.name]
		if known == nil {
			known = &made
			makers[made.name] = known
		}
		known.add(pod, state, message)
	}
	found := make([]candidate, 0, len(makers))
	byName := func(a, b render.ObjectName) int { return cmp.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(makers), byName) {
		one := makers[name]
		command, caution := f.freeing(one)
		found = append(found, candidate{
			finding: render.Finding{
				ObjectName: one.name, Finding: render.PodsIdle, Message: one.text(f.meter.now), Since: metav1.NewTime(one.since),
				Command: command, Caution: caution,
			},
			holds: f.podsHeld(one.pods),
		})
	}
	return found, nil
}

// lives reports whether controllers count on the pod.
func lives(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// maker is who made pods that do nothing.
type maker struct {
	name    render.ObjectName
	uid     types.UID
	group   schema.GroupVersionKind
	pods    []*corev1.Pod
	states  map[string]int
	message string
	since   time.Time
}

func (m *maker) add(pod *corev1.Pod, state, message string) {
	m.pods = append(m.pods, pod)
	m.states[state]++
	m.message = cmp.Or(m.message, message)
	if m.since.IsZero() || pod.CreationTimestamp.Time.Before(m.since) {
		m.since = pod.CreationTimestamp.Time
	}
}

func (m *maker) text(now time.Time) string {
	parts := make([]string, 0, len(m.states))
	for _, state := range slices.Sorted(maps.Keys(m.states)) {
		parts = append(parts, fmt.Sprintf("%s %s", plural(int64(m.states[state]), "pod"), state))
	}
	text := strings.Join(parts, ", ") + ", for up to " + duration.HumanDuration(now.Sub(m.since))
	if m.name.Kind == "Pod" {
		text = slices.Sorted(maps.Keys(m.states))[0] + " for " + duration.HumanDuration(now.Sub(m.since))
	}
	if m.message == "" {
		return text + "."
	}
	return text + ": " + strings.TrimSuffix(m.message, ".") + "."
}

// makerOf returns the workload that decides how many such pods there are, or the pod itself.
func (f *finder) makerOf(pod *corev1.Pod) maker {
	made := maker{name: render.ObjectName{Kind: "Pod", Name: pod.Name}, uid: pod.UID, states: map[string]int{}}
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return made
	}
	if above := f.above[controller.UID]; above != nil {
		controller = above
	}
	made.name, made.uid = render.ObjectName{Kind: controller.Kind, Name: controller.Name}, controller.UID
	made.group = schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
	return made
}

// idle reports whether a pod has done nothing for long, and since when at the latest.
func (f *finder) idle(pod *corev1.Pod) (state, message string, idle bool) {
	if pod.DeletionTimestamp != nil || !f.isOld(pod.CreationTimestamp.Time) {
		return "", "", false
	}
	if pod.Status.Phase == corev1.PodPending {
		_, message, _ := podTrouble(pod)
		return "pending", message, true
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && waiting.Reason == crashLoop && f.isLooping(status) {
			return "crash-looping", fmt.Sprintf("container %s restarted %d times", status.Name, status.RestartCount), true
		}
	}
	return "", "", false
}

const (
	crashLoop = "CrashLoopBackOff"
	// A kubelet waits so long before the first restart and at most, and begins again if a container ran for longer
	// than that.
	firstBackOff, longestBackOff, steadyRun = 10 * time.Second, 5 * time.Minute, 10 * time.Minute
)

// isLooping reports whether the pauses between the restarts add up to long enough, and the last run was short.
func (f *finder) isLooping(status corev1.ContainerStatus) bool {
	last := status.LastTerminationState.Terminated
	if last != nil && last.FinishedAt.Sub(last.StartedAt.Time) >= steadyRun {
		return false
	}
	total, pause := time.Duration(0), firstBackOff
	for range status.RestartCount {
		total += pause
		pause = min(longestBackOff, pause+pause)
		if total >= f.olderThan {
			return true
		}
	}
	return total >= f.olderThan
}

// freeing returns the command that frees what the pods of a workload hold, and what else it does.
func (f *finder) freeing(of *maker) (command, caution string) {
	name, in := of.name.Name, " -n "+of.pods[0].Namespace
	switch of.group.GroupKind().String() {
	case "Deployment.apps":
		return "kubectl scale deployment/" + name + " --replicas=" + strconv.Itoa(f.remaining(of)) + in, ""
	case "ReplicaSet.apps":
		return "kubectl scale replicaset/" + name + " --replicas=" + strconv.Itoa(f.remaining(of)) + in, ""
	case "StatefulSet.apps":
		return f.freeingSet(of, in)
	case "Job.batch":
		return "kubectl delete job/" + name + in, "it ends the Job's other pods, too."
	case "DaemonSet.apps":
		return "kubectl delete daemonset/" + name + in, "it ends the DaemonSet's other pods, too."
	case "ReplicationController":
		return "kubectl scale replicationcontroller/" + name + " --replicas=" + strconv.Itoa(f.remaining(of)) + in, ""
	case "":
		return "kubectl delete pod/" + name + in, ""
	}
	kind := of.group.Kind + "." + of.group.Version + "." + of.group.Group
	return "kubectl delete " + kind + " " + name + in, "its controller may have made other objects."
}

// remaining returns how many pods a workload has that do something.
func (f *finder) remaining(of *maker) int { return max(0, f.living[of.uid]-len(of.pods)) }

// freeingSet scales down to the first pod that does nothing: a StatefulSet ends its last pods first.
func (f *finder) freeingSet(of *maker, in string) (command, caution string) {
	first, others := ordinalOf(of.pods[0].Name), 0
	for _, pod := range of.pods {
		first = min(first, ordinalOf(pod.Name))
	}
	for _, pod := range f.pods[of.uid] {
		if ordinalOf(pod.Name) >= first {
			others++
		}
	}
	if others -= len(of.pods); others > 0 {
		caution = fmt.Sprintf("it ends %s behind the first idle one, too.", plural(int64(others), "pod"))
	}
	start := 0
	for i := range f.StatefulSets {
		if set := &f.StatefulSets[i]; set.UID == of.uid && set.Spec.Ordinals != nil {
			start = int(set.Spec.Ordinals.Start)
		}
	}
	return fmt.Sprintf("kubectl scale statefulset/%s --replicas=%d%s", of.name.Name, max(0, first-start), in), caution
}

func ordinalOf(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return 0
	}
	return number
}
