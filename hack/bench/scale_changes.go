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
	// Objects is how many pods live in the namespace.
	Objects int `json:"objects"`
	// Create and Delete are from the request to the ledger that includes it: the median, in milliseconds.
	Create float64 `json:"createMilliseconds"`
	Delete float64 `json:"deleteMilliseconds"`
	// CPU is the operator's time for one of them, without what it uses at rest,
	// in milliseconds.
	CPU float64 `json:"cpuMilliseconds"`
}

// rounds is how often the namespaces take turns, so that what the machine does
// besides falls on all of them.
const rounds = 4

// changes measures in a namespace of few pods and in one of many.
func (w *scaleWorld) changes(ctx context.Context, ledgers *ledgers, idle float64) ([]changes, error) {
	namespaces := []int{w.options.namespaces - 1, 0}
	creates, deletes, cpu := make([][]time.Duration, 2), make([][]time.Duration, 2), make([]time.Duration, 2)
	for range rounds {
		for i, namespace := range namespaces {
			before, err := w.operator.Consumption()
			if err != nil {
				return nil, err
			}
			start := time.Now()
			for range w.options.tries / rounds {
				created, deleted, err := w.try(ctx, ledgers, namespace)
				if err != nil {
					return nil, err
				}
				creates[i], deletes[i] = append(creates[i], created), append(deletes[i], deleted)
			}
			after, err := w.operator.Consumption()
			if err != nil {
				return nil, err
			}
			cpu[i] += after.CPU - before.CPU - time.Duration(idle*float64(time.Since(start)))
		}
	}
	var measured []changes
	for i, namespace := range namespaces {
		measured = append(measured, changes{
			Objects: w.options.share(namespace, w.loaded), Create: percentile(creates[i], 50), Delete: percentile(deletes[i], 50),
			CPU: milliseconds(cpu[i]) / float64(len(creates[i])+len(deletes[i])),
		})
	}
	return measured, nil
}

// try creates a pod and deletes it, and each time waits for the ledger.
func (w *scaleWorld) try(ctx context.Context, ledgers *ledgers, namespace int) (created, deleted time.Duration, err error) {
	pods := w.objects.CoreV1().Pods(namespaceName(namespace))
	quota := w.options.quotaOf(namespace)
	pod, without := aPod(namespaceName(namespace), "single", 0), ledgers.used[quota]
	start := time.Now()
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return 0, 0, fmt.Errorf("creating a pod: %w", err)
	}
	if err := ledgers.awaitOne(ctx, quota, without.plus(0, 1)); err != nil {
		return 0, 0, err
	}
	created, start = time.Since(start), time.Now()
	if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		return 0, 0, fmt.Errorf("deleting a pod: %w", err)
	}
	err = ledgers.awaitOne(ctx, quota, without)
	return created, time.Since(start), err
}
