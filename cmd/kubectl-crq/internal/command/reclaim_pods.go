// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
)

// idlePods finds pods that have been pending or crash-looping for long, by who made them.
func (f *finder) idlePods() ([]candidate, error) {
	makers := map[identity]*maker{}
	for i := range f.Pods {
		pod := &f.Pods[i]
		made := f.makerOf(pod)
		if lives(pod) {
			f.living[made.decides.uid]++
		}
		how, idle := f.idle(pod)
		if !idle || f.isTold(pod) {
			continue
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
	return found, nil
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
	return candidate{
		finding: render.Finding{
			ObjectName: of.name, Finding: render.PodsIdle, Message: of.text(f.meter.now), Since: &metav1.Time{Time: of.since},
			Command: command, Caution: caution,
		},
		holds: f.podsHeld(of.pods),
	}
}

// identity tells makers apart. A pod may say of its owner that it has the UID of another pod, or its own.
type identity struct {
	// decides is the last owner above a pod; empty for a pod that nobody controls, which is named by bare.
	decides owner
	bare    string
}

// maker is who made pods that do nothing: a workload, or who made that, or the pod itself.
type maker struct {
	identity
	name render.ObjectName
	// workload is nil if somebody else's controller decides.
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

// isBare reports whether nobody makes such a pod again.
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
	text := strings.Join(parts, ", ") + ", for up to " + duration.HumanDuration(now.Sub(m.since))
	if m.isBare() {
		text = slices.Sorted(maps.Keys(m.states))[0] + " for " + duration.HumanDuration(now.Sub(m.since))
	}
	if m.message == "" {
		return text + "."
	}
	return text + ": " + strings.TrimSuffix(m.message, ".") + "."
}
