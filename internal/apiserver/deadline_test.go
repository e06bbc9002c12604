// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowServer answers a request, or doesn't.
type slowServer func(*http.Request) (*http.Response, error)

func (s slowServer) RoundTrip(request *http.Request) (*http.Response, error) { return s(request) }

// silent takes a request and never answers.
func silent(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, context.Cause(request.Context())
}

// stalled answers, and never sends a body.
func stalled(request *http.Request) (*http.Response, error) {
	body := never(func() error { <-request.Context().Done(); return context.Cause(request.Context()) })
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
}

// never is a body that waits for an error.
type never func() error

func (n never) Read([]byte) (int, error) { return 0, n() }

func request(ctx context.Context, path string) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "https://api"+path, http.NoBody)
}

// ask sends a request and reads its answer. It returns how long that took.
func ask(ctx context.Context, of slowServer, path string) (time.Duration, error) {
	start := time.Now() //nolint:forbidigo // the time of the bubble
	response, err := Within(time.Minute)(of).RoundTrip(request(ctx, path))
	if err == nil {
		_, err = io.ReadAll(response.Body)
		err = errors.Join(err, response.Body.Close())
	}
	return time.Since(start), err //nolint:forbidigo // the time of the bubble
}

func TestAnUnansweredRequestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		slowServer slowServer
		path       string
		// own is the caller's deadline; zero for none.
		own, want time.Duration
	}{
		"without an answer":              {slowServer: silent, path: "/api/v1/pods", want: time.Minute},
		"without a body":                 {slowServer: stalled, path: "/api/v1/pods", want: time.Minute},
		"a list says that it's no watch": {slowServer: silent, path: "/api/v1/pods?watch=false", want: time.Minute},
		"sooner if the caller says so":   {slowServer: silent, path: "/api/v1/pods", own: time.Second, want: time.Second},
		"later if the caller says so":    {slowServer: silent, path: "/api/v1/pods", own: time.Hour, want: time.Hour},
		"a watch when its caller ends":   {slowServer: stalled, path: "/api/v1/pods?watch=true", own: 24 * time.Hour, want: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.own > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.own)
					defer cancel()
				}
				took, err := ask(ctx, test.slowServer, test.path)
				if took != test.want || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v after %s, want it to end after %s", err, took, test.want)
				}
			})
		})
	}
}

func TestAWatchStaysOpen(t *testing.T) {
	for _, path := range []string{"/api/v1/pods?watch=true", "/api/v1/pods?resourceVersion=1&watch=1"} {
		bounded := false
		_, err := ask(t.Context(), func(request *http.Request) (*http.Response, error) {
			_, bounded = request.Context().Deadline()
			return &http.Response{Body: http.NoBody}, nil
		}, path)
		if bounded || err != nil {
			t.Errorf("%s: bounded is %v, error %v", path, bounded, err)
		}
	}
}

func TestAnAnswerIsReadToItsEnd(t *testing.T) {
	var ended func() error
	answering := Within(time.Minute)(slowServer(func(request *http.Request) (*http.Response, error) {
		ended = request.Context().Err
		return &http.Response{Body: io.NopCloser(strings.NewReader("all of it"))}, nil
	}))
	response, err := answering.RoundTrip(request(t.Context(), "/version"))
	if err != nil || ended() != nil {
		t.Fatalf("got %v, and the request has ended: %v", err, ended())
	}
	if text, err := io.ReadAll(response.Body); string(text) != "all of it" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
	if err := response.Body.Close(); err != nil || ended() == nil {
		t.Errorf("closed with %v, and the request hasn't ended", err)
	}
}
