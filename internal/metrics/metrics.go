// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	namespace = "sharedquota"

	labelEnd        = "end"
	labelHow        = "how"
	labelMode       = "mode"
	labelNamespace  = "namespace"
	labelOutcome    = "outcome"
	labelProjection = "projection"
	labelQuota      = "quota"
	labelWorkload   = "workload"
	labelResource   = "resource"
	labelReason     = "reason"
	labelStatus     = "status"
	labelType       = "type"
)

// Preflight is how a question about a workload ended.
type Preflight string

const (
	// PreflightFits: all of it fits now, or nothing limits it.
	PreflightFits Preflight = "fits"
	// PreflightWarned: not all of it fits now, and its caller was told.
	PreflightWarned Preflight = "warned"
	// PreflightDenied: not all of it fits now, and it was refused.
	PreflightDenied Preflight = "denied"
	// PreflightUnjudged: whether it fits is not known, so it was let pass.
	PreflightUnjudged Preflight = "unjudged"
	// PreflightFailed: the operator failed to judge it, so it was let pass.
	PreflightFailed Preflight = "failed"
)

// Metrics measures the operator. Its methods may be called concurrently.
type Metrics struct {
	// outcome -> requests that ended in it; filled once, and only read then
	admission map[outcomes.Outcome]answers
	// outcome -> questions about workloads that ended in it; filled once, and only read then
	preflight map[Preflight]answers
	ledgers   ledgers
	batch     prometheus.Observer
	duration  prometheus.Observer
	drift     *prometheus.CounterVec
	unmatched *prometheus.CounterVec
	ends      prometheus.Gauge
	turned    prometheus.Counter
	probes    *prometheus.HistogramVec
	would     *prometheus.CounterVec
	looked    *prometheus.CounterVec
	// woken, refusedAgain and unwoken count the wakes of workloads that wait for room.
	woken, refusedAgain, unwoken *prometheus.CounterVec
	quotas                       *quotas
	// ofQuotas have the name of a quota as their first label.
	ofQuotas []*prometheus.CounterVec
	// silence tells for how long the API server has not answered; nil before anybody knows.
	silence atomic.Pointer[func() time.Duration]
}

// New registers the metrics.
func New(registerer prometheus.Registerer) *Metrics {
	c := &catalogue{Registerer: registerer}
	m := &Metrics{
		admission: answersOf(
			c.counter("admission", "requests_total", "Admission requests by outcome.", labelOutcome),
			c.histogram("admission", "duration_seconds",
				"Time from an admission request to its answer, by outcome. It includes the write of the ledger and, "+
					"where the request didn't fit, what it waited for room.",
				prometheus.ExponentialBuckets(0.001, 2, 14), labelOutcome),
			outcomes.Allowed, outcomes.Denied, outcomes.Unknown, outcomes.Undecodable, outcomes.Failed, outcomes.Unchecked),
		preflight: answersOf(
			c.counter("preflight", "requests_total",
				"Workloads, scales and autoscalers that were judged when they were applied, by outcome.", labelOutcome),
			c.histogram("preflight", "duration_seconds",
				"Time from the request for a workload, a scale or an autoscaler to its answer, by outcome.",
				prometheus.ExponentialBuckets(0.0001, 2, 15), labelOutcome),
			PreflightFits, PreflightWarned, PreflightDenied, PreflightUnjudged, PreflightFailed),
		ledgers: newLedgers(c),
		batch: c.histogram("ledger", "commit_batch_size",
			"Charges and changes written by one commit.", prometheus.ExponentialBuckets(1, 2, 10)).WithLabelValues(),
		duration: c.histogram("ledger", "commit_duration_seconds",
			"Time that one write of a ledger takes.", prometheus.ExponentialBuckets(0.001, 2, 14)).WithLabelValues(),
		drift: c.counter("counting", "drift_total",
			"Repairs, by an audit, of a resource's running total that differed from its records. Anything above zero is a defect.",
			labelQuota, labelResource),
		unmatched: c.counter("counting", "unmatched_total",
			"Definitions of a quota whose scopes objects of a resource couldn't be matched with; such objects count in full. "+
				"Anything above zero is a defect.",
			labelQuota, labelResource),
		ends: prometheus.NewGauge(gaugeOf("serving", "certificate_expiry_timestamp_seconds",
			"When the certificate ends that this replica presents; 0 for one that is made for the life of the process.")),
		turned: c.counter("serving", "turned_away_total",
			"Requests at the webhooks' port that were turned away because they came without the token of the webhook configuration, "+
				"or without the certificate that --client-ca-file asks for.").WithLabelValues(),
		probes: c.histogram("reach", "probe_duration_seconds",
			"Time that the leader's dry runs take that prove which webhook configuration the API server has loaded, by outcome.",
			prometheus.ExponentialBuckets(0.001, 2, 14), labelOutcome),
		woken: c.counter("owners", "woken_total",
			"Workloads that were woken because there was room for their objects, each time.", labelQuota),
		refusedAgain: c.counter("owners", "refused_again_total",
			"Workloads of which an object was refused after they were woken. Somebody else took the room.", labelQuota),
		unwoken: c.counter("owners", "wake_failures_total",
			"Workloads that the API server did not let the operator wake. The leader's log says why.", labelQuota),
		would: c.counter("admission", "would_refuse_total",
			"Requests that didn't fit and were admitted, of each resource that they didn't fit for, by the mode of the quota.",
			labelQuota, labelResource, labelMode),
		looked: c.counter("admission", "replacement_lookups_total",
			"Looks whether a pod that doesn't fit in the limit of a quota with surge replaces another one, by outcome: replaces, "+
				"other, or unknown.",
			labelOutcome),
		quotas: newQuotas(),
	}
	c.MustRegister(m.quotas, m.ends, prometheus.NewGaugeFunc(gaugeOf("contact", "silence_seconds",
		"Time since the API server last answered this replica. From 5 seconds on, the replica isn't ready and refuses every request."),
		m.silent))
	m.ofQuotas = c.ofQuotas
	return m
}

