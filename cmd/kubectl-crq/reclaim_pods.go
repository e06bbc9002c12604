// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontroller "k8s.io/kubernetes/pkg/controller"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// idlePods finds pods that have been pending or crash-looping for long or have ended, by their maker.
func (f *finder) idlePods() []candidate {
	makers := map[identity]*maker{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		made := f.makerOf(pod)
		if kubecontroller.IsPodActive(pod) {
			f.living[made.decides.uid]++
		}
		how, idle := f.idle(pod)
		if !idle || f.isTold(pod) {
			continue
		}
		if made.ended = podutil.IsPodTerminal(pod); made.ended && f.isOfJob(pod) {
			continue // It goes with the Job.
		}
		if makers[made.identity] == nil {
			makers[made.identity] = &made
		}
		makers[made.identity].add(pod, how)
	}
	byName := func(a, b *maker) int { return cmp.Compare(a.name.String(), b.name.String()) }
	found := make([]candidate, 0, len(makers))
	for _, one := range slices.SortedFunc(maps.Values(makers), byName) {
		found = append(found, f.idleFinding(one))
	}
	return found
}

// isOfJob reports whether a Job that exists made the pod.
func (f *finder) isOfJob(pod *corev1.Pod) bool {
	return slices.ContainsFunc(f.Jobs, func(job batchv1.Job) bool { return metav1.IsControlledBy(pod, &job) })
}

// isTold reports whether the pod is of a Deployment that is told of already.
func (f *finder) isTold(pod *corev1.Pod) bool {
	return slices.ContainsFunc(f.ownersOf(pod), func(above owner) bool {
		_, told := f.stuck[above.uid]
		return told
	})
}

func (f *finder) idleFinding(of *maker) candidate {
	command, caution := f.freeing(of)
	kind := render.PodsIdle
	if of.ended {
		kind = render.PodsEnded
	}
	return candidate{
		finding: render.Finding{
			ObjectName: of.name, Finding: kind, Message: of.text(f.meter.now), Since: &metav1.Time{Time: of.since},
			Command: command, Caution: caution,
		},
		holds: f.podsHeld(of.pods),
	}
}

// identity tells makers apart. A pod may say of its owner that it has the UID of another pod, or its own.
type identity struct {
	// decides is the last owner above a pod; empty for a pod without a controller, which is named by bare.
	decides owner
	bare    string
	// ended is true for pods that have ended, and false for pods that may still run.
	ended bool
}

// maker is the origin of pods that do nothing: a workload, or its owner, or the pod itself.
type maker struct {
	identity
	name render.ObjectName
	// workload is nil if a foreign controller decides.
	workload *workload
	pods     []*corev1.Pod
	states   map[string]int
	message  string
	since    time.Time
}

func (f *finder) makerOf(pod *corev1.Pod) maker {
	owners := f.ownersOf(pod)
	if len(owners) == 0 {
		return maker{identity: identity{bare: pod.Name}, name: render.ObjectName{Kind: "Pod", Name: pod.Name}, states: map[string]int{}}
	}
	decides := owners[len(owners)-1]
	return maker{identity: identity{decides: decides}, name: decides.objectName(), workload: f.known(decides), states: map[string]int{}}
}

// isBare reports whether no controller makes such a pod again.
func (m *maker) isBare() bool { return m.bare != "" }

func (m *maker) add(pod *corev1.Pod, how idleness) {
	m.pods = append(m.pods, pod)
	m.states[how.state]++
	m.message = cmp.Or(m.message, how.message)
	if m.since.IsZero() || how.since.Before(m.since) {
		m.since = how.since
	}
}

func (m *maker) text(now time.Time) string {
	parts := make([]string, 0, len(m.states))
	for _, state := range slices.Sorted(maps.Keys(m.states)) {
		parts = append(parts, fmt.Sprintf("%s %s", plural(int64(m.states[state]), "pod"), state))
	}
	lasts, first := duration.HumanDuration(now.Sub(m.since)), slices.Sorted(maps.Keys(m.states))[0]
	text := strings.Join(parts, ", ") + ", for up to " + lasts
	switch {
	case m.ended && m.isBare():
		text = first + " " + lasts + " ago, and still counts"
	case m.ended:
		text = strings.Join(parts, ", ") + ", up to " + lasts + " ago, and still count"
	case m.isBare():
		text = first + " for " + lasts
	}
	if m.message == "" {
		return text + "."
	}
	return text + ": " + strings.TrimSuffix(m.message, ".") + "."
}

// idleness is how a pod does nothing, and since when at the latest.
type idleness struct {
	state, message string
	since          time.Time
}

// idle reports whether a pod has done nothing for long.
func (f *finder) idle(of *corev1.Pod) (idleness, bool) {
	var how idleness
	var idle bool
	switch {
	case of.DeletionTimestamp != nil || isMirror(of):
		return idleness{}, false
	case podutil.IsPodTerminal(of):
		how, idle = idleness{"succeeded", "", later(of.CreationTimestamp.Time, endOfPod(of))}, true
		if of.Status.Phase == corev1.PodFailed {
			how.state, how.message = "failed", of.Status.Message
		}
	case of.Status.Phase == corev1.PodPending:
		how, idle = pending(of)
	default:
		how, idle = looping(of)
	}
	return how, idle && f.isOld(how.since)
}

// isMirror reports whether a kubelet runs the pod from a file of its node. It is made again if it is deleted, and its
// owner is the Node.
func isMirror(pod *corev1.Pod) bool {
	_, mirrors := pod.Annotations[corev1.MirrorPodAnnotationKey]
	above, owned := ownerOf(pod)
	return mirrors || owned && above.Group == "" && above.Kind == "Node"
}

