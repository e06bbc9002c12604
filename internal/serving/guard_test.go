// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestAStrangerIsTurnedAwayBeforeAnythingIsRead(t *testing.T) {
	for name, test := range map[string]struct {
		path      string
		certified bool
		tls       *tls.ConnectionState
		want      int
	}{
		"an API server":                       {path: "/" + string(known) + "/objects", want: http.StatusTeapot},
		"no token":                            {path: "/objects", want: http.StatusNotFound},
		"another token":                       {path: "/" + string(next) + "/objects", want: http.StatusNotFound},
		"the token elsewhere":                 {path: "/objects/" + string(known), want: http.StatusNotFound},
		"an API server without a certificate": {path: "/" + string(known) + "/objects", certified: true, tls: &tls.ConnectionState{}, want: http.StatusNotFound},
		"an API server with a certificate": {
			path: "/" + string(known) + "/objects", certified: true,
			tls: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, want: http.StatusTeapot,
		},
		"a certificate, and no token": {
			path: "/objects", certified: true, tls: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{}}}, want: http.StatusNotFound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				callers, counts, reached := NewCallers(clock.RealClock{}), &counts{}, ""
				callers.live = &stored{token: known}
				callers.take(1, []webhookconfig.Token{known}, nil)
				guard := newGuard(callers, test.certified, counts, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					reached = r.URL.Path
					w.WriteHeader(http.StatusTeapot)
				}))
				request, answer := httptest.NewRequest(http.MethodPost, test.path, unread{t}), httptest.NewRecorder()
				request.TLS = test.tls
				guard.ServeHTTP(answer, request)
				if answer.Code != test.want || (counts.turned == 1) != (test.want == http.StatusNotFound) || counts.unserved != 0 {
					t.Errorf("got %d, and counts %+v, want %d", answer.Code, *counts, test.want)
				}
				if test.want == http.StatusTeapot && reached != "/objects" {
					t.Errorf("reached %q", reached)
				}
			})
		})
	}
}

func TestACallerThatCannotBeCheckedIsNoStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := NewCallers(clock.RealClock{})
		callers.live = &stored{err: errors.New("connection refused"), fails: -1}
		counts := &counts{}
		guard := newGuard(callers, false, counts, http.NotFoundHandler())
		answer := httptest.NewRecorder()
		guard.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", unread{t}))
		if want := "finding out who calls: reading the webhook configuration: connection refused\n"; answer.Code != http.StatusServiceUnavailable || answer.Body.String() != want {
			t.Errorf("got %d: %s", answer.Code, answer.Body.String())
		}
		if counts.turned != 0 || counts.unserved != 1 || counts.took != acceptWait {
			t.Errorf("got counts %+v", *counts)
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}

func TestTheBodiesOfAllTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers, let := NewCallers(clock.RealClock{}), make(chan struct{})
		callers.take(1, []webhookconfig.Token{known}, nil)
		guard := newGuard(callers, false, nobody{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-let
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusTeapot)
			<-r.Context().Done() // requests in work hold no budget any more
		}))
		working, end := context.WithCancel(t.Context())
		ask := func(length int64) <-chan int {
			answered := make(chan int, 1)
			go func() {
				request, answer := httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", http.NoBody), httptest.NewRecorder()
				request.ContentLength = length
				guard.ServeHTTP(answer, request.WithContext(working))
				answered <- answer.Code
			}()
			synctest.Wait()
			return answered
		}
		var large []<-chan int
		for _, length := range []int64{maxBody, -1, maxBody << 10, maxBody} {
			large = append(large, ask(length))
		}
		small := ask(10 << 10)
		began := clock.RealClock{}.Now()
		if got, took := <-ask(maxBody), (clock.RealClock{}).Since(began); got != http.StatusServiceUnavailable || took != answerWithin {
			t.Errorf("a fifth large one: got %d after %s", got, took)
		}
		waiting := ask(smallBody + 1)
		close(let)
		synctest.Wait()
		end()
		for _, answer := range append(large, small, waiting) {
			if got := <-answer; got != http.StatusTeapot {
				t.Errorf("got %d", got)
			}
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}

func TestAWaitLeavesLessTimeToAnswerIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waited = 3 * time.Second
		callers, counts := NewCallers(clock.RealClock{}), &counts{}
		callers.take(1, []webhookconfig.Token{known}, nil)
		guard := newGuard(callers, false, counts, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			until, ok := r.Context().Deadline()
			if left := (clock.RealClock{}).Since(until); !ok || -left != answerWithin-waited {
				t.Errorf("%s are left of %s", -left, answerWithin)
			}
		}))
		if !guard.large.TryAcquire(largeBudget) {
			t.Fatal("the budget isn't free")
		}
		clock.RealClock{}.AfterFunc(waited, func() { guard.large.Release(largeBudget) })
		request := httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", http.NoBody)
		request.ContentLength = maxBody
		guard.ServeHTTP(httptest.NewRecorder(), request)
		if counts.unserved != 0 {
			t.Error("it was not served")
		}
	})
}

// counts is an Observer.
type counts struct {
	turned, unserved int
	took             time.Duration
}

func (c *counts) TurnedAway() { c.turned++ }

func (c *counts) Unserved(took time.Duration) {
	c.unserved++
	c.took = took
}

func TestNoMoreOfABodyIsReadThanTheBudgetHas(t *testing.T) {
	callers := NewCallers(clock.RealClock{})
	callers.take(1, []webhookconfig.Token{known}, nil)
	guard := newGuard(callers, false, nobody{}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if read, err := io.ReadAll(r.Body); len(read) != maxBody || err == nil {
			t.Errorf("read %d bytes, error %v", len(read), err)
		}
	}))
	request := httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", bytes.NewReader(make([]byte, maxBody+1)))
	guard.ServeHTTP(httptest.NewRecorder(), request)
}

func TestTheAuthoritiesOfCallersAreReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := clientAuthorities(file).verify(); err == nil || !strings.HasPrefix(err.Error(), "--client-ca-file: open ") {
		t.Errorf("no file: got error %v", err)
	}
	write([]byte("nothing"))
	if _, err := clientAuthorities(file).verify(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("no certificate: got error %v", err)
	}
	given := issued(t)
	write(given["ca.crt"])
	change, err := clientAuthorities(file).verify()
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	change(config)
	first, err := config.GetConfigForClient(nil)
	if err != nil || first.ClientAuth != tls.VerifyClientCertIfGiven {
		t.Fatalf("got %v, error %v", first, err)
	}
	write(issued(t)["ca.crt"])
	second, err := config.GetConfigForClient(nil)
	if err != nil || second.ClientCAs.Equal(first.ClientCAs) {
		t.Errorf("the authorities were not read again, error %v", err)
	}
	write(nil)
	if _, err := config.GetConfigForClient(nil); err == nil {
		t.Error("want nobody served while there are none")
	}
}

// issued is the data of a Secret with a new authority.
func issued(t *testing.T) map[string][]byte {
	t.Helper()
	renewed, err := NewIssuer("webhook.operator.svc").Renew(nil, clock.RealClock{}.Now())
	if err != nil {
		t.Fatal(err)
	}
	return renewed.Data
}
