// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// server answers as it is told to, through a transport that is wrapped.
type server struct {
	http.RoundTripper

	mu     sync.Mutex // guards the fields below
	status int        // its answer; 0: nothing, -1: the connection is refused
	asked  []time.Duration
	start  time.Time
}

// newServer answers 200.
func newServer(contact *Contact) *server {
	s := &server{status: http.StatusOK, start: clock.RealClock{}.Now()}
	s.RoundTripper = contact.Wrap(answering{s})
	return s
}

type answering struct{ *server }

func (s answering) RoundTrip(request *http.Request) (*http.Response, error) {
	s.mu.Lock()
	status := s.status
	s.asked = append(s.asked, clock.RealClock{}.Since(s.start))
	s.mu.Unlock()
	switch status {
	case 0:
		<-request.Context().Done()
		return nil, request.Context().Err()
	case -1:
		return nil, errors.New("connection refused")
	default:
		return &http.Response{StatusCode: status, Body: http.NoBody}, nil
	}
}

func (s *server) answer(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// when returns when it was asked since the last call.
func (s *server) when() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *server) ask(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example.com/", http.NoBody)
	if err != nil {
		return err
	}
	response, err := s.RoundTrip(request)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusInternalServerError {
		err = errors.New(http.StatusText(response.StatusCode))
	}
	return errors.Join(err, response.Body.Close())
}

// monitored runs a test in a bubble, with a Monitor.
func monitored(t *testing.T, test func(t *testing.T, contact *Contact, server *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		contact := NewContact(clock.RealClock{}, "replica-1")
		server := newServer(contact)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go NewMonitor(contact, server.ask).Run(ctx)
		test(t, contact, server)
	})
}

func sleep(d time.Duration) {
	clock.RealClock{}.Sleep(d)
	synctest.Wait()
}

func TestAnswersOfAnAPIServer(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		want   bool
	}{
		"what was asked for":                  {status: http.StatusOK, want: true},
		"that something isn't there":          {status: http.StatusNotFound, want: true},
		"that something has changed":          {status: http.StatusConflict, want: true},
		"that something isn't allowed":        {status: http.StatusForbidden, want: true},
		"not that it doesn't know the client": {status: http.StatusUnauthorized},
		"nor that it has no time":             {status: http.StatusTooManyRequests},
		"nor that it failed":                  {status: http.StatusInternalServerError},
		"nor what a proxy in between says":    {status: http.StatusBadGateway},
		"nor that the connection is refused":  {status: -1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				contact := NewContact(clock.RealClock{}, "replica-1")
				server := newServer(contact)
				sleep(4 * time.Second)
				server.answer(test.status)
				_ = server.ask(t.Context())
				if heard := contact.Silence() == 0; heard != test.want {
					t.Errorf("heard: got %t, want %t", heard, test.want)
				}
			})
		})
	}
}

func TestACallIsABreakUnlessItsCallerGaveItUp(t *testing.T) {
	for name, test := range map[string]struct {
		end     func(context.Context) (context.Context, context.CancelFunc)
		doubted bool
	}{
		"its time is over": {end: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 0)
		}, doubted: true},
		"its caller gave it up": {end: context.WithCancel},
	} {
		t.Run(name, func(t *testing.T) {
			contact := NewContact(clock.RealClock{}, "replica-1")
			server := newServer(contact)
			server.answer(0)
			ctx, cancel := test.end(t.Context())
			cancel()
			if err := server.ask(ctx); err == nil || contact.isDoubted() != test.doubted {
				t.Errorf("got %v, doubted %t", err, contact.isDoubted())
			}
		})
	}
}

func TestTheAPIServerIsAskedWhenNothingElseIs(t *testing.T) {
	monitored(t, func(t *testing.T, contact *Contact, server *server) {
		sleep(3500 * time.Millisecond)
		if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, server.when()); diff != "" {
			t.Errorf("asked (-want,+got):\n%s", diff)
		}
		for range 20 {
			if err := server.ask(t.Context()); err != nil {
				t.Fatal(err)
			}
			server.when()
			sleep(900 * time.Millisecond)
			if asked := server.when(); len(asked) > 0 {
				t.Fatalf("asked at %s, want it left alone while others ask", asked)
			}
		}
		if err := errors.Join(contact.Err(), contact.Ready(nil)); err != nil {
			t.Errorf("got %v, want contact", err)
		}
	})
}

