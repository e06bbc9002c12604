// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// install does what OLM does with a bundle whose OperatorGroup is for all
// namespaces, up to the Deployment.
func install(ctx context.Context, b bundle) {
	GinkgoHelper()
	for _, object := range b.objects {
		if object.GetKind() == "CustomResourceDefinition" {
			create(ctx, object)
		}
	}
	for _, object := range b.objects {
		if object.GetKind() == "CustomResourceDefinition" {
			waitUntilServed(ctx, object.GetName())
		}
	}
	for i, permission := range b.csv.Spec.Install.Spec.ClusterPermissions {
		grant(ctx, fmt.Sprintf("%s-%d", b.csv.Name, i), permission)
	}
	// For an operator of all namespaces, OLM makes these ClusterRoles as well.
	for i, permission := range b.csv.Spec.Install.Spec.Permissions {
		grant(ctx, fmt.Sprintf("%s-lifted-%d", b.csv.Name, i), permission)
	}
	for _, object := range b.objects {
		if object.GetKind() != "CustomResourceDefinition" {
			create(ctx, object)
		}
	}
}

// create creates an object of the bundle in the operator's namespace, if it is in
// any. A field that its type lacks is an error.
func create(ctx context.Context, object *unstructured.Unstructured) {
	GinkgoHelper()
	object = object.DeepCopy()
	Expect(object.GetNamespace()).To(BeEmpty(), "OLM decides on the namespace of %s %s", object.GetKind(), object.GetName())
	namespaced, err := admin.IsObjectNamespaced(object)
	Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
	if namespaced {
		object.SetNamespace(namespace)
	}
	Expect(admin.Create(ctx, object, client.FieldValidation(metav1.FieldValidationStrict))).
		To(Succeed(), "%s %s", object.GetKind(), object.GetName())
}

func waitUntilServed(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		g.Expect(admin.Get(ctx, types.NamespacedName{Name: name}, definition)).To(Succeed())
		g.Expect(definition.Status.Conditions).To(ContainElement(And(
			HaveField("Type", apiextensionsv1.Established), HaveField("Status", apiextensionsv1.ConditionTrue),
		)))
	}).Should(Succeed())
}

// grant makes the ServiceAccount, where it isn't there yet, and lets it do what the
// rules say, in all namespaces.
func grant(ctx context.Context, name string, permission permission) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: permission.ServiceAccountName}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, account))).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: permission.Rules})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: permission.ServiceAccountName,
		}},
	})).To(Succeed())
}
