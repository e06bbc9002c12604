// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
)

// meter reads what a turn consumes.
type meter struct {
	world   *podsWorld
	running *running
	before  readings
}

// readings are running totals.
type readings struct {
	apiServer, etcd, variant time.Duration
	// memory is what the variant's processes hold now, in bytes.
	memory                                int64
	commits, conflicts, entries, requests float64
	// apiServerHeap and variantHeap are bytes allocated since the start.
	apiServerHeap, variantHeap float64
	// writes are those of what limits: of ledgers, status and views.
	writes float64
	// calls are how long the API server waited for webhooks, in milliseconds.
	calls float64
}

func newMeter(w *podsWorld, r *running) *meter { return &meter{world: w, running: r} }

func (m *meter) begin(ctx context.Context) error {
	var err error
	if m.before, err = m.read(ctx); err != nil {
		return err
	}
	return m.readAPIServer(ctx, &m.before)
}

// end returns the figures of the turn.
func (m *meter) end(ctx context.Context, s sample) (turnFigures, error) {
	after, err := m.read(ctx)
	if err != nil {
		return turnFigures{}, err
	}
	size, err := m.ledgerBytes(ctx)
	if err != nil {
		return turnFigures{}, err
	}
	if err := m.readAPIServer(ctx, &after); err != nil {
		return turnFigures{}, err
	}
	allocated := func(before, after float64) float64 { return (after - before) / (1 << 10) / float64(max(s.count, 1)) }
	each := func(before, after time.Duration) float64 {
		return milliseconds(after-before) / float64(max(s.count, 1))
	}
	commits := after.commits - m.before.commits
	figures := turnFigures{
		Rate: s.rate(), latency: s.latency,
		APIServerCPU: each(m.before.apiServer, after.apiServer), EtcdCPU: each(m.before.etcd, after.etcd),
		VariantCPU: each(m.before.variant, after.variant), VariantMemory: float64(after.memory) / (1 << 20),
		Commits: commits / s.took.Seconds(), Conflicts: (after.conflicts - m.before.conflicts) / s.took.Seconds(),
		APIServerHeap: allocated(m.before.apiServerHeap, after.apiServerHeap),
		VariantHeap:   allocated(m.before.variantHeap, after.variantHeap),
		Writes:        (after.writes - m.before.writes) / float64(max(s.count, 1)),
		Call:          (after.calls - m.before.calls) / float64(max(s.count, 1)),
		LedgerBytes:   size, Requests: (after.requests - m.before.requests) / s.took.Seconds(),
	}
	if commits > 0 {
		figures.Batch = (after.entries - m.before.entries) / commits
	}
	return figures, nil
}

func (m *meter) read(ctx context.Context) (readings, error) {
	apiServer, err1 := m.world.cluster.APIServerConsumption()
	etcd, err2 := m.world.cluster.EtcdConsumption()
	r := readings{apiServer: apiServer.CPU, etcd: etcd.CPU}
	err := errors.Join(err1, err2)
	for _, process := range m.running.processes {
		used, processErr := process.Consumption()
		err = errors.Join(err, processErr)
		r.variant += used.CPU
		r.memory += used.Memory
	}
	for _, port := range m.running.metrics {
		err = errors.Join(err, r.scrape(ctx, port))
	}
	return r, err
}

// readAPIServer reads what the API server has allocated and written.
func (m *meter) readAPIServer(ctx context.Context, into *readings) error {
	text, err := m.world.raw(ctx, "/metrics")
	if err != nil {
		return fmt.Errorf("reading the API server's metrics: %w", err)
	}
	exported, err := parseMetrics(text)
	if err != nil {
		return err
	}
	into.apiServerHeap, into.writes = exported.sum(heapAllocated), exported.sum("apiserver_request_total", writes)
	into.calls = 1000 * exported.sum("apiserver_admission_webhook_admission_duration_seconds")
	return nil
}

// writes matches the writes of what limits, also those that met a conflict.
func writes(labels map[string]string) bool {
	limiting := sets.New("quotaledgers", "clusterresourcequotas", "localresourcequotas", "resourcequotas")
	writing := sets.New("POST", "PUT", "PATCH", "APPLY")
	return limiting.Has(labels["resource"]) && writing.Has(labels["verb"]) && labels["dry_run"] == ""
}

// heapAllocated is what every Go process exports.
const heapAllocated = "go_memstats_alloc_bytes_total"

// scrape adds an operator's own metrics.
func (r *readings) scrape(ctx context.Context, port int) error {
	exported, err := scrape(ctx, port)
	if err != nil {
		return err
	}
	r.variantHeap += exported.sum(heapAllocated)
	r.commits += exported.sum("sharedquota_ledger_commits_total")
	r.conflicts += exported.sum("sharedquota_ledger_conflicts_total")
	r.requests += exported.sum("rest_client_requests_total")
	r.entries += exported.sum("sharedquota_ledger_commit_batch_size")
	return nil
}

// ledgerBytes returns how large the ledger is right after the load.
func (m *meter) ledgerBytes(ctx context.Context) (int, error) {
	if len(m.running.metrics) == 0 {
		return 0, nil
	}
	body, err := m.world.raw(ctx, "/apis/quota.sharedquota.dev/v1/quotaledgers/bench")
	return len(body), err
}
