// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// changes are the figures of single changes in one namespace.
type changes struct {
	// objects is how many pods live in the namespace.
	objects int
	// deletion is from the request to the ledger that includes it: the median, in milliseconds.
	deletion float64
	// cpu is the operator's time for one change, in milliseconds.
	cpu float64
}

// rounds is how often the namespaces take rounds, so that what the machine does
// besides falls on all of them.
const rounds = 4

// changes measures in the last namespace and in the first, which may be crowded.
func (w *scaleWorld) changes(ctx context.Context) ([]changes, error) {
	ledgers, err := w.followLedgers(ctx)
	if err != nil {
		return nil, err
	}
	defer ledgers.stop()
	namespaces := []int{w.namespaces - 1, 0}
	deletes, cpu := make([][]time.Duration, len(namespaces)), make([]time.Duration, len(namespaces))
	for range rounds {
		for i, namespace := range namespaces {
			before, err := w.consumed()
			if err != nil {
				return nil, err
			}
			for range w.options.tries / rounds {
				deleted, err := w.try(ctx, ledgers, namespace)
				if err != nil {
					return nil, err
				}
				deletes[i] = append(deletes[i], deleted)
			}
			after, err := w.consumed()
			if err != nil {
				return nil, err
			}
			cpu[i] += after - before
		}
	}
	var measured []changes
	for i, namespace := range namespaces {
		measured = append(measured, changes{
			objects: w.share(namespace), deletion: percentile(deletes[i], 50), cpu: milliseconds(cpu[i]) / float64(2*len(deletes[i])),
		})
	}
	return measured, nil
}

// try creates a pod and deletes it, and each time waits for the ledger. It returns how long the deletion took.
func (w *scaleWorld) try(ctx context.Context, ledgers *ledgers, namespace int) (time.Duration, error) {
	const name = "single"
	quota := w.quotaOf(namespace)
	without := ledgers.states[quota]
	if err := w.createPod(ctx, namespaceName(namespace), name, 0); err != nil {
		return 0, fmt.Errorf("creating a pod: %w", err)
	}
	if err := ledgers.await(ctx, map[string]usage{quota: without.plus(0, 1)}); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := w.objects.CoreV1().Pods(namespaceName(namespace)).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if err != nil {
		return 0, fmt.Errorf("deleting a pod: %w", err)
	}
	err = ledgers.await(ctx, map[string]usage{quota: without})
	return time.Since(begin), err
}
