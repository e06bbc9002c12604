// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

func TestAServerThatStopsAnswersForAWhileAndEndsItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setup, err := New(clock.RealClock{}, Options{URL: "https://127.0.0.1:9443", Port: 9443})
		if err != nil {
			t.Fatal(err)
		}
		setup.Server.Register("/asked", http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
			response.WriteHeader(http.StatusTeapot)
		}))
		wantAnswer := func(connection string) {
			t.Helper()
			answer := httptest.NewRecorder()
			setup.Server.WebhookMux().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/asked", nil))
			if answer.Code != http.StatusTeapot || answer.Header().Get("Connection") != connection {
				t.Errorf("got %d, Connection: %q, want %q", answer.Code, answer.Header().Get("Connection"), connection)
			}
		}
		running, terminate := context.WithCancel(t.Context())
		stopped := setup.Server.Stopping(running, clock.RealClock{}, 5*time.Second)
		synctest.Wait()
		wantAnswer("")

		terminate()
		clock.RealClock{}.Sleep(4 * time.Second)
		synctest.Wait()
		wantAnswer("close")
		if stopped.Err() != nil {
			t.Error("it has stopped too early")
		}
		clock.RealClock{}.Sleep(time.Second)
		synctest.Wait()
		if stopped.Err() == nil {
			t.Error("it has not stopped")
		}
	})
}
