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

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

// unread is a body that nobody may read.
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
				callers, turned, reached := NewCallers(clock.RealClock{}), 0, ""
				callers.live = &stored{token: known}
				callers.take(1, []reach.Token{known})
				guard := newGuard(callers, test.certified, func() { turned++ }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					reached = r.URL.Path
					w.WriteHeader(http.StatusTeapot)
				}))
				request, answer := httptest.NewRequest(http.MethodPost, test.path, unread{t}), httptest.NewRecorder()
				request.TLS = test.tls
				guard.ServeHTTP(answer, request)
				if answer.Code != test.want || (turned == 1) != (test.want == http.StatusNotFound) {
					t.Errorf("got %d, and %d turned away, want %d", answer.Code, turned, test.want)
				}
				if test.want == http.StatusTeapot && reached != "/objects" {
					t.Errorf("reached %q", reached)
				}
			})
		})
	}
}

func TestWhoCannotBeToldIsNoStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers := NewCallers(clock.RealClock{})
		callers.live = &stored{err: errors.New("connection refused"), fails: -1}
		guard := newGuard(callers, false, func() { t.Error("turned away") }, http.NotFoundHandler())
		answer := httptest.NewRecorder()
		guard.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", unread{t}))
		if want := "finding out who calls: reading the webhook configuration: connection refused\n"; answer.Code != http.StatusServiceUnavailable || answer.Body.String() != want {
			t.Errorf("got %d: %s", answer.Code, answer.Body.String())
		}
		clock.RealClock{}.Sleep(time.Minute)
	})
}

func TestTheBodiesOfAllTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		callers, let := NewCallers(clock.RealClock{}), make(chan struct{})
		callers.take(1, []reach.Token{known})
		guard := newGuard(callers, false, func() {}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-let
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(http.StatusTeapot)
			<-r.Context().Done() // what is worked on holds no budget any more
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
		for _, length := range []int64{MaxBody, -1, MaxBody << 10, MaxBody} {
			large = append(large, ask(length))
		}
		small := ask(10 << 10)
		began := clock.RealClock{}.Now()
		if got, took := <-ask(MaxBody), (clock.RealClock{}).Since(began); got != http.StatusServiceUnavailable || took != budgetWait {
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

func TestNoMoreOfABodyIsReadThanTheBudgetHas(t *testing.T) {
	callers := NewCallers(clock.RealClock{})
	callers.take(1, []reach.Token{known})
	guard := newGuard(callers, false, func() {}, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if read, err := io.ReadAll(r.Body); len(read) != MaxBody || err == nil {
			t.Errorf("read %d bytes, error %v", len(read), err)
		}
	}))
	request := httptest.NewRequest(http.MethodPost, "/"+string(known)+"/objects", bytes.NewReader(make([]byte, MaxBody+1)))
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
	if _, err := clientAuthorities(file).verify(); err == nil || err.Error() != "--client-ca-file "+file+": there is no certificate in it" {
		t.Errorf("no certificate: got error %v", err)
	}
	issued := content(t, nil)
	write(issued["ca.crt"])
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
	write(content(t, nil)["ca.crt"])
	second, err := config.GetConfigForClient(nil)
	if err != nil || second.ClientCAs.Equal(first.ClientCAs) {
		t.Errorf("the authorities were not read again, error %v", err)
	}
	write(nil)
	if _, err := config.GetConfigForClient(nil); err == nil {
		t.Error("want nobody served while there are none")
	}
}
