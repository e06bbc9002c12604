// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// owners count the wakes of workloads that wait for room.
type owners struct{ woken, refused, failed *prometheus.CounterVec }

func newOwners(c *catalogue) owners {
	return owners{
		woken: c.counter("owners", "woken_total",
			"Workloads that were woken because there was room for their objects, each time.", labelQuota),
		refused: c.counter("owners", "refused_again_total",
			"Workloads of which an object was refused after they were woken. Somebody else took the room.", labelQuota),
		failed: c.counter("owners", "wake_failures_total",
			"Workloads that the API server did not let the operator wake. The leader's log says why.", labelQuota),
	}
}

func (o owners) forget(quota string) {
	for _, vec := range []*prometheus.CounterVec{o.woken, o.refused, o.failed} {
		vec.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	}
}

// Woken counts a workload that was woken.
func (m *Metrics) Woken(quota string) { m.owners.woken.WithLabelValues(quota).Inc() }

// RefusedAgain counts workloads that were woken and refused again.
func (m *Metrics) RefusedAgain(quota string, number int) {
	if number > 0 {
		m.owners.refused.WithLabelValues(quota).Add(float64(number))
	}
}

// WakeFailed counts a workload that could not be woken.
func (m *Metrics) WakeFailed(quota string) { m.owners.failed.WithLabelValues(quota).Inc() }