// pending reports whether a pod hasn't begun. One whose init containers run works: it may restore a backup.
func pending(pod *corev1.Pod) (idleness, bool) {
	since := pod.CreationTimestamp.Time
	for i := range pod.Status.InitContainerStatuses {
		state := &pod.Status.InitContainerStatuses[i].State
		if state.Running != nil {
			return idleness{}, false
		}
		if state.Terminated != nil && state.Terminated.ExitCode == 0 {
			since = later(since, state.Terminated.FinishedAt.Time)
		}
	}
	_, message, _ := podTrouble(pod)
	return idleness{"pending", message, since}, true
}

const (
	crashLoop = "CrashLoopBackOff"
	// A kubelet begins again with short pauses if a container ran for longer than that.
	steadyRun = 10 * time.Minute
)

// looping reports whether a container of a pod restarts again and again, and no other one works. Restarts are counted
// over the pod's whole life, so that only its condition says since when.
func looping(of *corev1.Pod) (idleness, bool) {
	_, ready := podutil.GetPodCondition(&of.Status, corev1.PodReady)
	if ready == nil || ready.Status != corev1.ConditionFalse || slices.ContainsFunc(of.Status.ContainerStatuses, works) {
		return idleness{}, false
	}
	for _, status := range slices.Concat(of.Status.InitContainerStatuses, of.Status.ContainerStatuses) {
		if isLooping(status) {
			message := fmt.Sprintf("container %s has restarted %d times in all", status.Name, status.RestartCount)
			return idleness{"crash-looping", message, ready.LastTransitionTime.Time}, true
		}
	}
	return idleness{}, false
}

func works(status corev1.ContainerStatus) bool { return status.Ready && status.State.Running != nil }

// isLooping reports whether a container waits to be restarted after a short run.
func isLooping(status corev1.ContainerStatus) bool {
	if status.State.Waiting == nil || status.State.Waiting.Reason != crashLoop {
		return false
	}
	last := status.LastTerminationState.Terminated
	return last == nil || last.FinishedAt.Sub(last.StartedAt.Time) < steadyRun
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// freeing returns the command that frees the amounts of a maker's idle pods, and its other effects. If no safe command
// is known, it returns none, and the advice.
func (f *finder) freeing(of *maker) (command, caution string) {
	switch {
	case of.ended && (of.isBare() || of.workload != nil):
		words := append(make([]string, 0, 1+len(of.pods)), "delete")
		for _, pod := range of.pods {
			words = append(words, "pod/"+pod.Name)
		}
		return kubectl(of.pods[0].Namespace, words...), "its logs are lost."
	case of.isBare():
		return kubectl(of.pods[0].Namespace, "delete", "pod/"+of.name.Name), ""
	case of.workload == nil:
		return "", askMaker(of.name)
	}
	switch object := of.workload.object.(type) {
	case *appsv1.StatefulSet:
		return f.freeingSet(of, object)
	case *appsv1.DaemonSet:
		return "", "a DaemonSet makes a pod for each node that it selects. Look at its nodeSelector, its tolerations and what it requests."
	}
	return f.freeingCopies(of)
}

// freeingCopies is for workloads that don't tell their pods apart. Their controllers end those first that aren't ready.
func (f *finder) freeingCopies(of *maker) (command, caution string) {
	name, namespace := of.name.Name, of.pods[0].Namespace
	scale, _ := scaleOf(of.workload.object)
	switch kind := of.workload.kind.Kind; kind {
	case "Deployment", "ReplicaSet", "ReplicationController":
		if f.remaining(of) >= int(scale.wants) {
			return "", "it has more pods than it wants, as in a rollout, so that scaling it frees nothing. Look at how the rollout goes."
		}
		return scaling(namespace, strings.ToLower(kind)+"/"+name, f.remaining(of)), ""
	case "Job":
		return kubectl(namespace, "patch", "job/"+name, "--type=merge", "-p", `{"spec":{"suspend":true}}`),
			"it ends all pods of the Job, also those that run. It goes on if somebody sets spec.suspend to false."
	}
	return "", askMaker(of.name)
}

func scaling(namespace, target string, replicas int) string {
	return kubectl(namespace, "scale", target, "--replicas="+strconv.Itoa(replicas))
}

// remaining returns how many pods a workload has that do something.
func (f *finder) remaining(of *maker) int { return max(0, f.living[of.decides.uid]-len(of.pods)) }

// freeingSet scales down to the first pod that does nothing: a StatefulSet ends its last pods first.
func (f *finder) freeingSet(of *maker, set *appsv1.StatefulSet) (command, caution string) {
	if deletesClaims(set) {
		return "", "if it is scaled down, the claims of the pods that end are deleted, and their data is lost: " +
			"its persistentVolumeClaimRetentionPolicy says so. Look at why its pods don't run."
	}
	first, others := ordinalOf(of.pods[0].Name), 0
	for _, pod := range of.pods {
		first = min(first, ordinalOf(pod.Name))
	}
	for _, pod := range f.pods[of.decides.uid] {
		if ordinalOf(pod.Name) >= first {
			others++
		}
	}
	if others -= len(of.pods); others > 0 {
		caution = fmt.Sprintf("it also ends %s of a higher number: not idle, and maybe serving.", plural(int64(others), "pod"))
	}
	return scaling(set.Namespace, "statefulset/"+set.Name, max(0, first-firstOrdinal(set))), caution
}

// deletesClaims reports whether a StatefulSet that is scaled down loses data.
func deletesClaims(set *appsv1.StatefulSet) bool {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	deletes := policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	return deletes && len(set.Spec.VolumeClaimTemplates) > 0
}

func firstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func ordinalOf(name string) int {
	number, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return 0
	}
	return number
}
