// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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