// Contact sets the function that measures for how long the API server has not answered.
func (m *Metrics) Contact(silence func() time.Duration) { m.silence.Store(&silence) }

func (m *Metrics) silent() float64 {
	silence := m.silence.Load()
	if silence == nil {
		return 0
	}
	return (*silence)().Seconds()
}

// Answered counts one admission request, and how long its answer took.
func (m *Metrics) Answered(outcome outcomes.Outcome, took time.Duration) {
	m.admission[outcome].count(took)
}

// Refused counts a request that didn't fit, and was admitted because of the quota's mode, for each resource that it didn't fit for.
func (m *Metrics) Refused(refusal outcomes.Refusal) {
	if refusal.Mode == "" {
		return
	}
	for _, resource := range refusal.Resources {
		m.would.WithLabelValues(refusal.Quota, string(resource), string(refusal.Mode)).Inc()
	}
}

// Looked counts a look whether a pod replaces another one.
func (m *Metrics) Looked(replaces bool, err error) {
	outcome := "other"
	switch {
	case err != nil:
		outcome = "unknown"
	case replaces:
		outcome = "replaces"
	}
	m.looked.WithLabelValues(outcome).Inc()
}

// Preflighted counts one question about a workload, and how long its answer took.
func (m *Metrics) Preflighted(outcome Preflight, took time.Duration) {
	m.preflight[outcome].count(took)
}

// TurnedAway implements the Observer of package serving.
func (m *Metrics) TurnedAway() { m.turned.Inc() }

// Unserved implements the Observer of package serving.
func (m *Metrics) Unserved(took time.Duration) { m.Answered(outcomes.Failed, took) }

// Committed implements the Observer of package driver.
func (m *Metrics) Committed(quota string, batch int, took time.Duration) {
	m.ledgers.of(quota).commits.WithLabelValues(quota).Inc()
	m.batch.Observe(float64(batch))
	m.duration.Observe(took.Seconds())
}

// Ended implements the Observer of package driver.
func (m *Metrics) Ended(quota string, ends ledger.Ends) {
	ended := m.ledgers.of(quota).ended
	ended.WithLabelValues(quota, endSettled).Add(float64(ends.Settled))
	ended.WithLabelValues(quota, endExpired).Add(float64(ends.Expired))
	ended.WithLabelValues(quota, endReleased).Add(float64(ends.Released))
}

// Conflicted implements the Observer of package driver.
func (m *Metrics) Conflicted(quota string) {
	m.ledgers.of(quota).conflicts.WithLabelValues(quota).Inc()
}

// Failed implements the Observer of package driver.
func (m *Metrics) Failed(quota string, _ error) {
	m.ledgers.of(quota).failures.WithLabelValues(quota).Inc()
}

// Impossible implements the Observer of package driver.
func (m *Metrics) Impossible(quota string, _ error) {
	m.ledgers.of(quota).impossible.WithLabelValues(quota).Inc()
}

// Drifted counts a resource whose running total an audit found wrong and repaired.
func (m *Metrics) Drifted(quota, resource string) {
	m.drift.WithLabelValues(quota, resource).Inc()
}

// Unmatched counts a resource whose objects can't be matched with a quota's scopes.
func (m *Metrics) Unmatched(quota, resource string) {
	m.unmatched.WithLabelValues(quota, resource).Inc()
}

// Probed counts one probe, and how long it took.
func (m *Metrics) Probed(probe outcomes.Probe, took time.Duration) {
	m.probes.WithLabelValues(string(probe)).Observe(took.Seconds())
}

// CertificateEnds sets when the presented certificate ends.
func (m *Metrics) CertificateEnds(at time.Time) {
	m.ends.Set(float64(at.Unix()))
}

// Lost counts a ledger that nothing may be granted by any more.
func (m *Metrics) Lost(quota string, how outcomes.Loss) {
	m.ledgers.of(quota).lost.WithLabelValues(quota, string(how)).Inc()
}

// Follow makes each scrape read the leader's figures of its quotas, once elected
// is closed. It is called once.
func (m *Metrics) Follow(elected <-chan struct{}, read func() []Figures) {
	m.quotas.source.Store(&source{elected: elected, read: read})
}

// Gone drops the series of a quota that was deleted.
func (m *Metrics) Gone(quota string) {
	for _, vec := range m.ofQuotas {
		vec.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	}
}

// Woken counts a workload that was woken.
func (m *Metrics) Woken(quota string) { m.woken.WithLabelValues(quota).Inc() }

// RefusedAgain counts workloads that were woken and refused again.
func (m *Metrics) RefusedAgain(quota string, number int) {
	if number > 0 {
		m.refusedAgain.WithLabelValues(quota).Add(float64(number))
	}
}

// WakeFailed counts a workload that could not be woken.
func (m *Metrics) WakeFailed(quota string) { m.unwoken.WithLabelValues(quota).Inc() }
