// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Left returns what there is of the operator outside of the namespaces that it limits, but the ConfigMaps in its
// own namespace, whose names are random.
func Left(ctx context.Context, api client.Reader) []string {
	GinkgoHelper()
	const admission, rbac = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
	var names []string
	for _, kind := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Secret"},
		{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
		{Group: admission, Version: "v1", Kind: "ValidatingWebhookConfiguration"},
		{Group: admission, Version: "v1", Kind: "ValidatingAdmissionPolicy"},
		{Group: admission, Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: rbac, Version: "v1", Kind: "ClusterRole"}, {Group: rbac, Version: "v1", Kind: "ClusterRoleBinding"},
		{Group: rbac, Version: "v1", Kind: "Role"}, {Group: rbac, Version: "v1", Kind: "RoleBinding"},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		Expect(api.List(ctx, list)).To(Succeed())
		for _, object := range list.Items {
			if strings.Contains(object.Name, "shared") || strings.Contains(object.Name, "project-owner") {
				names = append(names, kind.Kind+" "+object.Name)
			}
		}
	}
	return names
}
