// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"
)

// profiledStart is how long a start is profiled, from when the replica is ready.
const profiledStart = 15 * time.Second

// start is what was measured of the start of one replica. Times are in seconds, memory is in bytes.
type start struct {
	// ready is the time until all quotas are Ready and Enforced, counted that until all ledgers are complete.
	ready, counted float64
	// cpu is the replica's CPU time until all ledgers are complete.
	cpu float64
	// settled is its memory some time later, peak the most until the end, after changes.
	settled, peak float64
	// changes are measured in a namespace of few pods, and in one of many if it is there.
	changes []changes
}

// measureStart starts the operator on what is loaded, and takes all figures of that.
func (w *scaleWorld) measureStart(ctx context.Context) error {
	_, err := w.measured(ctx)
	return err
}

// measureNamespaces is measureStart, with targets for thousands of namespaces.
func (w *scaleWorld) measureNamespaces(ctx context.Context) error {
	return w.measureTargets(ctx, "≤ 8", "≤ 250")
}

// measureQuotas is measureStart, with targets for thousands of quotas.
func (w *scaleWorld) measureQuotas(ctx context.Context) error {
	return w.measureTargets(ctx, "≤ 20", "≤ 400")
}

func (w *scaleWorld) measureTargets(ctx context.Context, ready, peak target) error {
	measured, err := w.measured(ctx)
	if err != nil {
		return err
	}
	w.report.add(w.title+": from the start until all quotas are Ready and Enforced, s", measured.ready, ready)
	w.report.add(w.title+": resident at the peak, MB", measured.peak/1e6, peak)
	return nil
}

// measurePods is measureStart, beside an operator that has the same quotas and no pod.
func (w *scaleWorld) measurePods(ctx context.Context) error {
	if err := errors.Join(w.prepare(ctx), w.limit(ctx)); err != nil {
		return err
	}
	empty := start{}
	if err := errors.Join(w.count(ctx, &empty), w.settle(ctx, &empty)); err != nil {
		return err
	}
	// With new quotas, no status shows the time before.
	if err := errors.Join(w.unlimit(ctx), w.stop(ctx), w.load(ctx)); err != nil {
		return err
	}
	measured, err := w.measured(ctx)
	if err != nil {
		return err
	}
	few, many := measured.changes[0], measured.changes[1]
	w.report.add(w.title+": resident for each pod, B", (measured.settled-empty.settled)/float64(w.pods), "≤ 1500")
	w.report.add(w.title+": CPU of a change among "+thousands(many.objects)+" pods of a namespace against "+thousands(few.objects),
		many.cpu/few.cpu, "")
	return nil
}

// measured starts one replica, takes all figures, and stops it.
func (w *scaleWorld) measured(ctx context.Context) (start, error) {
	measured := start{}
	if err := errors.Join(w.stop(ctx), w.fill(ctx)); err != nil {
		return measured, err
	}
	if err := w.count(ctx, &measured); err != nil {
		return measured, err
	}
	sayf("%s: counted after %.1f s, Ready and Enforced after %.1f s", w.title, measured.counted, measured.ready)
	if err := w.settle(ctx, &measured); err != nil {
		return measured, err
	}
	sayf("%s: changing single pods", w.title)
	var err error
	if measured.changes, err = w.changes(ctx); err != nil {
		return measured, err
	}
	if measured.peak, err = peakOf(w.replicas[0].PID()); err != nil {
		return measured, err
	}
	w.report.column(w.title, w.size).start = &measured
	return measured, w.stop(ctx)
}

// count starts a replica, and returns once all ledgers are complete, and all quotas are Ready and Enforced.
func (w *scaleWorld) count(ctx context.Context, measured *start) error {
	ledgers, statuses, stop, err := w.followBoth(ctx)
	if err != nil {
		return err
	}
	defer stop()
	sayf("%s: counting %d pods", w.title, w.loaded)
	begin, want, started := time.Now(), w.expected(), make(chan *replica, 1)
	return together(ctx, func(ctx context.Context) error {
		if err := ledgers.await(ctx, want); err != nil {
			return err
		}
		measured.counted = time.Since(begin).Seconds()
		select { // it may be complete before it is ready, which startReplica waits for
		case <-ctx.Done():
			return ctx.Err()
		case r := <-started:
			used, err := r.Consumption()
			measured.cpu = used.CPU.Seconds()
			return err
		}
	}, func(ctx context.Context) error {
		err := statuses.await(ctx, w.shownAs(want))
		measured.ready = time.Since(begin).Seconds()
		return err
	}, func(ctx context.Context) error {
		r, err := w.startReplica(ctx)
		if err != nil {
			return err
		}
		started <- r
		return w.profiler.start(ctx, w.title+" start", ofCPU(profiledStart))()
	})
}

// settle waits until the operator is at rest, and measures its memory then.
func (w *scaleWorld) settle(ctx context.Context, measured *start) error {
	if err := pause(ctx, settle); err != nil {
		return err
	}
	used, err := w.replicas[0].Consumption()
	measured.settled = float64(used.Memory)
	return err
}
