// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// owner is the ClusterServiceVersion that is installed.
var owner []metav1.OwnerReference

// install does what OLM does with a bundle whose OperatorGroup is for all
// namespaces. The ClusterServiceVersion owns all in its namespace, and its labels
// are on the ClusterRoles of its permissions.
func install(ctx context.Context, b bundle) {
	GinkgoHelper()
	csv := b.object.DeepCopy()
	csv.SetNamespace(namespace)
	Expect(admin.Create(ctx, csv)).To(Succeed())
	owner = []metav1.OwnerReference{{
		APIVersion: csv.GetAPIVersion(), Kind: csv.GetKind(), Name: csv.GetName(), UID: csv.GetUID(),
		Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false),
	}}
	for _, object := range b.objects {
		if object.GetKind() == "CustomResourceDefinition" {
			create(ctx, object)
		}
	}
	suite.Kubectl(ctx, cluster, "wait", "--for=condition=established", "--timeout=60s", "crd", "--all")
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
	deployment := b.csv.Spec.Install.Spec.Deployments[0]
	Expect(admin.Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: deployment.Name, Labels: deployment.Label, OwnerReferences: owner},
		Spec:       deployment.Spec,
	})).To(Succeed())
}

// ownedBy selects what OLM deletes before the ClusterServiceVersion is gone.
func ownedBy(b bundle) client.MatchingLabels {
	return client.MatchingLabels{"olm.owner": b.csv.Name, "olm.owner.namespace": namespace, "olm.owner.kind": "ClusterServiceVersion"}
}

// remove does what OLM does when its ClusterServiceVersion is deleted: OLM itself deletes what has the
// labels, as a finalizer, and the garbage collector what has the owner. It returns when all of that is gone,
// and the kubelet has ended the pods.
func remove(ctx context.Context, b bundle) {
	GinkgoHelper()
	for _, owned := range []client.Object{
		&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRole{},
		&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		Expect(admin.DeleteAllOf(ctx, owned, ownedBy(b))).To(Succeed())
	}
	csv := b.object.DeepCopy()
	csv.SetNamespace(namespace)
	Expect(admin.Delete(ctx, csv, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
	replicas.EndWithoutRights()
	Eventually(ctx, owned).Should(BeEmpty())
}

// owned are the objects of the namespace that a ClusterServiceVersion owns.
func owned(ctx context.Context) ([]string, error) {
	var names []string
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceAccountList{}, &corev1.ServiceList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	} {
		if err := admin.List(ctx, list, inNamespace); err != nil {
			return nil, err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object, err := meta.Accessor(item)
			if err == nil && len(object.GetOwnerReferences()) > 0 {
				names = append(names, fmt.Sprintf("%T %s", item, object.GetName()))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
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
		object.SetOwnerReferences(owner)
	}
	err = admin.Create(ctx, object, client.FieldValidation(metav1.FieldValidationStrict))
	if !namespaced {
		err = client.IgnoreAlreadyExists(err) // OLM leaves them, and finds them again
	}
	Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
}

// grant makes the ServiceAccount, where it isn't there yet, and lets it do what the
// rules say, in all namespaces.
func grant(ctx context.Context, name string, permission permission) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: permission.ServiceAccountName, OwnerReferences: owner,
	}}
	Expect(client.IgnoreAlreadyExists(admin.Create(ctx, account))).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownedBy(given)}, Rules: permission.Rules,
	})).To(Succeed())
	Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: ownedBy(given)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: permission.ServiceAccountName,
		}},
	})).To(Succeed())
}
