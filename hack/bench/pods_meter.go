// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
)

// meter reads what a turn consumes.
type meter struct {
	world   *podsWorld
	running *running
	before  figures
}

func (m *meter) begin(ctx context.Context) (err error) {
	m.before, err = m.read(ctx)
	return err
}

// end returns the figures of the turn.
func (m *meter) end(ctx context.Context, s sample) (turn, error) {
	after, err := m.read(ctx)
	if err != nil {
		return turn{}, err
	}
	measured := turn{figures: after, latency: s.latency}
	for i, column := range &columns {
		switch grown := after[i] - m.before[i]; column.per {
		case alone:
		case perRequest:
			measured.figures[i] = grown / float64(max(len(s.latency), 1))
		case perSecond:
			measured.figures[i] = grown / s.took.Seconds()
		}
	}
	measured.figures[rate] = float64(len(s.latency)) / s.took.Seconds()
	if len(m.running.metrics) > 0 {
		text, err := m.world.raw(ctx, "/apis/quota.sharedquota.dev/v1/quotaledgers/bench")
		if err != nil {
			return turn{}, err
		}
		measured.figures[ledgerBytes] = float64(len(text))
	}
	return measured, nil
}

// heapAllocated is what every Go process exports.
const heapAllocated = "go_memstats_alloc_bytes_total"

// read returns running totals.
func (m *meter) read(ctx context.Context) (totals figures, err error) {
	apiServer, err1 := m.world.cluster.APIServerConsumption()
	etcd, err2 := m.world.cluster.EtcdConsumption()
	totals[apiServerCPU], totals[etcdCPU] = milliseconds(apiServer.CPU), milliseconds(etcd.CPU)
	err = errors.Join(err1, err2)
	for _, process := range m.running.processes {
		used, processErr := process.Consumption()
		err = errors.Join(err, processErr)
		totals[ownCPU] += milliseconds(used.CPU)
		totals[ownMemory] += float64(used.Memory) / (1 << 20)
	}
	for _, port := range m.running.metrics {
		exported, scrapeErr := scrape(ctx, port)
		err = errors.Join(err, scrapeErr)
		totals[ownHeap] += exported.sum(heapAllocated) / (1 << 10)
		totals[commits] += exported.sum("sharedquota_ledger_commits_total")
		totals[conflicts] += exported.sum("sharedquota_ledger_conflicts_total")
		totals[requests] += exported.sum("rest_client_requests_total")
	}
	if err != nil {
		return totals, err
	}
	text, err := m.world.raw(ctx, "/metrics")
	if err != nil {
		return totals, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	exported, err := parseMetrics(text)
	totals[apiServerHeap] = exported.sum(heapAllocated) / (1 << 10)
	totals[writes] = exported.sum("apiserver_request_total", isWrite)
	totals[call] = 1000 * exported.sum("apiserver_admission_webhook_admission_duration_seconds")
	return totals, err
}

// isWrite matches the writes of what limits, also those that met a conflict.
func isWrite(labels map[string]string) bool {
	limiting := sets.New("quotaledgers", "clusterresourcequotas", "localresourcequotas", "resourcequotas")
	writing := sets.New("POST", "PUT", "PATCH", "APPLY")
	return limiting.Has(labels["resource"]) && writing.Has(labels["verb"]) && labels["dry_run"] == ""
}
