// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fault is something that happens to a call.
type Fault string

// Faults of the writes of ledgers.
const (
	// Conflict: another writer was first.
	Conflict Fault = "conflict with another writer"
	// LostReply: the write happens, the connection breaks before the answer.
	LostReply Fault = "lost reply"
	// LostCall: the connection breaks before the API server hears of it.
	LostCall Fault = "lost call"
	// Unavailable: 503 or 504, and nothing is written.
	Unavailable Fault = "503 or 504"
	// Late: the write happens seconds later, when its caller may have given up.
	Late Fault = "late write"
)

// Faults of watches.
const (
	// Held: a watch stays open, and nothing is delivered.
	Held Fault = "watch held back"
	// Cut: the connection of a watch breaks.
	Cut Fault = "watch cut"
	// Gone: the watch is told to list again.
	Gone Fault = "watch answered 410"
)

const (
	// The replica waits 5 s for a write.
	minLate, maxLate = time.Second, 7 * time.Second
	// lateTimeout bounds a write whose caller may have gone.
	lateTimeout = 20 * time.Second
)

// StoreFaults are those of the writes of ledgers.
func StoreFaults() []Fault {
	return []Fault{Conflict, LostReply, LostCall, Unavailable, Late}
}

// Rates tell which part of the writes of ledgers meets a fault. They add up to
// 1 at most.
type Rates map[Fault]float64

// Inject replaces the rates; nil injects nothing.
func (p *Proxy) Inject(rates Rates) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rates = rates
}

func isLedgerWrite(request *http.Request) bool {
	return (request.Method == http.MethodPut || request.Method == http.MethodPost) &&
		strings.HasPrefix(request.URL.Path, "/apis/quota.sharedquota.dev/v1/quotaledgers")
}

func (p *Proxy) serveWrite(writer http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		drop()
	}
	request, cancel := detach(request)
	defer cancel()
	request.Body = io.NopCloser(bytes.NewReader(body))
	switch fault, random := p.draw(); fault { //nolint:exhaustive // the others are those of watches
	case Conflict:
		p.writeFirst(request)
	case LostReply:
		p.forward(asItIs).ServeHTTP(httptest.NewRecorder(), request)
		drop()
	case LostCall:
		drop()
	case Unavailable:
		answer(writer, []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout}[int(random*2)], metav1.StatusReasonTimeout)
		return
	case Late:
		<-time.After(minLate + time.Duration(random*float64(maxLate-minLate)))
	}
	p.forward(asItIs).ServeHTTP(writer, request)
}

// draw decides what happens to a write, and gives it a random number below 1.
func (p *Proxy) draw() (fault Fault, random float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes++
	left := p.random.Float64()
	for _, fault := range StoreFaults() {
		if left -= p.rates[fault]; left < 0 {
			p.counts[fault]++
			return fault, p.random.Float64()
		}
	}
	return "", 0
}

// writeFirst gives the ledger another version and leaves its content alone, as another
// replica might, with no more rights than that has.
func (p *Proxy) writeFirst(request *http.Request) {
	held := &unstructured.Unstructured{}
	if json.Unmarshal(p.ask(request, http.MethodGet, nil), held) != nil {
		return // There is none yet.
	}
	annotations := map[string]string{"faults.example.com/writer": strconv.FormatUint(p.number(), 10)}
	held.SetAnnotations(annotations)
	if touched, err := json.Marshal(held); err == nil {
		p.ask(request, http.MethodPut, touched)
	}
}

// ask calls the API server where a request leads, and returns what it answers.
func (p *Proxy) ask(request *http.Request, method string, body []byte) []byte {
	call := request.Clone(request.Context())
	call.Method, call.ContentLength, call.Body = method, int64(len(body)), io.NopCloser(bytes.NewReader(body))
	for _, header := range []string{"Accept", "Content-Type"} {
		call.Header.Set(header, "application/json")
	}
	answer := httptest.NewRecorder()
	p.forward(asItIs).ServeHTTP(answer, call)
	return answer.Body.Bytes()
}

func (p *Proxy) number() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.Uint64()
}

// answer gives the replica an error as the API server would.
func answer(writer http.ResponseWriter, code int, reason metav1.StatusReason) {
	status, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "a fault was injected",
	})
	if err != nil {
		drop()
	}
	writer.Header().Set("Content-Type", "application/json")
	writer.WriteHeader(code)
	_, _ = writer.Write(status) // The replica may be gone.
}
