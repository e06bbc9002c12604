// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// inputs are the objects that kustomize built, apart by what becomes of them.
type inputs struct {
	// base is what people have written of the ClusterServiceVersion.
	base operatorsv1alpha1.ClusterServiceVersion
	// namespace is the one that kustomize installs into. OLM may choose another.
	namespace *unstructured.Unstructured
	// deployment runs the operator, as account.
	deployment appsv1.Deployment
	account    *unstructured.Unstructured
	crds       []apiextensionsv1.CustomResourceDefinition
	scorecard  *unstructured.Unstructured
	roles      []rbacv1.ClusterRole
	bindings   []rbacv1.ClusterRoleBinding
	// others are objects for the bundle, or for beside it, as they are.
	others []*unstructured.Unstructured
	// all of the above, for looking up examples and CRDs as they are.
	all []*unstructured.Unstructured
}

// read takes a stream of YAML documents apart. An object that has no place is an
// error: what a bundle would lose without a word is to be decided on here.
func read(built io.Reader) (*inputs, error) {
	given := &inputs{}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(built))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if err := given.add(object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := given.check(); err != nil {
		return nil, err
	}
	return given, nil
}

func (g *inputs) add(object *unstructured.Unstructured) error {
	g.all = append(g.all, object)
	switch object.GroupVersionKind().GroupKind().String() {
	case "ClusterServiceVersion.operators.coreos.com":
		return into(object, &g.base)
	case "Namespace":
		return once(&g.namespace, object)
	case "Deployment.apps":
		return into(object, &g.deployment)
	case "ServiceAccount":
		return once(&g.account, object)
	case "Configuration.scorecard.operatorframework.io":
		return once(&g.scorecard, object)
	case "CustomResourceDefinition.apiextensions.k8s.io":
		return appended(&g.crds, object)
	case "ClusterRole.rbac.authorization.k8s.io":
		return appended(&g.roles, object)
	case "ClusterRoleBinding.rbac.authorization.k8s.io":
		return appended(&g.bindings, object)
	}
	g.others = append(g.others, object)
	return nil
}

// check tells whether everything is there that a bundle is made of.
func (g *inputs) check() error {
	switch {
	case g.base.Name == "":
		return errors.New("the base of the ClusterServiceVersion is missing")
	case g.namespace == nil:
		return errors.New("the Namespace is missing")
	case g.deployment.Name == "":
		return errors.New("the Deployment is missing")
	case g.account == nil:
		return errors.New("the ServiceAccount is missing")
	case g.scorecard == nil:
		return errors.New("the configuration of scorecard is missing")
	case g.deployment.Namespace != g.namespace.GetName() || g.account.GetNamespace() != g.namespace.GetName():
		return fmt.Errorf("the Deployment or the ServiceAccount is not in the namespace %s", g.namespace.GetName())
	case g.deployment.Spec.Template.Spec.ServiceAccountName != g.account.GetName():
		return fmt.Errorf("the Deployment runs as %s, the ServiceAccount is %s",
			g.deployment.Spec.Template.Spec.ServiceAccountName, g.account.GetName())
	}
	return nil
}

// isAccount tells whether a binding's subject is the operator.
func (g *inputs) isAccount(subject rbacv1.Subject) bool {
	return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == g.account.GetName() &&
		subject.Namespace == g.namespace.GetName()
}

func once(place **unstructured.Unstructured, object *unstructured.Unstructured) error {
	if *place != nil {
		return fmt.Errorf("there is %s already", (*place).GetName())
	}
	*place = object
	return nil
}

func appended[T any](list *[]T, object *unstructured.Unstructured) error {
	var typed T
	if err := into(object, &typed); err != nil {
		return err
	}
	*list = append(*list, typed)
	return nil
}

// into converts an object to its type. A field that the type lacks, or an object
// that is there already, is an error.
func into(object *unstructured.Unstructured, typed any) error {
	if named, ok := typed.(interface{ GetName() string }); ok && named.GetName() != "" {
		return fmt.Errorf("there is %s already", named.GetName())
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
}
