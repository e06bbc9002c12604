// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// creation asks to create a pod "web" in the namespace "shop".
func creation() *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID:       "request",
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: "shop", Name: "web", Operation: admissionv1.Create,
		Object: raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"pod"},` +
			`"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"250m"}}}]}}`),
	}
}

// resize asks for more CPU for the pod "web".
func resize() *admissionv1.AdmissionRequest {
	request := creation()
	request.Operation, request.SubResource = admissionv1.Update, "resize"
	request.OldObject = raw(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop","uid":"pod","resourceVersion":"4711"},` +
		`"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"100m"}}}]}}`)
	return request
}

// widget asks to create a custom resource, of which only its metadata matters.
func widget() *admissionv1.AdmissionRequest {
	request := creation()
	request.Kind = metav1.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}
	request.Resource = metav1.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	request.Object = raw(`{"apiVersion":"example.com/v1beta1","kind":"Widget","metadata":{"name":"web","namespace":"shop","uid":"widget"},"spec":7}`)
	return request
}

func raw(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }

// but changes a request before it is used.
func but(request *admissionv1.AdmissionRequest, change func(*admissionv1.AdmissionRequest)) *admissionv1.AdmissionRequest {
	change(request)
	return request
}

func dryRun(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	request.DryRun = ptr.To(true)
	return request
}

func reviewOf(tb testing.TB, request *admissionv1.AdmissionRequest) string {
	tb.Helper()
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}
