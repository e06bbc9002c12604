// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// changes are the figures of single changes in one namespace.
type changes struct {
	// Objects is how many pods live in the namespace.
	Objects int `json:"objects"`
	// Create and Delete are from the request to the ledger that includes it.
	Create delays `json:"create"`
	Delete delays `json:"delete"`
	// CPU is the operator's time for one of them, without what it uses at rest,
	// in milliseconds.
	CPU float64 `json:"cpuMilliseconds"`
}

// delays are in milliseconds.
type delays struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// rounds is how often the namespaces take turns, so that what the machine does
// besides falls on all of them.
const rounds = 4

// changes measures in a namespace of few pods and in one of many.
func (w *scaleWorld) changes(ctx context.Context, ledgers *ledgers, idle float64) ([]changes, error) {
	namespaces := []int{w.options.namespaces - 1, 0}
	samples := make([]changeSample, len(namespaces))
	for range rounds {
		for i, namespace := range namespaces {
			if err := w.sample(ctx, ledgers, namespace, idle, &samples[i]); err != nil {
				return nil, err
			}
		}
	}
	var measured []changes
	for i, namespace := range namespaces {
		measured = append(measured, samples[i].changes(w.options.share(namespace, w.loaded)))
	}
	return measured, nil
}

// changeSample is what was measured in one namespace.
type changeSample struct {
	creates, deletes []time.Duration
	cpu              time.Duration
}

func (s changeSample) changes(objects int) changes {
	return changes{
		Objects: objects, Create: delaysOf(s.creates), Delete: delaysOf(s.deletes),
		CPU: milliseconds(s.cpu) / float64(len(s.creates)+len(s.deletes)),
	}
}

// sample creates and deletes a pod several times, and takes the operator's CPU
// time meanwhile.
func (w *scaleWorld) sample(ctx context.Context, ledgers *ledgers, namespace int, idle float64, into *changeSample) error {
	before, err := w.operator.Consumption()
	if err != nil {
		return err
	}
	start := time.Now()
	for range max(1, w.options.tries/rounds) {
		if err := w.try(ctx, ledgers, namespace, into); err != nil {
			return err
		}
	}
	after, err := w.operator.Consumption()
	atRest := time.Duration(idle * float64(time.Since(start)))
	into.cpu += after.CPU - before.CPU - atRest
	return err
}

// try creates a pod and deletes it, and each time waits for the ledger.
func (w *scaleWorld) try(ctx context.Context, ledgers *ledgers, namespace int, into *changeSample) error {
	pods := w.objects.CoreV1().Pods(namespaceName(namespace))
	quota := w.options.quotaOf(namespace)
	pod, without := aPod(namespaceName(namespace), "single", 0), ledgers.used[quota]
	created, err := timed(func() error {
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating a pod: %w", err)
		}
		return ledgers.awaitOne(ctx, quota, without.plus(0, 1))
	})
	if err != nil {
		return err
	}
	deleted, err := timed(func() error {
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
			return fmt.Errorf("deleting a pod: %w", err)
		}
		return ledgers.awaitOne(ctx, quota, without)
	})
	into.creates, into.deletes = append(into.creates, created), append(into.deletes, deleted)
	return err
}

func timed(do func() error) (time.Duration, error) {
	start := time.Now()
	err := do()
	return time.Since(start), err
}

func delaysOf(measured []time.Duration) delays {
	sorted := slices.Sorted(slices.Values(measured))
	at := func(part float64) float64 { return milliseconds(sorted[int(part*float64(len(sorted)-1))]) }
	return delays{P50: at(0.50), P99: at(0.99)}
}
