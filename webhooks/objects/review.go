// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// maxReview bounds the body that is read: two objects of the most that etcd holds, and more.
const maxReview = 7 << 20

// direct answers the v1 AdmissionReview of API servers without the library's way of reading it,
// which looks for the kind before it decodes. The library answers anything unusual, with its
// messages. It also does everything between the two: a panic is a refusal.
type direct struct {
	webhook *admission.Webhook
}

// ServeHTTP implements http.Handler.
func (d direct) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	body, err := read(request)
	review := admissionv1.AdmissionReview{}
	if err != nil || !usual(request, body, &review) {
		request.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(body), request.Body), request.Body}
		d.webhook.ServeHTTP(writer, request)
		return
	}
	answer := d.webhook.Handle(request.Context(), admission.Request{AdmissionRequest: *review.Request})
	review.Request, review.Response = nil, &answer.AdmissionResponse
	text, err := json.Marshal(review)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(text) // The API server notices.
}

// read reads the body as far as it may go.
func read(request *http.Request) ([]byte, error) {
	body := &bytes.Buffer{}
	body.Grow(int(min(max(request.ContentLength, 0), maxReview)) + bytes.MinRead)
	_, err := body.ReadFrom(io.LimitReader(request.Body, maxReview))
	return body.Bytes(), err
}

// usual decodes the review of an API server, and reports whether the body is one.
func usual(request *http.Request, body []byte, review *admissionv1.AdmissionReview) bool {
	return request.Header.Get("Content-Type") == "application/json" &&
		unmarshal(body, review) == nil &&
		review.Kind == "AdmissionReview" && review.APIVersion == admissionv1.SchemeGroupVersion.String() &&
		review.Request != nil
}
