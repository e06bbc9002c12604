// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

func customKind(index int) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "scale.example.com", Version: "v1", Kind: fmt.Sprintf("Thing%d", index)}
}

func customPlural(index int) string { return fmt.Sprintf("thing%ds", index) }

// customLimit is the name by which a quota limits the number of a custom resource's objects.
func customLimit(index int) corev1.ResourceName {
	return corev1.ResourceName("count/" + customPlural(index) + "." + customKind(index).Group)
}

// customExpected adds what the ledgers should come to: all but the first custom resource is counted.
func (s size) customExpected(expected map[string]usage) {
	for i := 1; i < s.custom; i++ {
		quota := s.quotaOf(i)
		used := expected[quota]
		used.custom++
		expected[quota] = used
	}
}

// prepareCustom defines custom resources, of which the first is broken: nobody converts its
// objects, so that it can't be listed.
func (w *scaleWorld) prepareCustom(ctx context.Context) error {
	if w.custom == 0 {
		return nil
	}
	sayf("defining %d custom resources, one of them broken", w.custom)
	err := inParallel(ctx, w.custom, func(ctx context.Context, i int) error {
		definition := builders.CustomResource(customKind(i), customPlural(i))
		if err := w.quotas.Create(ctx, definition); err != nil {
			return err
		}
		return w.untilServed(ctx, i)
	})
	if err != nil {
		return fmt.Errorf("defining custom resources: %w", err)
	}
	if err := w.breakFirst(ctx); err != nil {
		return fmt.Errorf("breaking a custom resource: %w", err)
	}
	return nil
}

// untilServed returns once objects of a custom resource can be listed.
func (w *scaleWorld) untilServed(ctx context.Context, index int) error {
	return poll(ctx, customPlural(index)+" to be served", func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(customKind(index))
		err := w.quotas.List(ctx, list, client.Limit(1))
		return err == nil, err
	})
}

// breakFirst stores an object of the first custom resource, and has another version stored
// from then on, to which a webhook converts that isn't there.
func (w *scaleWorld) breakFirst(ctx context.Context) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(customKind(0))
	object.SetNamespace(namespaceName(0))
	object.SetName("old")
	if err := w.quotas.Create(ctx, object); err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := w.quotas.Get(ctx, client.ObjectKey{Name: customPlural(0) + "." + customKind(0).Group}, definition); err != nil {
		return err
	}
	next := definition.Spec.Versions[0].DeepCopy()
	next.Name = "v2"
	definition.Spec.Versions[0].Storage = false
	definition.Spec.Versions = append(definition.Spec.Versions, *next)
	definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/convert")},
			ConversionReviewVersions: []string{"v1"},
		},
	}
	return w.quotas.Update(ctx, definition)
}
