// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// Server serves webhooks. It can be stopped without a request that fails.
type Server struct {
	// Server has the endpoints. It is never started itself.
	webhook.Server
	options webhook.Options
	callers *Callers
	// certified: callers must have presented a certificate.
	certified bool
	observer  Observer
	// onStop is called while the requests that are under way are answered.
	onStop func(context.Context)
	// serving: the listener takes connections.
	serving atomic.Bool
	// stopping: answers end their connections.
	stopping atomic.Bool
}

var _ webhook.Server = &Server{}

func newServer(options webhook.Options, callers *Callers, certified bool) *Server {
	return &Server{
		Server: webhook.NewServer(options), options: options, callers: callers, certified: certified, observer: nobody{},
		onStop: func(context.Context) {},
	}
}

// OnStop has a function called as soon as the server takes no more connections, while requests may still be
// under way. It must be called before Start.
func (s *Server) OnStop(call func(context.Context)) { s.onStop = call }

// Observe has requests counted that reach no handler. It must be called before Start.
func (s *Server) Observe(observer Observer) { s.observer = observer }

// nobody is the Observer of a Server that has none. It counts nothing.
type nobody struct{}

// TurnedAway implements Observer.
func (nobody) TurnedAway() {}

// Unserved implements Observer.
func (nobody) Unserved(time.Duration) {}

// Stopping returns a context that ends so long after ctx has. In between requests are answered as
// ever, for it takes a moment until no caller is sent here any more, and each answer ends its
// connection. At the end hardly any is left on which a request could just be on its way, which would fail.
func (s *Server) Stopping(ctx context.Context, clock clock.Clock, delay time.Duration) context.Context {
	stopped, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		defer stop()
		s.stopping.Store(true)
		<-clock.After(delay)
	})
	return stopped
}

// Register implements webhook.Server.
func (s *Server) Register(path string, handler http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if s.stopping.Load() {
			response.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(response, request)
	}))
}
