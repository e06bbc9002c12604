// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

const (
	// podNames is how many names a client uses again and again.
	podNames = 5
	// ownerLabel tells whose a pod is.
	ownerLabel = "faults.example.com/owner"
)

// pods is a client that creates, deletes and resizes pods.
type pods struct {
	*worker
	named map[string]*slot
	// generated are those whose names the API server made up.
	generated []string
	// lost: a pod may be there whose name the client was never told.
	lost bool
}

// slot is what a client knows of one name.
type slot struct {
	there bool
	// unsure: a call didn't tell how it ended, and none has told since.
	unsure bool
}

// learn takes in how a call ended, which was to make the object be there or not.
func (s *slot) learn(outcome Outcome, there bool) {
	if outcome == Succeeded || outcome == Expected {
		s.there, s.unsure = there, false
		return
	}
	s.unsure = s.unsure || !done(outcome)
}

func newPods(w *worker) stepper {
	p := &pods{worker: w, named: map[string]*slot{}}
	for i := range podNames {
		p.named[fmt.Sprintf("%s-%d", w.name, i)] = &slot{}
	}
	return p
}

func (p *pods) step(ctx context.Context) {
	name := fmt.Sprintf("%s-%d", p.name, p.random.IntN(podNames))
	slot := p.named[name]
	switch {
	case p.chance(5):
		p.dryRun(ctx)
	case p.chance(30):
		p.generateOrSweep(ctx)
	case !slot.there:
		p.create(ctx, name, slot)
	case p.orphans && p.chance(5):
		p.duplicate(ctx, slot)
	case p.resizes && p.chance(40):
		p.resize(ctx, name, slot)
	default:
		p.delete(ctx, name, slot)
	}
}

// cpu is what a pod requests: now more, now less.
func (p *pods) cpu() string {
	return []string{"50m", "100m", "150m", "300m"}[p.random.IntN(4)]
}

func (p *pods) pod(name string) *builders.PodBuilder {
	pod := builders.Pod(p.namespace, name).Request(corev1.ResourceCPU, p.cpu())
	if p.forges && p.chance(50) {
		p.forge(pod.Obj())
	}
	return pod
}

// forge makes a pod look as one that a controller creates in a rollout. No controller does.
func (p *pods) forge(pod *corev1.Pod) {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: p.name, UID: types.UID("forged-" + p.name), Controller: ptr.To(true)}
	if p.chance(50) {
		owner.Kind = "DaemonSet"
	}
	pod.OwnerReferences = []metav1.OwnerReference{owner}
	pod.Labels = map[string]string{
		appsv1.DefaultDeploymentUniqueLabelKey: "forged", appsv1.DefaultDaemonSetUniqueLabelKey: "forged", "controller-uid": string(owner.UID),
	}
}

func (p *pods) create(ctx context.Context, name string, slot *slot) {
	pod := p.pod(name).Obj()
	slot.learn(p.call(ctx, "create pod", func(ctx context.Context) error {
		return p.api.Create(ctx, pod)
	}, existing(slot.unsure)), true)
}

// duplicate creates what is there already. It is admitted, charged and refused
// at storage, or over quota. Only one name is used for that: what stays reserved
// shares a slot.
func (p *pods) duplicate(ctx context.Context, first *slot) {
	name := p.name + "-0"
	if first != p.named[name] || first.unsure {
		return
	}
	pod := p.pod(name).Obj()
	p.call(ctx, "create pod again", func(ctx context.Context) error { return p.api.Create(ctx, pod) }, existing(true))
}

func (p *pods) dryRun(ctx context.Context) {
	pod := p.pod(p.name + "-dry").Obj()
	p.call(ctx, "create pod as dry run", func(ctx context.Context) error { return p.api.Create(ctx, pod, client.DryRunAll) })
}

func (p *pods) generateOrSweep(ctx context.Context) {
	if p.chance(50) {
		p.generate(ctx)
		return
	}
	p.sweep(ctx)
}

func (p *pods) generate(ctx context.Context) {
	pod := p.pod(p.name).Generated().Obj()
	metav1.SetMetaDataLabel(&pod.ObjectMeta, ownerLabel, p.name)
	create := func(ctx context.Context) error { return p.api.Create(ctx, pod) }
	switch outcome := p.call(ctx, "create pod of generated name", create); {
	case outcome == Succeeded:
		p.generated = append(p.generated, pod.Name)
	case !done(outcome):
		p.lost = true
	}
}

// sweep deletes a pod whose name was generated.
func (p *pods) sweep(ctx context.Context) {
	unsure := p.lost
	if p.lost {
		p.find(ctx)
	}
	if len(p.generated) == 0 {
		return
	}
	pod := builders.Pod(p.namespace, p.generated[0]).Obj()
	if !p.mayDelete(ctx, pod) {
		return
	}
	outcome := p.call(ctx, "delete pod", func(ctx context.Context) error {
		return p.api.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}, missing(unsure))
	if !done(outcome) {
		p.lost = true
		return
	}
	p.generated = p.generated[1:]
}

func (p *pods) find(ctx context.Context) {
	list := &corev1.PodList{}
	outcome := p.call(ctx, "list pods", func(ctx context.Context) error {
		return p.api.List(ctx, list, client.InNamespace(p.namespace), client.MatchingLabels{ownerLabel: p.name})
	})
	if outcome != Succeeded {
		return
	}
	p.lost, p.generated = false, nil
	for i := range list.Items {
		p.generated = append(p.generated, list.Items[i].Name)
	}
}

func (p *pods) delete(ctx context.Context, name string, slot *slot) {
	pod := builders.Pod(p.namespace, name).Obj()
	if !p.mayDelete(ctx, pod) {
		return
	}
	slot.learn(p.call(ctx, "delete pod", func(ctx context.Context) error {
		return p.api.Delete(ctx, pod, client.GracePeriodSeconds(0))
	}, missing(slot.unsure)), false)
}

func (p *pods) mayDelete(ctx context.Context, pod *corev1.Pod) bool {
	return p.deletes == nil || p.deletes(ctx, client.ObjectKeyFromObject(pod))
}

// resize changes what the pod requests, in place.
func (p *pods) resize(ctx context.Context, name string, slot *slot) {
	pod := builders.Pod(p.namespace, name).Obj()
	patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":%q}}}]}}`, p.cpu())
	outcome := p.call(ctx, "resize pod", func(ctx context.Context) error {
		return p.api.SubResource("resize").Patch(ctx, pod, strategicMerge(patch))
	}, missing(slot.unsure))
	slot.unsure = slot.unsure || !done(outcome)
	if outcome == Expected {
		slot.there = false
	}
}

// refused is a client whose pods another webhook refuses.
type refused struct{ *worker }

func newRefused(w *worker) stepper {
	return &refused{worker: w}
}

func (r *refused) step(ctx context.Context) {
	pod := builders.Pod(r.namespace, fmt.Sprintf("%s-%d", r.name, r.random.IntN(2))).
		Request(corev1.ResourceCPU, resource.NewMilliQuantity(10, resource.DecimalSI).String()).Obj()
	r.call(ctx, "create pod that is refused later", func(ctx context.Context) error { return r.api.Create(ctx, pod) })
}
