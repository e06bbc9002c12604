// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// bubble is the clock of the synctest bubble that each test here runs in.
var bubble = clock.RealClock{}

// apiServer answers probes as one does that has loaded an edition.
type apiServer struct {
	mu     sync.Mutex // guards the fields below
	loaded webhookconfig.Edition
	// failure of each probe; nil for none.
	failure error
	// silent: it doesn't call the operator.
	silent bool
	probes int
}

func (s *apiServer) create(ctx context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.probes++
	chosen := (&client.CreateOptions{}).ApplyOptions(options)
	if !slices.Equal(chosen.DryRun, []string{"All"}) || object.GetLabels()[webhookconfig.ProbeLabel] != "true" || object.GetName() != "" {
		return errors.New("this would be stored, or meets no entry")
	}
	collector{}.HandleWarningHeaderWithContext(ctx, 299, "-", "another's")
	if s.failure == nil && !s.silent {
		collector{}.HandleWarningHeaderWithContext(ctx, 299, "-", s.loaded.Warning())
	}
	return s.failure
}

// set changes how the API server answers.
func (s *apiServer) set(change func(*apiServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *apiServer) probed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes
}

// tellings are the quotas that were told of.
type tellings struct {
	outcomes.Observer // nothing else is observed

	mu         sync.Mutex // guards the fields below
	quotas     []string
	recoveries int
}

func (t *tellings) recover() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recoveries++
}

func (t *tellings) recovered() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recoveries
}

// Probed implements outcomes.Observer.
func (*tellings) Probed(outcomes.Probe, time.Duration) {}

func (t *tellings) tell(quotas []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quotas = append(t.quotas, quotas...)
}

// take returns the reports since the last call.
func (t *tellings) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.quotas
	t.quotas = nil
	return taken
}

func editionAt(generation int64) webhookconfig.Edition {
	return webhookconfig.Edition{Generation: generation, Mark: "0123456789abcdef"}
}

// proving runs a Prober on the API server until the test has ended.
func proving(t *testing.T, server *apiServer) (*Prober, *webhookconfig.Proofs, *tellings) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := quotav1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	proofs, told := &webhookconfig.Proofs{}, &tellings{}
	c := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{Create: server.create}).Build()
	prober := newProber(c, ProberParts{Clock: bubble, Proofs: proofs, Outcomes: told, Changed: told.tell, Recovered: told.recover})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- prober.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return prober, proofs, told
}

func observe(prober *Prober, proofs *webhookconfig.Proofs, generation int64) {
	quotas := []webhookconfig.Quota{{Name: "team", UID: "uid", Generation: 1}}
	proofs.Observe(webhookconfig.Observation{
		Configuration: "configuration", Generation: generation, Edition: editionAt(generation), Quotas: quotas, Coverages: []webhookconfig.Coverage{webhookconfig.Exact},
	}, bubble.Now())
	prober.Wake()
}

func TestTheProberProvesWhatIsWrittenAndGoesOnProvingIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{loaded: editionAt(1)}
		prober, proofs, told := proving(t, server)
		bubble.Sleep(time.Minute)
		if got := server.probed(); got != 0 {
			t.Errorf("with nothing to prove: got %d probes, want none", got)
		}
		observe(prober, proofs, 1)
		synctest.Wait()
		if verdict := proofs.Of("team", "uid", 1, bubble.Now()); verdict.Enforcement != webhookconfig.Proved {
			t.Errorf("got %+v, want it proved", verdict)
		}
		if diff := cmp.Diff([]string{"team"}, told.take()); diff != "" {
			t.Errorf("told (-want,+got):\n%s", diff)
		}
		prober.Wake()
		bubble.Sleep(time.Minute + time.Second)
		if got := server.probed(); got != 7 {
			t.Errorf("in a minute: got %d probes, want 7", got)
		}
	})
}

