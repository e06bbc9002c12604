// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	regrants     = 200
	churnClients = 20
	churnRounds  = 100
)

// measureRegrant fills a quota and then moves one pod from namespace to
// namespace. It measures from the answer to a deletion to the answer that
// grants the next creation elsewhere, and counts the refusals between them.
func measureRegrant(ctx context.Context, w *podsWorld, _ int, into *results) error {
	return withOperator(ctx, w, setup{namespaces: 10, pods: "1"}, func(v variant) error {
		if err := w.create(ctx, 0, "pod-0"); err != nil {
			return err
		}
		var latency []time.Duration
		refusals := 0
		for n := range regrants {
			if err := w.delete(ctx, n%10, fmt.Sprintf("pod-%d", n)); err != nil {
				return err
			}
			start := time.Now()
			refused, err := w.createUntilGranted(ctx, (n+1)%10, fmt.Sprintf("pod-%d", n+1))
			if err != nil {
				return err
			}
			latency = append(latency, time.Since(start))
			refusals += refused
		}
		into.addLimit(freed, v.name, limitFigures{Requests: regrants, Refused: refusals, latency: latency})
		return nil
	})
}

// measureChurn has as many clients as the quota allows pods. Each deletes its
// own pod before it creates the next, so that there is room for every request,
// and no refusal is right.
func measureChurn(ctx context.Context, w *podsWorld, _ int, into *results) error {
	limit := fmt.Sprint(churnClients)
	return withOperator(ctx, w, setup{namespaces: 10, pods: limit}, func(v variant) error {
		var mu sync.Mutex
		var latency []time.Duration
		refusals := 0
		var failure error
		var clients sync.WaitGroup
		for i := range churnClients {
			clients.Go(func() {
				measured, refused, err := w.churn(ctx, i)
				mu.Lock()
				defer mu.Unlock()
				latency = append(latency, measured...)
				refusals += refused
				if err != nil {
					failure = err
				}
			})
		}
		clients.Wait()
		into.addLimit(churned, v.name, limitFigures{Requests: churnClients * churnRounds, Refused: refusals, latency: latency})
		return failure
	})
}

func (w *podsWorld) churn(ctx context.Context, i int) (latency []time.Duration, refusals int, err error) {
	for n := range churnRounds {
		name := fmt.Sprintf("churn-%d-%d", i, n)
		start := time.Now()
		refused, err := w.createUntilGranted(ctx, i%10, name)
		if err != nil {
			return latency, refusals, err
		}
		latency = append(latency, time.Since(start))
		refusals += refused
		if err := w.delete(ctx, i%10, name); err != nil {
			return latency, refusals, err
		}
	}
	return latency, refusals, nil
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

// createUntilGranted returns how often the creation was refused before.
func (w *podsWorld) createUntilGranted(ctx context.Context, namespace int, name string) (refused int, err error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for {
		err := w.create(ctx, namespace, name)
		if !apierrors.IsForbidden(err) {
			return refused, err
		}
		refused++
	}
}
