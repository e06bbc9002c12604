// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// held are the kinds besides the ClusterServiceVersion and what it holds that
// OLM installs from a bundle: those of operator-registry's list that an operator
// like this one may have.
var held = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "NetworkPolicy", "PodDisruptionBudget",
	"PriorityClass", "PrometheusRule", "Role", "RoleBinding", "Secret", "Service", "ServiceMonitor",
}

// beside are the kinds that OLM doesn't install, and that protect the operator all
// the same: an administrator applies them.
var beside = []string{"FlowSchema", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}

// place sorts what is neither an example nor part of the ClusterServiceVersion.
func (g *inputs) place(objects []*unstructured.Unstructured) (inside, outside []*unstructured.Unstructured, err error) {
	for _, object := range objects {
		switch kind := object.GetKind(); {
		case slices.Contains(beside, kind):
			outside = append(outside, object)
		case slices.Contains(held, kind):
			anywhere, err := g.anywhere(object)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
			}
			inside = append(inside, anywhere)
		default:
			return nil, nil, fmt.Errorf("%s %s: a bundle can't hold it; say in hack/release what becomes of it", kind, object.GetName())
		}
	}
	return inside, outside, nil
}

// anywhere returns an object that may be installed into any namespace. A
// RoleBinding's ServiceAccount that names no namespace is one of the binding's.
func (g *inputs) anywhere(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	own := g.namespace.GetName()
	if namespace := object.GetNamespace(); namespace != "" && namespace != own {
		return nil, fmt.Errorf("it is in the namespace %s, OLM installs into the operator's own", namespace)
	}
	object = object.DeepCopy()
	object.SetNamespace("")
	if object.GetKind() == "RoleBinding" {
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			return nil, err
		}
		for _, subject := range subjects {
			if fields, ok := subject.(map[string]any); ok && fields["namespace"] == own {
				delete(fields, "namespace")
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, subjects, "subjects"); err != nil {
			return nil, err
		}
	}
	return object, g.namesNoNamespace(object.Object)
}

// namesNoNamespace tells whether something would be wrong in another namespace.
func (g *inputs) namesNoNamespace(object any) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if own := g.namespace.GetName(); strings.Contains(string(text), own) {
		return fmt.Errorf("it names the namespace %s, OLM may install into another one", own)
	}
	return nil
}