func TestTheProberWaitsUntilTheAPIServerHasLoadedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &apiServer{loaded: editionAt(1)}
		prober, proofs, told := proving(t, server)
		observe(prober, proofs, 1)
		synctest.Wait()
		proofs.Observe(webhookconfig.Observation{Configuration: "configuration", Generation: 2}, bubble.Now()) // all entries are gone
		observe(prober, proofs, 3)
		bubble.Sleep(50 * time.Millisecond)
		if verdict := proofs.Of("team", "uid", 1, bubble.Now()); verdict.Enforcement != webhookconfig.Unproved || server.probed() != 4 {
			t.Errorf("got %+v after %d probes, want it unproved after 4", verdict, server.probed())
		}
		told.take()
		server.set(func(s *apiServer) { s.loaded = editionAt(3) })
		bubble.Sleep(20 * time.Millisecond)
		verdict, quotas := proofs.Of("team", "uid", 1, bubble.Now()), told.take()
		if verdict.Enforcement != webhookconfig.Proved || len(quotas) != 1 {
			t.Errorf("got %+v and told %q, want it proved, and told", verdict, quotas)
		}
	})
}

func TestTheProberTellsOfProbesThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		harm func(*apiServer)
		want string
	}{
		"with an error": {
			func(s *apiServer) { s.failure = errors.New("connection refused") }, "creating a QuotaLedger as a dry run: connection refused",
		},
		"because the operator isn't called": {func(s *apiServer) { s.silent = true }, "the API server did not call the operator"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &apiServer{loaded: editionAt(1)}
				prober, proofs, told := proving(t, server)
				observe(prober, proofs, 1)
				synctest.Wait()
				told.take()
				server.set(test.harm)
				bubble.Sleep(24 * time.Second)
				if quotas := told.take(); len(quotas) != 0 {
					t.Errorf("told %q too early", quotas)
				}
				bubble.Sleep(3 * time.Second)
				verdict, quotas := proofs.Of("team", "uid", 1, bubble.Now()), told.take()
				if verdict.Enforcement != webhookconfig.Unprovable || verdict.Failure != test.want || len(quotas) != 1 {
					t.Errorf("got %+v and told %q, want it told that it fails", verdict, quotas)
				}
			})
		})
	}
}

// The API server tells its client the URL if a call of a webhook fails.
func TestTheProberTellsOfTheEndOfAnOutage(t *testing.T) {
	const url = "https://quota.example/00112233445566778899aabbccddeeff/probe/1-0123456789abcdef"
	for failure, want := range map[string]int{
		`failed calling webhook "probe.quota.sharedquota.dev": Post "` + url + `": EOF`: 1,
		"connection refused": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &apiServer{loaded: editionAt(1)}
			prober, proofs, told := proving(t, server)
			observe(prober, proofs, 1)
			bubble.Sleep(30 * time.Second)
			server.set(func(s *apiServer) { s.failure = errors.New(failure) })
			bubble.Sleep(30 * time.Second)
			if got := told.recovered(); got != 0 {
				t.Errorf("told of %d ends before there was one", got)
			}
			if verdict := proofs.Of("team", "uid", 1, bubble.Now()); strings.Contains(verdict.Failure, "00112233445566778899aabbccddeeff") {
				t.Errorf("the token stands in %q", verdict.Failure)
			}
			server.set(func(s *apiServer) { s.failure = nil })
			bubble.Sleep(time.Minute)
			if got := told.recovered(); got != want {
				t.Errorf("%s: told of %d ends, want %d", failure, got, want)
			}
		})
	}
}

func TestWhenToProbe(t *testing.T) {
	one, two := webhookconfig.Edition{Generation: 1}, webhookconfig.Edition{Generation: 2}
	now := time.Unix(5000, 0)
	c := &cadence{}
	var got []time.Duration
	probes := func(edition webhookconfig.Edition, proved bool) {
		now = now.Add(c.wait(edition, now))
		c.ended(proved, now)
		got = append(got, c.wait(edition, now))
	}
	var want []time.Duration
	probes(one, true)
	want = append(want, probeEvery)
	if wait := c.wait(two, now); wait != 0 {
		t.Errorf("a new edition: got a wait of %s, want none", wait)
	}
	for i := range quickProbes + 8 {
		probes(two, false)
		want = append(want, min(time.Second, 20*time.Millisecond<<max(0, i+1-quickProbes)))
	}
	probes(two, true)
	probes(two, false)
	want = append(want, probeEvery, probeSoon)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want,+got):\n%s", diff)
	}
}
