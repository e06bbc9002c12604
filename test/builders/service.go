/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

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
