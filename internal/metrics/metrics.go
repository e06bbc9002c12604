/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	namespace     = "sharedquota"
	labelHow      = "how"
	labelOutcome  = "outcome"
	labelQuota    = "quota"
	labelResource = "resource"
)

// Outcome is how an admission request ended.
type Outcome string

const (
	// Allowed: nothing limits the request, or it was charged.
	Allowed Outcome = "allowed"
	// Denied: a quota refuses the request.
	Denied Outcome = "denied"
	// Unknown: a quota has not been counted yet, so the request was refused.
	Unknown Outcome = "unknown"
	// Undecodable: the request, or an object in it, can't be read.
	Undecodable Outcome = "undecodable"
	// Failed: the operator could not decide, so the request was refused.
	Failed Outcome = "failed"
)

// Loss is what somebody did to a ledger.
type Loss string

const (
	// Deleted: the ledger is missing.
	Deleted Loss = "deleted"
	// Edited: the ledger isn't what the operator wrote.
	Edited Loss = "edited"
)

// Metrics measures the operator. Its methods may be called concurrently.
type Metrics struct {
	requests  *prometheus.CounterVec
	commits   *prometheus.CounterVec
	conflicts *prometheus.CounterVec
	failures  *prometheus.CounterVec
	batch     prometheus.Histogram
	duration  prometheus.Histogram
	drift     *prometheus.CounterVec
	ends      prometheus.Gauge
	lost      *prometheus.CounterVec
}

// New registers the metrics.
func New(registerer prometheus.Registerer) *Metrics {
	m := &Metrics{
		requests: counter("admission", "requests_total", "Admission requests by outcome.", labelOutcome),
		commits:  counter("ledger", "commits_total", "Writes of a ledger.", labelQuota),
		conflicts: counter("ledger", "conflicts_total",
			"Writes of a ledger that met a newer one and were judged again.", labelQuota),
		failures: counter("ledger", "failures_total", "Reads and writes of a ledger that failed.", labelQuota),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: "ledger", Name: "commit_batch_size",
			Help: "Charges and changes written by one commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
		}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: namespace, Subsystem: "ledger", Name: "commit_duration_seconds",
			Help: "Time that one write of a ledger takes.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		drift: counter("counting", "drift_total",
			"Audits in which a resource's running total differed from its records. Anything above zero is a defect.",
			labelQuota, labelResource),
		ends: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Subsystem: "serving", Name: "certificate_expiry_timestamp_seconds",
			Help: "When the certificate ends that this replica presents; 0 for one that is made for the life of the process.",
		}),
		lost: counter("ledger", "lost_total",
			"Ledgers that somebody else than the operator deleted or edited, and that were rebuilt.", labelQuota, labelHow),
	}
	registerer.MustRegister(m.requests, m.commits, m.conflicts, m.failures, m.batch, m.duration, m.drift, m.ends, m.lost)
	return m
}

func counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help,
	}, labels)
}

// Requested counts one admission request.
func (m *Metrics) Requested(outcome Outcome) {
	m.requests.WithLabelValues(string(outcome)).Inc()
}

// Committed implements the Observer of groupcommit.
func (m *Metrics) Committed(quota string, batch int, took time.Duration) {
	m.commits.WithLabelValues(quota).Inc()
	m.batch.Observe(float64(batch))
	m.duration.Observe(took.Seconds())
}

// Conflicted implements the Observer of groupcommit.
func (m *Metrics) Conflicted(quota string) {
	m.conflicts.WithLabelValues(quota).Inc()
}

// Failed implements the Observer of groupcommit.
func (m *Metrics) Failed(quota string, _ error) {
	m.failures.WithLabelValues(quota).Inc()
}

// Drifted counts a resource whose running total an audit found wrong.
func (m *Metrics) Drifted(quota, resource string) {
	m.drift.WithLabelValues(quota, resource).Inc()
}

// CertificateEnds tells when the certificate ends that is presented.
func (m *Metrics) CertificateEnds(at time.Time) {
	m.ends.Set(float64(at.Unix()))
}

// Lost counts a ledger that has to be rebuilt.
func (m *Metrics) Lost(quota string, how Loss) {
	m.lost.WithLabelValues(quota, string(how)).Inc()
}

// Forget drops the series of a quota that is gone.
func (m *Metrics) Forget(quota string) {
	for _, vec := range []*prometheus.CounterVec{m.commits, m.conflicts, m.failures, m.drift, m.lost} {
		vec.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	}
}
