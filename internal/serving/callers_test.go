/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package serving

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

const known, next reach.Token = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"

// stored is the configuration in the cluster, as it is read live.
type stored struct {
	client.Reader
	mu    sync.Mutex // guards what follows
	token reach.Token
	err   error
	reads int
	// takes is how long a read takes.
	takes time.Duration
}

func (s *stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	clock.RealClock{}.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	webhooks, _ := reach.Settings{
		Endpoint: reach.Endpoint{Namespace: "operator", Name: "webhook"}, Token: s.token, Paths: reach.Paths{Quotas: "/quotas"},
	}.Webhooks(nil)
	list.(*admissionregistrationv1.ValidatingWebhookConfigurationList).Items = []admissionregistrationv1.ValidatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: reach.ConfigurationName}, Webhooks: webhooks,
	}}
	return s.err
}

func TestWhoCallsByTheTokenIsAnAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := NewCallers(clock.RealClock{})
		if callers.accept(t.Context(), known) {
			t.Error("accepts somebody before it knows of anybody")
		}
		callers.take([]reach.Token{known})
		if !callers.accept(t.Context(), known) || callers.accept(t.Context(), next) {
			t.Error("want one token accepted, and the other not")
		}
		callers.take([]reach.Token{next})
		clock.RealClock{}.Sleep(outlived - time.Second)
		callers.take([]reach.Token{next}) // it is shown once more
		if !callers.knows(known) || !callers.knows(next) {
			t.Error("want both accepted while an API server may still call by the first")
		}
		clock.RealClock{}.Sleep(time.Second)
		if callers.knows(known) || !callers.knows(next) {
			t.Error("want only the second accepted a minute later")
		}
		callers.take([]reach.Token{known}) // the configuration was restored
		if !callers.knows(known) {
			t.Error("want it accepted again")
		}
	})
}

func TestATokenThatNoWatchHasShownIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &stored{token: next, takes: 100 * time.Millisecond}
		callers := NewCallers(clock.RealClock{})
		callers.live = live
		callers.take([]reach.Token{known})
		if !callers.accept(t.Context(), next) {
			t.Error("refused, although the configuration has it")
		}
		clock.RealClock{}.Sleep(time.Minute)
		live.takes, live.reads = 0, 0
		var strangers sync.WaitGroup
		began := clock.RealClock{}.Now()
		for range 500 {
			strangers.Go(func() {
				if callers.accept(t.Context(), reach.NewToken()) {
					t.Error("accepts a stranger")
				}
			})
		}
		strangers.Wait()
		if took := (clock.RealClock{}).Since(began); live.reads > 2 || took > 2*liveEvery {
			t.Errorf("500 strangers cost %d reads, and waited for %s", live.reads, took)
		}
		live.err = errors.New("connection refused")
		if callers.accept(t.Context(), reach.NewToken()) || !callers.accept(t.Context(), next) {
			t.Error("want what is known accepted, and nothing else, while nobody can look")
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if callers.accept(ctx, reach.NewToken()) {
			t.Error("accepts who has gone")
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}
