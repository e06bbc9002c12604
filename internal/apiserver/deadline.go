// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"io"
	"net/http"
	"time"

	roundtrip "k8s.io/client-go/transport"
)

// RequestLimit is for all that an answer takes, its body included. By default the API server itself ends a request
// after a minute, so only stuck requests reach this limit.
const RequestLimit = 2 * time.Minute

// Within returns a wrapper that ends a request without a deadline after the limit. A
// watch stays open for as long as its caller wants.
func Within(limit time.Duration) roundtrip.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return &roundTripper{next: next, limit: limit} }
}

type roundTripper struct {
	next  http.RoundTripper
	limit time.Duration
}

// RoundTrip implements http.RoundTripper.
func (r *roundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	if _, bounded := request.Context().Deadline(); bounded || isWatch(request) {
		return r.next.RoundTrip(request) //nolint:wrapcheck // it is as if this weren't there
	}
	ctx, cancel := context.WithTimeout(request.Context(), r.limit)
	response, err := r.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err //nolint:wrapcheck // it is as if this weren't there
	}
	response.Body = &body{ReadCloser: response.Body, cancel: cancel}
	return response, nil
}

// WrappedRoundTripper returns the wrapped RoundTripper, through which client-go
// reaches the connections.
func (r *roundTripper) WrappedRoundTripper() http.RoundTripper { return r.next }

func isWatch(request *http.Request) bool {
	watch := request.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}

// body ends the request's context once it has been read.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close() //nolint:wrapcheck // it is as if this weren't there
}
