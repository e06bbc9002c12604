// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

const ledger = "/apis/quota.sharedquota.dev/v1/quotaledgers/team"

// server is an API server that remembers what was asked and sends the lines of
// watches that it is given.
type server struct {
	// mu guards asked.
	mu    sync.Mutex
	asked []string
	lines chan string
}

// ServeHTTP implements http.Handler.
func (s *server) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.asked = append(s.asked, request.Method+" "+string(body))
	s.mu.Unlock()
	if request.URL.Query().Get("watch") != "true" {
		_, _ = io.WriteString(writer, `{"apiVersion":"v1","kind":"QuotaLedger","metadata":{"resourceVersion":"5"},"entries":"kept"}`)
		return
	}
	_ = http.NewResponseController(writer).Flush()
	for {
		select {
		case line := <-s.lines:
			_, _ = io.WriteString(writer, line+"\n")
			_ = http.NewResponseController(writer).Flush()
		case <-request.Context().Done():
			return
		}
	}
}

func (s *server) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func start(t *testing.T) (*Proxy, *server) {
	t.Helper()
	api := &server{lines: make(chan string, 10)}
	served := httptest.NewServer(api)
	t.Cleanup(served.Close)
	p, err := Start(&rest.Config{Host: served.URL}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, api
}

// call returns the code of the answer; 0 for none.
func call(ctx context.Context, t *testing.T, p *Proxy, method, path, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, p.Config().Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}

func TestWritesMeetTheirFault(t *testing.T) {
	for fault, want := range map[Fault]struct {
		codes []int
		asked []string
	}{
		"":          {codes: []int{200}, asked: []string{"PUT new"}},
		LostReply:   {codes: []int{0}, asked: []string{"PUT new"}},
		LostCall:    {codes: []int{0}},
		Unavailable: {codes: []int{503, 504}},
		Late:        {codes: []int{200}, asked: []string{"PUT new"}},
	} {
		t.Run(string(fault), func(t *testing.T) {
			p, api := start(t)
			p.Inject(Rates{fault: 1})
			if got := call(t.Context(), t, p, http.MethodPut, ledger, "new"); !slices.Contains(want.codes, got) {
				t.Errorf("the answer is %d, want one of %v", got, want.codes)
			}
			if got := api.heard(); !slices.Equal(got, want.asked) {
				t.Errorf("the API server heard %q, want %q", got, want.asked)
			}
			if got := p.Counts()[fault]; fault != "" && got != 1 {
				t.Errorf("counted %d, want 1", got)
			}
			if got := p.Writes(); got != 1 {
				t.Errorf("counted %d writes, want 1", got)
			}
		})
	}
}

func TestAConflictIsAnotherWriteBefore(t *testing.T) {
	p, api := start(t)
	p.Inject(Rates{Conflict: 1})
	call(t.Context(), t, p, http.MethodPut, ledger, "new")
	got := api.heard()
	if len(got) != 3 || got[0] != "GET " || got[2] != "PUT new" ||
		!strings.HasPrefix(got[1], `PUT {"apiVersion":"v1","entries":"kept","kind":"QuotaLedger","metadata":{"annotations":`) {
		t.Errorf("the API server heard %q, want the ledger read, written with an annotation, and then the write", got)
	}
}

func TestALateWriteHappensThoughItsCallerGaveUp(t *testing.T) {
	p, api := start(t)
	p.Inject(Rates{Late: 1})
	ctx, cancel := context.WithTimeout(t.Context(), minLate/10)
	defer cancel()
	if got := call(ctx, t, p, http.MethodPut, ledger, "new"); got != 0 {
		t.Errorf("the answer is %d, want none in this time", got)
	}
	if got := api.heard(); len(got) > 0 {
		t.Errorf("the API server heard %q already", got)
	}
	for end := time.Now().Add(2 * maxLate); time.Now().Before(end) && len(api.heard()) == 0; {
		<-time.After(10 * time.Millisecond)
	}
	if got := api.heard(); !slices.Equal(got, []string{"PUT new"}) {
		t.Errorf("the API server heard %q, want the write", got)
	}
}

func TestOnlyWritesOfLedgersMeetFaults(t *testing.T) {
	p, _ := start(t)
	p.Inject(Rates{LostCall: 1})
	for _, call := range []struct{ method, path string }{{http.MethodGet, ledger}, {http.MethodPut, "/api/v1/namespaces/team"}} {
		if got := callOf(t, p, call.method, call.path); got != http.StatusOK {
			t.Errorf("%s %s: the answer is %d, want 200", call.method, call.path, got)
		}
	}
}

func callOf(t *testing.T, p *Proxy, method, path string) int {
	t.Helper()
	return call(t.Context(), t, p, method, path, "")
}

// watching is a watch through the proxy.
type watching struct {
	lines *bufio.Scanner
	code  int
}

func watch(t *testing.T, p *Proxy, query string) *watching {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Config().Host+"/api/v1/pods?watch=true"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return &watching{lines: bufio.NewScanner(response.Body), code: response.StatusCode}
}

func (w *watching) next(t *testing.T) string {
	t.Helper()
	if !w.lines.Scan() {
		t.Fatalf("the watch ended: %v", w.lines.Err())
	}
	return w.lines.Text()
}

func TestWatchesPassOnWhatTheyReceive(t *testing.T) {
	p, api := start(t)
	w := watch(t, p, "")
	for _, line := range []string{"first", "second"} {
		api.lines <- line
		if got := w.next(t); got != line {
			t.Errorf("got %q, want %q", got, line)
		}
	}
}

func TestWatchesAreLateAndKeepTheirOrder(t *testing.T) {
	p, api := start(t)
	w := watch(t, p, "")
	p.SetLag(300 * time.Millisecond)
	begin := time.Now()
	api.lines <- "first"
	<-time.After(50 * time.Millisecond) // The proxy has received it by then, most likely.
	p.SetLag(0)
	api.lines <- "second"
	if first, second := w.next(t), w.next(t); first != "first" || second != "second" {
		t.Errorf("got %q and %q, want first and second", first, second)
	}
	if took := time.Since(begin); took < 300*time.Millisecond {
		t.Errorf("took %s, want as late as set", took)
	}
}

func TestWatchesAreHeldBackInSilence(t *testing.T) {
	p, api := start(t)
	before := watch(t, p, "")
	api.lines <- "first"
	before.next(t)
	p.HoldWatches(true)
	p.HoldWatches(true) // It is held already.
	during := watch(t, p, "")
	api.lines <- "second"
	api.lines <- "third"
	arrivals := make(chan string, 2)
	for _, w := range []*watching{before, during} {
		go func() {
			for w.lines.Scan() {
				arrivals <- w.lines.Text()
			}
		}()
	}
	select {
	case line := <-arrivals:
		t.Errorf("a watch was told %q, want nothing", line)
	case <-time.After(300 * time.Millisecond):
	}
	if code := callOf(t, p, http.MethodGet, "/api/v1/pods"); code != http.StatusOK {
		t.Errorf("a call is answered %d, want 200", code)
	}
	p.HoldWatches(false)
	// Which of them the API server told which line is not known, and it may have told one both.
	if lines := []string{<-arrivals, <-arrivals}; !slices.Contains(lines, "second") || !slices.Contains(lines, "third") {
		t.Errorf("watches were told %q, want what was held back", lines)
	}
	if got := p.Counts()[Held]; got != 1 {
		t.Errorf("counted %d, want 1", got)
	}
}

func TestWatchesOfOneResourceAreHeldBack(t *testing.T) {
	p, api := start(t)
	pods := watch(t, p, "")
	api.lines <- "before"
	pods.next(t)
	p.HoldWatches(true, "secrets")
	api.lines <- "first"
	if line := pods.next(t); line != "first" {
		t.Errorf("a watch of pods was told %q, want first", line)
	}
	p.HoldWatches(false)
	p.HoldWatches(true, "secrets", "pods")
	if got := p.Counts()[Held]; got != 1 {
		t.Errorf("counted %d, want only that of pods", got)
	}
	p.HoldWatches(false)
}

func TestWatchesAreCutAndToldToListAgain(t *testing.T) {
	p, api := start(t)
	w := watch(t, p, "")
	api.lines <- "first"
	w.next(t)
	p.CutWatches(true)
	if w.lines.Scan() || w.lines.Err() == nil || errors.Is(w.lines.Err(), io.EOF) {
		t.Errorf("got %q and error %v, want a connection that breaks", w.lines.Text(), w.lines.Err())
	}
	if got := watch(t, p, "&sendInitialEvents=true").code; got != http.StatusOK {
		t.Errorf("a watch that begins with a list is answered %d, want 200", got)
	}
	if got := watch(t, p, "&resourceVersion=5").code; got != http.StatusGone {
		t.Errorf("the next watch is answered %d, want 410", got)
	}
	if got := watch(t, p, "&resourceVersion=6").code; got != http.StatusOK {
		t.Errorf("the one after is answered %d, want 200", got)
	}
	if cut, gone := p.Counts()[Cut], p.Counts()[Gone]; cut != 1 || gone != 1 {
		t.Errorf("counted %d and %d, want one each", cut, gone)
	}
}
