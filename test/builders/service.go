// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ServiceBuilder builds a Service.
type ServiceBuilder struct{ service corev1.Service }

// Service starts a service of type ClusterIP with no port and no address.
func Service(namespace, name string) *ServiceBuilder {
	return &ServiceBuilder{service: corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone},
	}}
}

// Obj returns the service.
func (b *ServiceBuilder) Obj() *corev1.Service { return &b.service }

// Type gives the service a type and these ports.
func (b *ServiceBuilder) Type(kind corev1.ServiceType, ports ...int32) *ServiceBuilder {
	b.service.Spec.Type, b.service.Spec.ClusterIP = kind, ""
	for _, port := range ports {
		b.service.Spec.Ports = append(b.service.Spec.Ports, corev1.ServicePort{Name: portName(port), Port: port})
	}
	return b
}

// WithoutNodePorts lets a load balancer do without node ports.
func (b *ServiceBuilder) WithoutNodePorts() *ServiceBuilder {
	b.service.Spec.AllocateLoadBalancerNodePorts = new(bool)
	return b
}
