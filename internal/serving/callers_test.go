// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const known, next webhookconfig.Token = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"

// stored is the configuration in the cluster, as it is read live.
type stored struct {
	client.Reader
	mu    sync.Mutex // guards the fields below
	token webhookconfig.Token
	// retired are those before it.
	retired map[webhookconfig.Token]time.Time
	// The next reads fail with err: so many, or all if it is negative.
	err   error
	fails int
	reads int
	// takes is how long a read takes.
	takes time.Duration
}

func (s *stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	clock.RealClock{}.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	settings := webhookconfig.Settings{
		Endpoint: webhookconfig.Endpoint{Namespace: "operator", Name: "webhook"}, Token: s.token, Retired: s.retired, Paths: webhookconfig.Paths{Quotas: "/quotas"},
	}
	webhooks, exact := settings.Webhooks(nil)
	list.SetResourceVersion("9")
	configuration := admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName}, Webhooks: webhooks,
	}
	settings.Annotate(&configuration, exact)
	list.(*admissionregistrationv1.ValidatingWebhookConfigurationList).Items = []admissionregistrationv1.ValidatingWebhookConfiguration{configuration}
	if s.err != nil && s.fails != 0 {
		s.fails--
		return s.err
	}
	return nil
}

// accepts reports whether a caller with this token is accepted, without an error.
func accepts(t *testing.T, callers *Callers, token webhookconfig.Token) bool {
	t.Helper()
	accepted, err := callers.accept(t.Context(), token)
	if err != nil {
		t.Errorf("got error %v", err)
	}
	return accepted
}

func TestACallerWithTheTokenIsAnAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := NewCallers(clock.RealClock{})
		if callers.knows(known) || callers.knows("") {
			t.Error("knows somebody before it has seen a configuration")
		}
		callers.take(1, []webhookconfig.Token{known}, nil)
		if !callers.knows(known) || callers.knows(next) {
			t.Error("want one token known, and the other not")
		}
		callers.take(3, []webhookconfig.Token{next}, nil)
		callers.take(2, []webhookconfig.Token{known}, nil) // a watch is behind a live read
		clock.RealClock{}.Sleep(webhookconfig.TokenOutlives - time.Second)
		callers.take(3, []webhookconfig.Token{next}, nil) // it is shown once more
		if !callers.knows(known) || !callers.knows(next) {
			t.Error("want both known while an API server may still call by the first")
		}
		clock.RealClock{}.Sleep(time.Second)
		if callers.knows(known) || !callers.knows(next) {
			t.Error("want only the second known a minute later")
		}
		callers.take(4, []webhookconfig.Token{known}, nil) // the configuration was restored
		if !callers.knows(known) {
			t.Error("want it known again")
		}
		callers.take(5, nil, nil) // it was deleted
		clock.RealClock{}.Sleep(webhookconfig.TokenOutlives)
		if callers.knows(known) {
			t.Error("want nobody known where there is no configuration")
		}
	})
}

// An API server may call by the token before the newest one while it is behind.
func TestAReplicaThatStartsAcceptsTheTokenBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clock.RealClock{}.Now()
		old := webhookconfig.NewToken()
		live := &stored{token: next, retired: map[webhookconfig.Token]time.Time{known: now.Add(40 * time.Second), old: now.Add(-time.Second)}}
		callers := NewCallers(clock.RealClock{})
		callers.live = live
		if !accepts(t, callers, known) || !accepts(t, callers, next) {
			t.Error("want both accepted while an API server may still call by the first")
		}
		if accepts(t, callers, old) {
			t.Error("accepts a token whose time was over")
		}
		clock.RealClock{}.Sleep(40 * time.Second)
		if accepts(t, callers, known) || !accepts(t, callers, next) {
			t.Error("want only the second accepted once the time of the first is over")
		}

		live.retired = map[webhookconfig.Token]time.Time{known: now.Add(time.Hour)}
		callers = NewCallers(clock.RealClock{})
		callers.live = live
		if !accepts(t, callers, known) {
			t.Error("refused, although the clock of who replaced it is only ahead")
		}
		clock.RealClock{}.Sleep(webhookconfig.TokenOutlives - time.Second)
		live.retired = nil
		clock.RealClock{}.Sleep(time.Second)
		if accepts(t, callers, known) {
			t.Error("accepts it for longer than a minute")
		}
	})
}

func TestATokenThatNoWatchHasShownIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := &stored{token: next, takes: 100 * time.Millisecond, err: errors.New("connection refused"), fails: 2}
		callers := NewCallers(clock.RealClock{})
		callers.live = live
		callers.take(1, []webhookconfig.Token{known}, nil)
		if !accepts(t, callers, next) || live.fails != 0 {
			t.Error("refused, although the configuration has it as soon as it can be read")
		}
		clock.RealClock{}.Sleep(time.Minute)
		live.takes, live.reads = 0, 0
		var strangers sync.WaitGroup
		began := clock.RealClock{}.Now()
		for range 500 {
			strangers.Go(func() {
				if accepts(t, callers, webhookconfig.NewToken()) {
					t.Error("accepts a stranger")
				}
			})
		}
		strangers.Wait()
		if took := (clock.RealClock{}).Since(began); live.reads > 2 || took > 2*liveEvery {
			t.Errorf("500 strangers cost %d reads, and waited for %s", live.reads, took)
		}

		live.fails, began = -1, clock.RealClock{}.Now()
		_, err := callers.accept(t.Context(), webhookconfig.NewToken())
		if took := (clock.RealClock{}).Since(began); err == nil || took > acceptWait {
			t.Errorf("got error %v after %s, want one while nobody can look", err, took)
		}
		if !accepts(t, callers, next) {
			t.Error("want who is known accepted all the same")
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := callers.accept(ctx, webhookconfig.NewToken()); !errors.Is(err, context.Canceled) {
			t.Errorf("got error %v of who has gone", err)
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}
