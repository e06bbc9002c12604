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
	// quick: metrics aren't read, for which a quota that was just made would wait.
	quick bool
	// what is measured, and how long; zero if it isn't profiled.
	what          string
	long          time.Duration
	profiled      func() error
	before, after totals
}

// totals are running ones.
type totals struct {
	figures

	// served are the requests that the metrics have counted. Reading them takes long while clients are busy.
	served float64
}

// begin reads what was consumed before. CPU time is read last, and first in end: reading metrics takes some, too.
func (m *meter) begin(ctx context.Context) error {
	err := m.export(ctx, &m.before)
	m.profiled = func() error { return nil }
	if m.long > 0 {
		m.profiled = m.world.profiler.start(ctx, m.what, ofCPU(m.long))
	}
	return errors.Join(err, m.consume(&m.before))
}

func (m *meter) end(ctx context.Context) error {
	return errors.Join(m.consume(&m.after), m.profiled(), m.export(ctx, &m.after))
}

// turn returns the figures of the turn.
func (m *meter) turn(ctx context.Context, s sample) (turn, error) {
	measured := turn{figures: m.after.figures, latency: s.latency}
	for i, column := range &columns {
		switch grown := m.after.figures[i] - m.before.figures[i]; column.per {
		case alone:
		case perServed:
			measured.figures[i] = grown / max(m.after.served-m.before.served, 1)
		case perRequest:
			measured.figures[i] = grown / float64(max(len(s.latency), 1))
		case perSecond:
			measured.figures[i] = grown / s.took.Seconds()
		}
	}
	measured.figures[rate] = float64(len(s.latency)) / s.took.Seconds()
	measured.figures[failed] = float64(s.failed)
	measured.figures[totalCPU] = measured.figures[apiServerCPU] + measured.figures[etcdCPU] + measured.figures[ownCPU]
	if len(m.running.metrics) > 0 {
		text, err := raw(ctx, m.world.cluster, "/apis/quota.sharedquota.dev/v1/quotaledgers/bench")
		if err != nil {
			return turn{}, err
		}
		measured.figures[ledgerBytes] = float64(len(text))
	}
	return measured, nil
}

// consume reads what the processes have used.
func (m *meter) consume(into *totals) error {
	apiServer, err1 := m.world.cluster.APIServerConsumption()
	etcd, err2 := m.world.cluster.EtcdConsumption()
	into.figures[apiServerCPU], into.figures[etcdCPU] = milliseconds(apiServer.CPU), milliseconds(etcd.CPU)
	err := errors.Join(err1, err2)
	for _, process := range m.running.processes {
		used, processErr := process.Consumption()
		err = errors.Join(err, processErr)
		into.figures[ownCPU] += milliseconds(used.CPU)
		into.figures[ownMemory] += float64(used.Memory) / (1 << 20)
	}
	return err
}

// heapAllocated is what every Go process exports.
const heapAllocated = "go_memstats_alloc_bytes_total"

// export reads the metrics of the operator and of the API server.
func (m *meter) export(ctx context.Context, into *totals) error {
	if m.quick {
		return nil
	}
	for _, port := range m.running.metrics {
		exported, err := scrape(ctx, port)
		if err != nil {
			return err
		}
		into.figures[ownHeap] += exported.sum(heapAllocated) / (1 << 10)
		into.figures[commits] += exported.sum("sharedquota_ledger_commits_total")
		into.figures[conflicts] += exported.sum("sharedquota_ledger_conflicts_total")
		into.figures[requests] += exported.sum("rest_client_requests_total")
	}
	text, err := raw(ctx, m.world.cluster, "/metrics")
	if err != nil {
		return fmt.Errorf("reading the API server's metrics: %w", err)
	}
	exported, err := parseMetrics(text)
	into.figures[apiServerHeap] = exported.sum(heapAllocated) / (1 << 10)
	into.served = exported.sum("apiserver_request_total", isServed)
	into.figures[writes] = exported.sum("apiserver_request_total", isWrite)
	into.figures[call] = 1000 * exported.sum("apiserver_admission_webhook_admission_duration_seconds")
	return err
}

// isWrite matches the writes of what limits, also those that met a conflict.
func isWrite(labels map[string]string) bool {
	limiting := sets.New("quotaledgers", "clusterresourcequotas", "localresourcequotas", "resourcequotas")
	writing := sets.New("POST", "PUT", "PATCH", "APPLY")
	return limiting.Has(labels["resource"]) && writing.Has(labels["verb"]) && labels["dry_run"] == ""
}

// isServed matches what clients ask for.
func isServed(labels map[string]string) bool {
	asked := sets.New("POST pods", "POST deployments", "PUT deployments")
	return asked.Has(labels["verb"]+" "+labels["resource"]) && labels["subresource"] == "" && labels["dry_run"] == ""
}
