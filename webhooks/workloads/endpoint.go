// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"encoding/json"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
)

// Path is where the endpoint is served.
const Path = "/admit-workloads"

// maxReview bounds the bytes that are read: two objects of the most that etcd
// holds, and more.
const maxReview = 7 << 20

// NewEndpoint serves a Handler over HTTP. A review that it can't read gets no answer but an HTTP error:
// then the API server lets the request pass, which an answer that isn't yes would refuse.
func NewEndpoint(handler *Handler) http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		review := admissionv1.AdmissionReview{}
		body, err := io.ReadAll(io.LimitReader(request.Body, maxReview))
		if err == nil {
			err = json.Unmarshal(body, &review)
		}
		if err != nil || review.Request == nil {
			http.Error(writer, "want an AdmissionReview with a request", http.StatusBadRequest)
			return
		}
		response := handler.Handle(request.Context(), review.Request).AdmissionResponse
		response.UID = review.Request.UID
		review.Request, review.Response = nil, &response
		text, err := json.Marshal(review)
		if err != nil {
			http.Error(writer, err.Error(), http.StatusInternalServerError)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		_, _ = writer.Write(text) // The API server notices.
	})
}
