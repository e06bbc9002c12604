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

// NamespaceBuilder builds a Namespace.
type NamespaceBuilder struct{ namespace corev1.Namespace }

// Namespace starts a namespace.
func Namespace(name string) *NamespaceBuilder {
	return &NamespaceBuilder{namespace: corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{}, Annotations: map[string]string{},
	}}}
}

// Obj returns the namespace.
func (b *NamespaceBuilder) Obj() *corev1.Namespace { return &b.namespace }

// Label adds a label.
func (b *NamespaceBuilder) Label(key, value string) *NamespaceBuilder {
	b.namespace.Labels[key] = value
	return b
}

// Annotation adds an annotation.
func (b *NamespaceBuilder) Annotation(key, value string) *NamespaceBuilder {
	b.namespace.Annotations[key] = value
	return b
}
