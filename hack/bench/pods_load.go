// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// warmUp is what of each turn isn't measured.
const warmUp = 2 * time.Second

// load is what clients do during a turn: each creates pods one by one, or applies workloads.
type load struct {
	clients    int
	namespaces int
	duration   time.Duration
	// think is how long a client waits between two requests.
	think time.Duration
	// refused: every request is to be refused because a quota is exceeded.
	refused bool
	// workloads: Deployments are applied in place of pods.
	workloads bool
}

// sample is what the clients of one turn saw.
type sample struct {
	took    time.Duration
	latency []time.Duration
}

// apply runs the load. The function begin is called when measuring begins.
func (l load) apply(ctx context.Context, w *podsWorld, begin func(context.Context) error) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var measuring, done atomic.Bool
	results := make([][]time.Duration, l.clients)
	var clients sync.WaitGroup
	for i := range l.clients {
		clients.Go(func() {
			latency, err := l.client(ctx, w, i, &measuring, &done)
			results[i] = latency
			if err != nil {
				cancel(err)
			}
		})
	}
	_ = pause(ctx, warmUp)
	err := begin(ctx)
	start := time.Now()
	measuring.Store(true)
	_ = pause(ctx, l.duration)
	took := time.Since(start)
	measuring.Store(false)
	done.Store(true)
	clients.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return sample{}, cause
	}
	return sample{took: took, latency: slices.Concat(results...)}, err
}

// client sends one request after another, and returns the latencies of those
// that began and ended while measuring.
func (l load) client(ctx context.Context, w *podsWorld, i int, measuring, done *atomic.Bool) ([]time.Duration, error) {
	if l.workloads {
		return applyWorkloads(ctx, w, i, measuring, done)
	}
	var latency []time.Duration
	namespace := w.namespaces[i%l.namespaces]
	pods := w.client(i).CoreV1().Pods(namespace)
	for n := 0; !done.Load(); n++ {
		counted := measuring.Load()
		start := time.Now()
		_, err := pods.Create(ctx, pod(namespace, fmt.Sprintf("pod-%d-%d", i, n)), metav1.CreateOptions{})
		if wanted := l.refused == apierrors.IsForbidden(err) && (err == nil || l.refused); !wanted {
			return nil, fmt.Errorf("creating a pod: want refused %t, got: %w", l.refused, err)
		}
		if counted && measuring.Load() {
			latency = append(latency, time.Since(start))
		}
		_ = pause(ctx, l.think)
	}
	return latency, nil
}
