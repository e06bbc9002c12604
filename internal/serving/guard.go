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
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sharedquota/shared-quota-operator/internal/reach"
)

const (
	// MaxBody bounds what is read of a request: two objects of the most that the API
	// server takes, and more.
	MaxBody = 7 << 20
	// smallBody is the largest body on the budget of small ones. Larger bodies have a budget
	// of their own, so they never delay small ones.
	smallBody = 256 << 10
	// smallBudget and largeBudget bound the bodies that are read at the same time, in bytes.
	smallBudget, largeBudget = 32 << 20, 4 * MaxBody
	// budgetWait is how long a request waits for the bodies of others to be read.
	budgetWait = 5 * time.Second
	// tellEvery is how often at most it is told that somebody is turned away.
	tellEvery = time.Minute
)

var errBusy = errors.New("too many bytes are in flight: try again in a moment")

// guard turns away whoever is no API server before any handler reads the body, and bounds
// how much of the bodies of all others is read at the same time.
type guard struct {
	callers *Callers
	// certified: a caller must have presented a certificate, too.
	certified    bool
	next         http.Handler
	small, large *semaphore.Weighted
	// turned is called for each who is turned away, and tell bounds how often that is told.
	turned func()
	tell   rate.Sometimes
}

func newGuard(callers *Callers, certified bool, turned func(), next http.Handler) *guard {
	return &guard{
		callers: callers, certified: certified, next: next, turned: turned, tell: rate.Sometimes{First: 1, Interval: tellEvery},
		small: semaphore.NewWeighted(smallBudget), large: semaphore.NewWeighted(largeBudget),
	}
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	token, _, found := reach.CutToken(request.URL.Path)
	if !found || g.certified && len(request.TLS.PeerCertificates) == 0 {
		g.turnAway(writer, request)
		return
	}
	accepted, err := g.callers.accept(request.Context(), token)
	if err != nil {
		unavailable(writer, err)
		return
	}
	if !accepted {
		g.turnAway(writer, request)
		return
	}
	budget, size := g.budget(request)
	if !budget.TryAcquire(size) && !wait(request.Context(), budget, size) {
		unavailable(writer, errBusy)
		return
	}
	connection := http.NewResponseController(writer)
	_ = connection.SetReadDeadline(time.Now().Add(readTimeout)) //nolint:forbidigo // the network's; none without a connection
	body := &counted{ReadCloser: http.MaxBytesReader(writer, request.Body, MaxBody), ended: sync.OnceFunc(func() {
		budget.Release(size)
		_ = connection.SetReadDeadline(time.Time{})
	})}
	defer body.ended()
	request.Body = body
	http.StripPrefix("/"+string(token), g.next).ServeHTTP(writer, request)
}

// counted is a body that is counted on a budget until it has been read. What is made of it
// is bounded by how many requests API servers have under way.
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

// unavailable answers without a look at the body.
func unavailable(writer http.ResponseWriter, err error) {
	writer.Header().Set("Connection", "close")
	http.Error(writer, err.Error(), http.StatusServiceUnavailable)
}

// wait tells whether others have left so much of the budget soon enough.
func wait(ctx context.Context, budget *semaphore.Weighted, size int64) bool {
	ctx, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	return budget.Acquire(ctx, size) == nil
}

// budget returns what a body is held on, and how much of it. One of unknown length may be
// of any.
func (g *guard) budget(request *http.Request) (budget *semaphore.Weighted, size int64) {
	size = request.ContentLength
	if size < 0 || size > MaxBody {
		size = MaxBody
	}
	if size <= smallBody {
		return g.small, size
	}
	return g.large, size
}

// turnAway answers as if there were nothing here.
func (g *guard) turnAway(writer http.ResponseWriter, request *http.Request) {
	g.turned()
	logger := log.FromContext(request.Context())
	g.tell.Do(func() {
		logger.Info("Turned away a caller that is no API server; others in the next minute are only counted",
			"address", request.RemoteAddr)
	})
	writer.Header().Set("Connection", "close")
	// Nor is the rest of the body waited for, which the server would discard.
	_ = http.NewResponseController(writer).SetReadDeadline(time.Unix(1, 0))
	http.NotFound(writer, request)
}
