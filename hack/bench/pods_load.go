// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// warmUp is what of each turn isn't measured, unless it is cold.
const warmUp = 2 * time.Second

// load is what clients do during a turn: each creates pods one by one, or applies workloads.
type load struct {
	clients    int
	namespaces int
	duration   time.Duration
	// think is how long a client waits between two requests.
	think time.Duration
	// cold: measuring begins with the first request.
	cold bool
	// refused: every request is to be refused because a quota is exceeded.
	refused bool
	// workloads: Deployments are applied in place of pods.
	workloads bool
}

// sample is what the clients of one turn saw.
type sample struct {
	took    time.Duration
	latency []time.Duration
	failed  int64
}

// apply runs the load, and has the meter read when measuring begins and when it ends. Clients go on until
// the meter was read: what they are in the middle of is consumed at both moments.
func (l load) apply(ctx context.Context, w *podsWorld, m *meter) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var measuring, done atomic.Bool
	var failures atomic.Int64
	results := make([][]time.Duration, l.clients)
	var clients sync.WaitGroup
	start := func() {
		for i := range l.clients {
			clients.Go(func() {
				latency, err := l.client(ctx, w, i, &measuring, &done, &failures)
				results[i] = latency
				if err != nil {
					cancel(err)
				}
			})
		}
	}
	if !l.cold {
		start()
		_ = pause(ctx, warmUp)
	}
	err := m.begin(ctx)
	began := time.Now()
	measuring.Store(true)
	if l.cold {
		start()
	}
	_ = pause(ctx, l.duration)
	took := time.Since(began)
	measuring.Store(false)
	err = errors.Join(err, m.end(ctx))
	done.Store(true)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return sample{}, cause
	}
	return sample{took: took, latency: slices.Concat(results...), failed: failures.Load()}, err
}

// client sends one request after another, and returns the latencies of those that ended while measuring.
// Those that were under way when it began are as many as those that are when it ends, which aren't counted.
func (l load) client(
	ctx context.Context, w *podsWorld, i int, measuring, done *atomic.Bool, failures *atomic.Int64,
) ([]time.Duration, error) {
	if l.workloads {
		return applyWorkloads(ctx, w, i, measuring, done)
	}
	var latency []time.Duration
	namespace := w.namespaces[i%l.namespaces]
	pods := w.client(i).CoreV1().Pods(namespace)
	for n := 0; !done.Load(); n++ {
		start := time.Now()
		_, err := pods.Create(ctx, pod(namespace, fmt.Sprintf("pod-%d-%d", i, n)), metav1.CreateOptions{})
		if isUnanswered(err) {
			failures.Add(1)
			continue
		}
		if wanted := l.refused == apierrors.IsForbidden(err) && (err == nil || l.refused); !wanted {
			return nil, fmt.Errorf("creating a pod: want refused %t, got: %w", l.refused, err)
		}
		if measuring.Load() {
			latency = append(latency, time.Since(start))
		}
		_ = pause(ctx, l.think)
	}
	return latency, nil
}

// isUnanswered reports whether a request failed because a webhook could not be called.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}
