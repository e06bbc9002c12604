// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

// An API server that takes a question and never answers keeps a mapper no longer than
// its time.
func TestAMapperDoesNotWaitForever(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }))
	defer api.Close()
	mapper, err := mapperWithin(50*time.Millisecond)(&rest.Config{Host: api.URL}, api.Client())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want what took too long", err)
	}
}

// They are as many series as all quotas have namespaces, times the limited
// resources.
func TestNamespacesAreNotExportedByDefault(t *testing.T) {
	all := flag.CommandLine
	t.Cleanup(func() { flag.CommandLine = all })
	flag.CommandLine = flag.NewFlagSet(t.Name(), flag.ContinueOnError)
	f := metricsFlags{namespaces: true}
	f.bind()
	if f.namespaces {
		t.Error("what each namespace uses is exported by default")
	}
}

// roundTripper is an API server's side of a connection.
type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

var errAsked = errors.New("the API server was asked")

// Libraries list for watches and write events, and give these requests no deadline.
func TestEveryRequestHasADeadline(t *testing.T) {
	var left time.Duration
	given := &rest.Config{Host: "https://api", Transport: roundTripper(func(request *http.Request) (*http.Response, error) {
		if until, bounded := request.Context().Deadline(); bounded {
			left = time.Until(until) //nolint:forbidigo // a context's deadline is in real time
		}
		return nil, errAsked
	})}
	client, err := kubernetes.NewForConfig(tuned(given))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !errors.Is(err, errAsked) {
		t.Fatal(err)
	}
	if left <= 0 || left > apiserver.RequestLimit {
		t.Errorf("a list may take %s, want %s at most", left, apiserver.RequestLimit)
	}
	if given.QPS != 0 {
		t.Error("the config that was given has changed")
	}
}
