// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// measure runs an operator on what is loaded, and takes all its figures.
func (w *scaleWorld) measure(ctx context.Context) (row, error) {
	measured := row{Pods: w.loaded}
	ledgers, err := w.followLedgers(ctx)
	if err != nil {
		return measured, err
	}
	defer func() { ledgers.events.Stop() }()
	sayf("counting %d pods", w.loaded)
	took, err := w.count(ctx, ledgers)
	if err != nil {
		return measured, err
	}
	used, err := w.operator.Consumption()
	if err != nil {
		return measured, err
	}
	measured.Complete, measured.CompleteCPU = took.Seconds(), used.CPU.Seconds()
	if measured.Memory, measured.Idle, err = w.settled(ctx); err != nil {
		return measured, err
	}
	if w.loaded > 0 {
		sayf("changing single pods")
		if measured.Changes, err = w.changes(ctx, ledgers, measured.Idle); err != nil {
			return measured, err
		}
	}
	return measured, errors.Join(w.operator.Stop(), disarm(ctx, w.quotas))
}

// count starts an operator, and returns how long it took from there until all
// ledgers were complete.
func (w *scaleWorld) count(ctx context.Context, ledgers *ledgers) (time.Duration, error) {
	port, err := harness.FreePort()
	if err != nil {
		return 0, err
	}
	start, want := time.Now(), w.expected()
	var took time.Duration
	// It may be complete before it is ready, which StartOperator waits for.
	err = together(ctx, func(ctx context.Context) error {
		err := ledgers.await(ctx, want)
		took = time.Since(start)
		return err
	}, func(ctx context.Context) error {
		operator, err := w.cluster.StartOperator(ctx, harness.OperatorOptions{Binary: w.options.manager, MetricsPort: port})
		w.operator, w.metricsPort = operator, port
		return err
	})
	return took, err
}

// settled waits until the operator is at rest, and returns its memory, and what
// part of a CPU it uses at rest.
func (w *scaleWorld) settled(ctx context.Context) (memory, float64, error) {
	if err := pause(ctx, settle/2); err != nil {
		return memory{}, 0, err
	}
	before, err := w.operator.Consumption()
	if err != nil {
		return memory{}, 0, err
	}
	if err := pause(ctx, settle/2); err != nil {
		return memory{}, 0, err
	}
	after, err := w.operator.Consumption()
	if err != nil {
		return memory{}, 0, err
	}
	idle := (after.CPU - before.CPU).Seconds() / (settle / 2).Seconds()
	measured, err := memoryOf(ctx, w.operator.Process, w.metricsPort)
	return measured, idle, err
}
