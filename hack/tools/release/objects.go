// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// partsOfCSV are the kinds that become part of the ClusterServiceVersion, or of a file of its own.
var partsOfCSV = []string{"ClusterServiceVersion", "Configuration", "Deployment", "Namespace", "ServiceAccount"}

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

// inputs are the objects that kustomize built.
type inputs struct {
	all []*unstructured.Unstructured
	// base is what people have written of the ClusterServiceVersion.
	base operatorsv1alpha1.ClusterServiceVersion
	// namespace is the one that kustomize installs into. OLM may choose another.
	namespace *unstructured.Unstructured
	// deployment runs the operator, as the ServiceAccount account.
	deployment appsv1.Deployment
	account    string
	crds       []*apiextensionsv1.CustomResourceDefinition
	scorecard  *unstructured.Unstructured
}

// read takes a stream of YAML documents apart.
func read(built io.Reader) (*inputs, error) {
	g := &inputs{}
	for documents := utilyaml.NewYAMLOrJSONDecoder(built, 4096); ; {
		object := &unstructured.Unstructured{}
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		g.all = append(g.all, object)
	}
	only := map[string]*unstructured.Unstructured{}
	for _, kind := range partsOfCSV {
		found := g.of(kind)
		if len(found) != 1 {
			return nil, fmt.Errorf("there are %d objects of kind %s, want one", len(found), kind)
		}
		only[kind] = found[0]
	}
	g.namespace, g.scorecard, g.account = only["Namespace"], only["Configuration"], only["ServiceAccount"].GetName()
	if err := errors.Join(into(only["ClusterServiceVersion"], &g.base), into(only["Deployment"], &g.deployment)); err != nil {
		return nil, err
	}
	for _, object := range g.of("CustomResourceDefinition") {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := into(object, crd); err != nil {
			return nil, err
		}
		g.crds = append(g.crds, crd)
	}
	if as := g.deployment.Spec.Template.Spec.ServiceAccountName; as != g.account {
		return nil, fmt.Errorf("the Deployment runs as %s, the ServiceAccount is %s", as, g.account)
	}
	return g, nil
}

// into converts an object to its type. A field that the type lacks is an error.
func into(object *unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true); err != nil {
		return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

func (g *inputs) of(kind string) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(g.all), func(object *unstructured.Unstructured) bool { return object.GetKind() != kind })
}

// isExample reports whether an object is of one of the operator's own types.
func (g *inputs) isExample(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(g.crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Group == object.GroupVersionKind().Group
	})
}

// place sorts what is neither an example nor part of the ClusterServiceVersion, nor among the given objects.
// An object that has no place is an error: what a bundle would lose without a word is to be decided on here.
func (g *inputs) place(without []*unstructured.Unstructured) (inside, outside []*unstructured.Unstructured, err error) {
	for _, object := range g.all {
		switch kind := object.GetKind(); {
		case slices.Contains(partsOfCSV, kind), g.isExample(object), slices.Contains(without, object):
		case slices.Contains(beside, kind):
			outside = append(outside, object)
		case slices.Contains(held, kind):
			anywhere, err := g.anywhere(object)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", kind, object.GetName(), err)
			}
			inside = append(inside, anywhere)
		default:
			return nil, nil, fmt.Errorf("%s %s: a bundle can't hold it; say in hack/tools/release what becomes of it",
				kind, object.GetName())
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
	if subjects, ok := object.Object["subjects"].([]any); ok && object.GetKind() == "RoleBinding" {
		for _, subject := range subjects {
			if fields, ok := subject.(map[string]any); ok && fields["namespace"] == own {
				delete(fields, "namespace")
			}
		}
	}
	return object, g.namesNoNamespace(object.Object)
}

// namesNoNamespace returns an error if something would be wrong in another namespace.
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

// clusterPermissions are the rules of all ClusterRoles that are bound to the operator. The
// ClusterServiceVersion holds these in the place of the returned objects; other ClusterRoles and
// ClusterRoleBindings, which are for people, are objects of the bundle.
//
// What the operator may do in its own namespace is not among the permissions of
// the ClusterServiceVersion: for an operator of all namespaces OLM makes these
// ClusterRoles, and the operator could write Secrets and Leases everywhere. Its
// Roles and RoleBindings are objects of the bundle, too.
func (g *inputs) clusterPermissions() (
	permissions []operatorsv1alpha1.StrategyDeploymentPermissions, held []*unstructured.Unstructured, err error,
) {
	roles := g.of("ClusterRole")
	for _, object := range g.of("ClusterRoleBinding") {
		binding, role := rbacv1.ClusterRoleBinding{}, rbacv1.ClusterRole{}
		if err := into(object, &binding); err != nil {
			return nil, nil, err
		}
		own := slices.DeleteFunc(slices.Clone(binding.Subjects), func(subject rbacv1.Subject) bool {
			return subject.Kind != rbacv1.ServiceAccountKind || subject.Name != g.account || subject.Namespace != g.namespace.GetName()
		})
		i := slices.IndexFunc(roles, func(role *unstructured.Unstructured) bool { return role.GetName() == binding.RoleRef.Name })
		switch {
		case len(own) == 0:
			continue
		case len(own) < len(binding.Subjects):
			return nil, nil, fmt.Errorf(
				"ClusterRoleBinding %s: it is for the operator and for others, whose namespaces OLM doesn't know", binding.Name)
		case i < 0:
			return nil, nil, fmt.Errorf("ClusterRoleBinding %s: there is no ClusterRole %s", binding.Name, binding.RoleRef.Name)
		}
		if err := into(roles[i], &role); err != nil {
			return nil, nil, err
		}
		held = append(held, object, roles[i])
		permissions = append(permissions, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: g.account, Rules: role.Rules})
	}
	return permissions, held, nil
}
