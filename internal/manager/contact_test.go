// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

const silence = 5 * time.Second

func TestARequestIsRefusedWithoutContact(t *testing.T) {
	allow := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { return admission.Allowed("") })
	wait := admission.HandlerFunc(func(ctx context.Context, _ admission.Request) admission.Response {
		<-ctx.Done()
		return admission.Errored(http.StatusInternalServerError, ctx.Err())
	})
	for name, test := range map[string]struct {
		handler admission.Handler
		after   time.Duration
		code    int32
		took    time.Duration
	}{
		"with contact it is answered": {handler: allow, code: http.StatusOK},
		"without, it is refused":      {handler: allow, after: silence, code: http.StatusServiceUnavailable},
		"what waits is refused once the contact is lost": {
			handler: wait, after: time.Second, code: http.StatusServiceUnavailable, took: 4 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				silent := apiserver.NewContact(clock.RealClock{}, "replica-1")
				go func() {
					apiserver.NewMonitor(silent, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }).Run(ctx)
				}()
				clock.RealClock{}.Sleep(test.after)
				began := clock.RealClock{}.Now()
				got := inContact{test.handler, silent}.Handle(t.Context(), admission.Request{})
				if got.Result.Code != test.code || got.Allowed != (test.code == http.StatusOK) {
					t.Errorf("got %+v, want %d", got, test.code)
				}
				if took := (clock.RealClock{}).Since(began); took != test.took {
					t.Errorf("took %s, want %s", took, test.took)
				}
			})
		})
	}
}
