// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
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
	labelResource   = "resource"
	labelReason     = "reason"
	labelSpan       = "span"
	labelStatus     = "status"
	labelType       = "type"
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
	// Unchecked: the operator could not decide, and the quotas admit requests then.
	Unchecked Outcome = "unchecked"
)

func outcomes() []Outcome { return []Outcome{Allowed, Denied, Unknown, Undecodable, Failed, Unchecked} }

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

func preflights() []Preflight {
	return []Preflight{PreflightFits, PreflightWarned, PreflightDenied, PreflightUnjudged, PreflightFailed}
}

// Probe is how a probe of the webhook configuration ended.
type Probe string

const (
	// ProbeProved: the API server has loaded the configuration that is in the cluster.
	ProbeProved Probe = "proved"
	// ProbeOutdated: the API server asks by an older one.
	ProbeOutdated Probe = "outdated"
	// ProbeFailed: the probe came back with an error, or didn't reach the operator.
	ProbeFailed Probe = "failed"
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
	// outcome -> requests that ended in it; filled once, and only read then
	admission map[Outcome]answers
	// outcome -> questions about workloads that ended in it; filled once, and only read then
	preflight map[Preflight]answers
	ledgers   *ledgers
	batch     prometheus.Observer
	duration  prometheus.Observer
	drift     *prometheus.CounterVec
	unmatched *prometheus.CounterVec
	ends      prometheus.Gauge
	turned    prometheus.Counter
	probes    *prometheus.HistogramVec
	owners    owners
	would     *prometheus.CounterVec
	quotas    *quotas
	entries   []Entry
	// silence tells for how long the API server has not answered; nil before anybody knows.
	silence atomic.Pointer[func() time.Duration]
}

// answers are the requests of one outcome.
type answers struct {
	number prometheus.Counter
	took   prometheus.Observer
}

// New registers the metrics.
func New(registerer prometheus.Registerer) *Metrics {
	c := &catalogue{registerer: registerer}
	m := &Metrics{
		admission: newAdmission(c),
		preflight: newPreflight(c),
		ledgers:   newLedgers(c),
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
		ends: c.gauge("serving", "certificate_expiry_timestamp_seconds",
			"When the certificate ends that this replica presents; 0 for one that is made for the life of the process."),
		turned: c.counter("serving", "turned_away_total",
			"Requests at the webhooks' port that were turned away because they came without the token of the webhook configuration, "+
				"or without the certificate that --client-ca-file asks for.").WithLabelValues(),
		probes: c.histogram("reach", "probe_duration_seconds",
			"Time that the leader's dry runs take that prove which webhook configuration the API server has loaded, by outcome.",
			prometheus.ExponentialBuckets(0.001, 2, 14), labelOutcome),
		owners: newOwners(c),
		would: c.counter("admission", "would_refuse_total",
			"Requests that didn't fit and were admitted, of each resource that they didn't fit for, by mode: "+
				"the mode of the resource, or Trial for a limit of spec.trial.", labelQuota, labelResource, labelMode),
		quotas: newQuotas(c),
	}
	c.measured("contact", "silence_seconds",
		"Time since the API server last answered this replica. From 5 seconds on, the replica isn't ready and refuses every request.",
		m.silent)
	m.entries = c.entries
	return m
}

func newAdmission(c *catalogue) map[Outcome]answers {
	requests := c.counter("admission", "requests_total", "Admission requests by outcome.", labelOutcome)
	duration := c.histogram("admission", "duration_seconds",
		"Time from an admission request to its answer, by outcome. It includes the write of the ledger and, "+
			"where the request didn't fit, what it waited for room.",
		prometheus.ExponentialBuckets(0.001, 2, 14), labelOutcome)
	byOutcome := map[Outcome]answers{}
	for _, outcome := range outcomes() {
		byOutcome[outcome] = answers{
			number: requests.WithLabelValues(string(outcome)), took: duration.WithLabelValues(string(outcome)),
		}
	}
	return byOutcome
}