func TestASilentServerIsLostAfterFiveSeconds(t *testing.T) {
	failing := []time.Duration{time.Second} // and once more, since the failure is the first
	for range 7 {
		failing = append(failing, time.Duration(len(failing))*time.Second+askAgain)
	}
	for name, test := range map[string]struct {
		status int
		asked  []time.Duration
	}{
		"it takes what it is asked and doesn't answer": {
			asked: []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second},
		},
		"no server listens": {
			status: -1,
			asked:  failing,
		},
		"it fails": {
			status: 500,
			asked:  failing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			monitored(t, func(t *testing.T, contact *Contact, server *server) {
				server.answer(test.status)
				waiting, stop := contact.While(t.Context())
				defer stop()
				began := clock.RealClock{}.Now()
				<-waiting.Done()
				if took := (clock.RealClock{}).Since(began); took != lostAfter {
					t.Errorf("who waits is told after %s, want %s", took, lostAfter)
				}
				lost, ok := errors.AsType[*LostError](context.Cause(waiting))
				if !ok || lost.Replica != "replica-1" || lost.Silence != lostAfter {
					t.Errorf("cause: got %v, want that the contact was lost", context.Cause(waiting))
				}
				sleep(2400 * time.Millisecond)
				if diff := cmp.Diff(test.asked, server.when()); diff != "" {
					t.Errorf("asked (-want,+got):\n%s", diff)
				}
				requireLost(t, contact)
			})
		})
	}
}

func requireLost(t *testing.T, contact *Contact) {
	t.Helper()
	const ready = "no answer from the API server for 7s"
	if err := contact.Ready(nil); err == nil || err.Error() != ready {
		t.Errorf("ready: got %v, want %s", err, ready)
	}
	const words = "the replica replica-1 has had no answer from the API server for 7s, so it can't tell what quotas allow: " +
		"try again in a moment"
	if err := contact.Err(); err == nil || err.Error() != words {
		t.Errorf("got  %v\nwant %s", err, words)
	}
	late, stop := contact.While(t.Context())
	defer stop()
	synctest.Wait()
	if late.Err() == nil {
		t.Error("who comes while there is no contact must not wait")
	}
}

func TestContactIsBackWithTheFirstAnswer(t *testing.T) {
	monitored(t, func(t *testing.T, contact *Contact, server *server) {
		server.answer(-1)
		sleep(time.Minute)
		requireNot(t, contact)
		server.answer(http.StatusOK)
		sleep(askAfter)
		if err := errors.Join(contact.Err(), contact.Ready(nil)); err != nil {
			t.Errorf("got %v, want contact", err)
		}
		waiting, stop := contact.While(t.Context())
		defer stop()
		sleep(time.Minute)
		if err := waiting.Err(); err != nil {
			t.Errorf("who waits: got %v, want it to wait", err)
		}
		server.answer(0)
		<-waiting.Done()
		requireNot(t, contact)
	})
}

func requireNot(t *testing.T, contact *Contact) {
	t.Helper()
	if contact.Err() == nil || contact.Ready(nil) == nil {
		t.Error("want no contact")
	}
}

// A replica that was stopped for a while is asked before its Monitor has run.
func TestAReplicaThatSleptHasNoContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contact := NewContact(clock.RealClock{}, "replica-1")
		sleep(lostAfter)
		requireNot(t, contact)
	})
}

func TestWhileEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contact := NewContact(clock.RealClock{}, "replica-1")
		caller, leave := context.WithCancel(t.Context())
		waiting, stop := contact.While(caller)
		leave()
		if !errors.Is(context.Cause(waiting), context.Canceled) {
			t.Errorf("got %v, want the caller's end", context.Cause(waiting))
		}
		stop()
	})
}

// The race detector has the say.
func TestContactComesAndGoesWhileManyWait(t *testing.T) {
	monitored(t, func(t *testing.T, contact *Contact, server *server) {
		var waiting sync.WaitGroup
		for range 20 {
			waiting.Go(func() {
				for range 20 {
					ctx, stop := contact.While(t.Context())
					select {
					case <-ctx.Done():
					case <-clock.RealClock{}.After(time.Second):
					}
					stop()
				}
			})
		}
		for i := range 30 {
			server.answer([]int{http.StatusOK, -1, 0}[i%3])
			sleep(2500 * time.Millisecond)
		}
		waiting.Wait()
	})
}

// The API server answers other requests, but not the ones that prove its history: a right was taken away, say.
func TestAReplicaThatCannotProveTheHistoryRefusesAndIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		contact, witness := NewContact(clock.RealClock{}, "replica-1"), errors.New("the Lease may not be read")
		server := newServer(contact)
		var refused atomic.Bool
		refused.Store(true)
		ask := func(ctx context.Context) error {
			err := server.ask(ctx)
			if refused.Load() {
				err = errors.Join(err, witness)
			}
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go NewMonitor(contact, ask).Run(ctx)
		sleep(time.Second / 2)
		contact.broke()
		began := clock.RealClock{}.Now()
		err := contact.Await(t.Context())
		if took := (clock.RealClock{}).Since(began); !errors.Is(err, witness) || took != unprovedFor {
			t.Errorf("got %v after %s, want why the history can't be proved after %s", err, took, unprovedFor)
		}
		if err := contact.Ready(nil); !errors.Is(err, witness) {
			t.Errorf("ready: got %v", err)
		}
		if asked := len(server.when()); asked > 17 {
			t.Errorf("asked %d times, want it asked less and less often", asked)
		}
		refused.Store(false)
		sleep(askAfter)
		if err := errors.Join(contact.Await(t.Context()), contact.Ready(nil)); err != nil {
			t.Errorf("got %v once it is proved", err)
		}
	})
}
