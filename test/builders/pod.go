// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// PodBuilder builds a Pod of one container, app.
type PodBuilder struct{ pod corev1.Pod }

// Pod starts a pod that requests nothing.
func Pod(namespace, name string) *PodBuilder {
	return &PodBuilder{pod: corev1.Pod{
		// Its kind, so that it can be applied too.
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: image}},
			// A pod on a node is gone once it was asked to go, where no kubelet runs.
			TerminationGracePeriodSeconds: ptr.To[int64](0),
		},
	}}
}

// Obj returns the pod.
func (b *PodBuilder) Obj() *corev1.Pod { return &b.pod }

// Generated lets the API server make up the name, which begins with the one
// that was given.
func (b *PodBuilder) Generated() *PodBuilder {
	b.pod.GenerateName, b.pod.Name = b.pod.Name+"-", ""
	return b
}

// Request adds a request.
func (b *PodBuilder) Request(name corev1.ResourceName, quantity string) *PodBuilder {
	return b.set(&b.pod.Spec.Containers[0].Resources.Requests, name, quantity)
}

// Limit adds a limit. The API server makes it the request too, where there is none.
func (b *PodBuilder) Limit(name corev1.ResourceName, quantity string) *PodBuilder {
	return b.set(&b.pod.Spec.Containers[0].Resources.Limits, name, quantity)
}

// PodLevelRequest adds a request of the pod as a whole.
func (b *PodBuilder) PodLevelRequest(name corev1.ResourceName, quantity string) *PodBuilder {
	if b.pod.Spec.Resources == nil {
		b.pod.Spec.Resources = &corev1.ResourceRequirements{}
	}
	return b.set(&b.pod.Spec.Resources.Requests, name, quantity)
}

// EphemeralVolume adds a volume, for which a claim is made.
func (b *PodBuilder) EphemeralVolume(name, size string) *PodBuilder {
	b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: VolumeClaim("", "").Size(size).Obj().Spec,
		}},
	}})
	return b
}

// DevicesFrom adds a claim of devices, which is made by a template.
func (b *PodBuilder) DevicesFrom(template string) *PodBuilder {
	b.pod.Spec.ResourceClaims = append(b.pod.Spec.ResourceClaims, corev1.PodResourceClaim{
		Name: template, ResourceClaimTemplateName: &template,
	})
	return b
}

// RuntimeClass names the pod's runtime class.
func (b *PodBuilder) RuntimeClass(name string) *PodBuilder {
	b.pod.Spec.RuntimeClassName = &name
	return b
}

// Deadline says for how long the pod may run, which makes it one of the scope
// Terminating.
func (b *PodBuilder) Deadline(seconds int64) *PodBuilder {
	b.pod.Spec.ActiveDeadlineSeconds = &seconds
	return b
}

// PriorityClass names the pod's priority class.
func (b *PodBuilder) PriorityClass(name string) *PodBuilder {
	b.pod.Spec.PriorityClassName = name
	return b
}

// AwayFrom keeps the pod off the nodes that run pods of these namespaces.
func (b *PodBuilder) AwayFrom(namespaces ...string) *PodBuilder {
	b.pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{}, Namespaces: namespaces, TopologyKey: corev1.LabelHostname,
		}},
	}}
	return b
}

// OnNode puts the pod on a node, and gives it time to end when it is deleted.
func (b *PodBuilder) OnNode(name string, grace int64) *PodBuilder {
	b.pod.Spec.NodeName = name
	b.pod.Spec.TerminationGracePeriodSeconds = &grace
	return b
}

// InitContainer adds an init container, init, that requests this.
func (b *PodBuilder) InitContainer(name corev1.ResourceName, quantity string) *PodBuilder {
	return b.initContainer("init", nil, name, quantity)
}

// Sidecar adds a container, sidecar, that requests this and runs as long as the
// pod does.
func (b *PodBuilder) Sidecar(name corev1.ResourceName, quantity string) *PodBuilder {
	return b.initContainer("sidecar", ptr.To(corev1.ContainerRestartPolicyAlways), name, quantity)
}

func (b *PodBuilder) initContainer(
	container string, restart *corev1.ContainerRestartPolicy, name corev1.ResourceName, quantity string,
) *PodBuilder {
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, corev1.Container{
		Name: container, Image: image, RestartPolicy: restart,
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(quantity)}},
	})
	return b
}

func (b *PodBuilder) set(list *corev1.ResourceList, name corev1.ResourceName, quantity string) *PodBuilder {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = resource.MustParse(quantity)
	return b
}

const image = "registry.example.com/app"
