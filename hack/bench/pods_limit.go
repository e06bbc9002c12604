// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	regrants = 200
	// regrantSpread is how many namespaces the pod moves through.
	regrantSpread = 10
	churnClients  = 20
	churnRounds   = 100
)

// measureRegrant fills a quota and then moves one pod from namespace to
// namespace. It measures from the answer to a deletion to the answer that
// grants the next creation elsewhere, and counts the refusals between them. The first round isn't measured: the first
// pod of each namespace takes some 90 ms without any webhook, because the API server lists the namespace's LimitRanges. It remembers
// them for 30 seconds. Of namespaces that another turn has used, it would list them again amid this one.
func measureRegrant(ctx context.Context, w *podsWorld, rounds int, into *results) error {
	return withOperator(ctx, w, rounds, setup{namespaces: regrantSpread, pods: "1", fresh: true}, func(v variant) error {
		if err := w.create(ctx, 0, "pod-0"); err != nil {
			return err
		}
		var latency []time.Duration
		var refusals atomic.Int64
		for n := range regrantSpread + regrants {
			if err := w.delete(ctx, n%regrantSpread, fmt.Sprintf("pod-%d", n)); err != nil {
				return err
			}
			start := time.Now()
			if err := w.createUntilGranted(ctx, (n+1)%regrantSpread, fmt.Sprintf("pod-%d", n+1), &refusals); err != nil {
				return err
			}
			latency = append(latency, time.Since(start))
		}
		latency = latency[regrantSpread:]
		into.add(freed, v.name, turn{figures: figures{refused: float64(refusals.Load())}, latency: latency})
		return nil
	})
}

// measureChurn has as many clients as the quota allows pods. Each deletes its
// own pod before it creates the next, so that there is room for every request,
// and no refusal is right.
func measureChurn(ctx context.Context, w *podsWorld, _ int, into *results) error {
	limit := fmt.Sprint(churnClients)
	return withOperator(ctx, w, 1, setup{namespaces: 10, pods: limit}, func(v variant) error {
		latency := make([][]time.Duration, churnClients)
		var refusals atomic.Int64
		var clients errgroup.Group
		for i := range churnClients {
			clients.Go(func() (err error) {
				latency[i], err = w.churn(ctx, i, &refusals)
				return err
			})
		}
		err := clients.Wait()
		into.add(churned, v.name, turn{figures: figures{refused: float64(refusals.Load())}, latency: slices.Concat(latency...)})
		return err
	})
}

func (w *podsWorld) churn(ctx context.Context, i int, refusals *atomic.Int64) (latency []time.Duration, err error) {
	for n := range churnRounds {
		name := fmt.Sprintf("churn-%d-%d", i, n)
		start := time.Now()
		if err := w.createUntilGranted(ctx, i%10, name, refusals); err != nil {
			return latency, err
		}
		latency = append(latency, time.Since(start))
		if err := w.delete(ctx, i%10, name); err != nil {
			return latency, err
		}
	}
	return latency, nil
}

func (w *podsWorld) create(ctx context.Context, namespace int, name string) error {
	in := w.namespaces[namespace]
	_, err := w.client(namespace).CoreV1().Pods(in).Create(ctx, pod(in, name), metav1.CreateOptions{})
	return err
}

func (w *podsWorld) delete(ctx context.Context, namespace int, name string) error {
	return w.client(namespace).CoreV1().Pods(w.namespaces[namespace]).Delete(ctx, name,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
}

// createUntilGranted creates a pod, and counts how often that is refused before.
func (w *podsWorld) createUntilGranted(ctx context.Context, namespace int, name string, refusals *atomic.Int64) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := w.create(ctx, namespace, name)
		if !apierrors.IsForbidden(err) {
			return err
		}
		refusals.Add(1)
	}
}
