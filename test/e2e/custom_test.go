// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// installCustomResource defines a custom resource and returns once the API
// server serves it.
func installCustomResource(
	ctx context.Context, kind schema.GroupVersionKind, plural string,
) *apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	definition := mustCreate(ctx, builders.CustomResource(kind, plural))
	Eventually(ctx, func(ctx context.Context) error {
		return api.List(ctx, listOf(kind), client.InNamespace("default"))
	}).Should(Succeed())
	return definition
}

// listOf returns an empty list of a kind.
func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
