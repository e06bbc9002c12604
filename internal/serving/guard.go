// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	// maxBody bounds the bytes that are read of a request: two objects of the
	// most that the API server takes, and more.
	maxBody = 7 << 20
	// smallBody is the largest body on the budget of small ones. Larger bodies have a budget
	// of their own, so they never delay small ones.
	smallBody = 256 << 10
	// smallBudget and largeBudget bound the bodies that are read at the same time, in bytes.
	smallBudget, largeBudget = 32 << 20, 4 * maxBody
	// answerWithin is how long all that is done for a request may take, however long it
	// waits here.
	answerWithin = webhookconfig.Timeout - webhookconfig.AnswerMargin
	// tellEvery is how often at most the log reports that requests aren't served.
	tellEvery = time.Minute
)

var errBusy = outcomes.TooMuchInFlight.Err()

// Observer counts the requests that reach no handler. Its methods may be called
// concurrently.
type Observer interface {
	// TurnedAway counts a request of a caller that is no API server.
	TurnedAway()
	// Unserved counts a request that was answered with 503, and how long that took.
	Unserved(took time.Duration)
}

// guard turns away callers that don't show that they are API servers, before any handler
// reads the body. It bounds how much of the bodies of all others is read at the same time.
type guard struct {
	callers *Callers
	// certified: a caller must have presented a certificate, too.
	certified    bool
	next         http.Handler
	small, large *semaphore.Weighted
	observer     Observer
	// tellTurned and tellUnserved bound how often the log reports the events that
	// the observer counts.
	tellTurned, tellUnserved rate.Sometimes
}

func newGuard(callers *Callers, certified bool, observer Observer, next http.Handler) *guard {
	return &guard{
		callers: callers, certified: certified, next: next, observer: observer,
		tellTurned: rate.Sometimes{First: 1, Interval: tellEvery}, tellUnserved: rate.Sometimes{First: 1, Interval: tellEvery},
		small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget),
	}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	over := connectionOf(request.Context())
	over.asks()
	token, _, found := webhookconfig.CutToken(request.URL.Path)
	if !found || g.certified && len(request.TLS.PeerCertificates) == 0 {
		g.turnAway(writer, request)
		return
	}
	began := g.callers.clock.Now()
	ctx, cancel := context.WithTimeout(request.Context(), answerWithin)
	defer cancel()
	request = request.WithContext(ctx)
	accepted, err := g.callers.accept(ctx, token)
	if err != nil {
		g.unserved(writer, request, began, err)
		return
	}
	if !accepted {
		g.turnAway(writer, request)
		return
	}
	over.accepted()
	budget, size := g.budget(request)
	if budget.Acquire(ctx, size) != nil {
		g.unserved(writer, request, began, errBusy)
		return
	}
	connection := http.NewResponseController(writer)
	_ = connection.SetReadDeadline(time.Now().Add(readTimeout)) //nolint:forbidigo // the network's; none without a connection
	body := &counted{ReadCloser: http.MaxBytesReader(writer, request.Body, maxBody), ended: sync.OnceFunc(func() {
		budget.Release(size)
		_ = connection.SetReadDeadline(time.Time{})
	})}
	defer body.ended()
	request.Body = body
	http.StripPrefix("/"+string(token), g.next).ServeHTTP(writer, request)
}

// counted holds its share of a budget until the body has been read. The memory of
// the decoded objects is not counted: API servers bound how many requests they
// have under way.
type counted struct {
	io.ReadCloser
	ended func()
}

// Read implements io.Reader.
func (c *counted) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	if err != nil {
		c.ended()
	}
	return n, err //nolint:wrapcheck // a reader must return io.EOF as it is
}

// unserved answers without a look at the body.
func (g *guard) unserved(writer http.ResponseWriter, request *http.Request, began time.Time, err error) {
	g.observer.Unserved(g.callers.clock.Since(began))
	logger := log.FromContext(request.Context())
	g.tellUnserved.Do(func() {
		logger.Info("Answered a request with 503; others in the next minute are only counted",
			"address", request.RemoteAddr, "reason", err.Error())
	})
	writer.Header().Set("Connection", "close")
	http.Error(writer, err.Error(), http.StatusServiceUnavailable)
}

// budget returns the budget that a body is held on, and how much of it. One of
// unknown length may be of any.
func (g *guard) budget(request *http.Request) (budget *semaphore.Weighted, size int64) {
	size = request.ContentLength
	if size < 0 || size > maxBody {
		size = maxBody
	}
	if size <= smallBody {
		return g.small, size
	}
	return g.large, size
}

// turnAway answers as if there were nothing here.
func (g *guard) turnAway(writer http.ResponseWriter, request *http.Request) {
	g.observer.TurnedAway()
	logger := log.FromContext(request.Context())
	g.tellTurned.Do(func() {
		logger.Info("Turned away a caller that didn't show that it is an API server; others in the next minute are only counted",
			"address", request.RemoteAddr)
	})
	writer.Header().Set("Connection", "close")
	// Nor is the rest of the body waited for, which the server would discard.
	_ = http.NewResponseController(writer).SetReadDeadline(time.Unix(1, 0))
	http.NotFound(writer, request)
}