func newPreflight(c *catalogue) map[Preflight]answers {
	requests := c.counter("preflight", "requests_total",
		"Workloads, scales and autoscalers that were judged when they were applied, by outcome.", labelOutcome)
	duration := c.histogram("preflight", "duration_seconds",
		"Time from the request for a workload, a scale or an autoscaler to its answer, by outcome.",
		prometheus.ExponentialBuckets(0.0001, 2, 15), labelOutcome)
	byOutcome := map[Preflight]answers{}
	for _, outcome := range preflights() {
		byOutcome[outcome] = answers{
			number: requests.WithLabelValues(string(outcome)), took: duration.WithLabelValues(string(outcome)),
		}
	}
	return byOutcome
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

// Catalogue lists what is exported, by name.
func (m *Metrics) Catalogue() []Entry {
	return slices.SortedFunc(slices.Values(m.entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
}

// Requested counts one admission request, and how long its answer took.
func (m *Metrics) Requested(outcome Outcome, took time.Duration) {
	of := m.admission[outcome]
	of.number.Inc()
	of.took.Observe(took.Seconds())
}

// Mode is why a request that didn't fit was admitted.
type Mode string

// ModeTrial is of a limit of spec.trial. The others are the modes of a resource.
const ModeTrial Mode = "Trial"

// WouldRefuse counts a request that didn't fit for a resource, and was admitted.
func (m *Metrics) WouldRefuse(quota string, resource corev1.ResourceName, mode Mode) {
	m.would.WithLabelValues(quota, string(resource), string(mode)).Inc()
}

// Preflighted counts one question about a workload, and how long its answer took.
func (m *Metrics) Preflighted(outcome Preflight, took time.Duration) {
	of := m.preflight[outcome]
	of.number.Inc()
	of.took.Observe(took.Seconds())
}

// TurnedAway implements the Observer of package serving.
func (m *Metrics) TurnedAway() { m.turned.Inc() }

// Unserved implements the Observer of package serving.
func (m *Metrics) Unserved(took time.Duration) { m.Requested(Failed, took) }

// Committed implements the Observer of package driver.
func (m *Metrics) Committed(quota string, batch int, took time.Duration) {
	m.ledgers.of(quota).commits.Inc()
	m.batch.Observe(float64(batch))
	m.duration.Observe(took.Seconds())
}

// Ended implements the Observer of package driver.
func (m *Metrics) Ended(quota string, ends ledger.Ends) {
	of := m.ledgers.of(quota)
	of.settled.Add(float64(ends.Settled))
	of.expired.Add(float64(ends.Expired))
	of.released.Add(float64(ends.Released))
}

// Conflicted implements the Observer of package driver.
func (m *Metrics) Conflicted(quota string) {
	m.ledgers.of(quota).conflicts.Inc()
}

// Failed implements the Observer of package driver.
func (m *Metrics) Failed(quota string, _ error) {
	m.ledgers.of(quota).failures.Inc()
}

// Impossible implements the Observer of package driver.
func (m *Metrics) Impossible(quota string, _ error) {
	m.ledgers.of(quota).impossible.Inc()
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
func (m *Metrics) Probed(outcome Probe, took time.Duration) {
	m.probes.WithLabelValues(string(outcome)).Observe(took.Seconds())
}

// CertificateEnds tells when the certificate ends that is presented.
func (m *Metrics) CertificateEnds(at time.Time) {
	m.ends.Set(float64(at.Unix()))
}

// Lost counts a ledger that has to be rebuilt.
func (m *Metrics) Lost(quota string, how Loss) {
	of := m.ledgers.of(quota)
	if how == Deleted {
		of.deleted.Inc()
	} else {
		of.edited.Inc()
	}
}

// Follow has what the leader knows of its quotas read at each scrape, once elected
// is closed. It is called once.
func (m *Metrics) Follow(elected <-chan struct{}, read func() []Figures) {
	m.quotas.source.Store(&source{elected: elected, read: read})
}

// Forget drops the series of a quota that is gone.
func (m *Metrics) Forget(quota string) {
	m.ledgers.forget(quota)
	m.owners.forget(quota)
	m.would.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	m.drift.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	m.unmatched.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
}
