// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkAnswer is a whole answer over HTTP, but for the network.
func BenchmarkAnswer(b *testing.B) {
	limits := []limit{payments("", list("pods", "90", "requests.cpu", "90", "requests.memory", "90Gi"), list("pods", "5", "requests.cpu", "1", "requests.memory", "1Gi"))}
	w := &world{}
	b.Run("as much as is judged, ten quotas", func(b *testing.B) {
		var ten []limit
		for i := range 10 {
			ten = append(ten, limit{name: fmt.Sprint("quota-", i), hard: limits[0].hard, used: limits[0].used})
		}
		*w = *newWorld(b, ten...)
		serve(b, NewEndpoint(w.handler()), string(raw(creation("deployments", claiming(deployment(8, "cpu", "1", "memory", "1Gi"), maxParts-1))).Raw))
	})
	b.Run("more than is judged", func(b *testing.B) {
		*w = *newWorld(b, limits...)
		serve(b, NewEndpoint(w.handler()), string(raw(creation("deployments", claiming(deployment(8, "cpu", "1"), 30000))).Raw))
	})
	b.Run("creation", func(b *testing.B) {
		*w = *newWorld(b, limits...)
		serve(b, NewEndpoint(w.handler()), string(raw(creation("deployments", deployment(8, "cpu", "1", "memory", "1Gi"))).Raw))
	})
	b.Run("update", func(b *testing.B) {
		*w = *newWorld(b, limits...)
		serve(b, NewEndpoint(w.handler()), string(raw(update("deployments", running(8, "cpu", "1", "memory", "1Gi"), deployment(9, "cpu", "1", "memory", "1Gi"))).Raw))
	})
}

func serve(b *testing.B, endpoint http.Handler, request string) {
	b.Helper()
	body := []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` + request + "}")
	b.ReportAllocs()
	for b.Loop() {
		answer := httptest.NewRecorder()
		asked := httptest.NewRequestWithContext(b.Context(), http.MethodPost, Path, io.NopCloser(bytes.NewReader(body)))
		endpoint.ServeHTTP(answer, asked)
		if answer.Code != http.StatusOK {
			b.Fatal(answer.Body)
		}
	}
}
