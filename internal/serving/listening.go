// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// drainTimeout bounds how long requests that are under way are answered once the
// server ends. The manager waits five seconds longer for it.
const drainTimeout = 25 * time.Second

// Limits of connections: see strangers for those before the first request. A body is read for readTimeout
// at most, from when its request is accepted: a limit on the whole would end the context of a request that
// is still worked on.
const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 90 * time.Second
	readTimeout    = 10 * time.Second
	writeTimeout   = time.Minute
)

var errNotServing = errors.New("the webhooks are not served yet")

// Start implements webhook.Server: it serves until ctx ends, and then answers the requests that are under way.
//
// A request's context ends with its caller's connection, and not with ctx. In controller-runtime's
// own server it ends with either, so once ctx had ended, the server couldn't tell that a caller had
// gone, and the reservation for it was held until it expired.
func (s *Server) Start(ctx context.Context) error {
	// In HTTP/2, which API servers speak to webhooks on their own machine alone, the bodies of all requests
	// share a connection: large ones delay small ones, unless strangers may fill very much memory.
	config := &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	for _, change := range s.options.TLSOpts {
		change(config)
	}
	plain, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(s.options.Host, strconv.Itoa(s.options.Port)))
	if err != nil {
		return fmt.Errorf("listening for webhooks: %w", err)
	}
	server := s.http(ctx)
	drained := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		var calling sync.WaitGroup
		calling.Go(func() { s.onStop(context.WithoutCancel(ctx)) })
		err := drain(ctx, server, drainTimeout)
		calling.Wait()
		drained <- err
	})
	log.FromContext(ctx).Info("Serving webhooks", "address", plain.Addr().String())
	s.serving.Store(true)
	if err := server.Serve(tls.NewListener(newStrangers(plain, clock.RealClock{}), config)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving webhooks: %w", err)
	}
	return <-drained
}

// http answers the requests of a TLS listener over strangers.
func (s *Server) http(ctx context.Context) *http.Server {
	return &http.Server{
		BaseContext:    func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext:    withConnection,
		Handler:        newGuard(s.callers, s.certified, s.observer, s.WebhookMux()),
		MaxHeaderBytes: maxHeaderBytes, IdleTimeout: idleTimeout, ReadHeaderTimeout: strangerWithin, WriteTimeout: writeTimeout,
	}
}

// drain takes no more connections, and returns when the requests that are under way have been
// answered. A request that takes too long is not answered: its caller's connection is closed.
func drain(ctx context.Context, server *http.Server, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	log.FromContext(ctx).Info("Shutting down webhooks: answering what is under way", "within", within.String())
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		log.FromContext(ctx).Info("Some requests were not answered in time")
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("shutting down webhooks: %w", err)
	}
	return nil
}

// StartedChecker implements webhook.Server.
func (s *Server) StartedChecker() healthz.Checker {
	return func(*http.Request) error {
		if !s.serving.Load() {
			return errNotServing
		}
		return nil
	}
}
