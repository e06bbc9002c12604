// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// ledgers counts the events of each quota's ledger.
type ledgers struct{ commits, conflicts, failures, impossible, ended, lost *prometheus.CounterVec }

// How reservations ended.
const (
	endSettled  = "settled"
	endExpired  = "expired"
	endReleased = "released"
)

func newLedgers(c *catalogue) ledgers {
	return ledgers{
		commits: c.counter("ledger", "commits_total", "Writes of a ledger.", labelQuota),
		conflicts: c.counter("ledger", "conflicts_total",
			"Writes of a ledger that met a newer one and were judged again.", labelQuota),
		impossible: c.counter("ledger", "impossible_events_total",
			"Events that cannot happen, such as a reply that nothing asked for. They were ignored. "+
				"A quota that is deleted and created again at once may add a few. "+
				"More is a defect.", labelQuota),
		failures: c.counter("ledger", "failures_total", "Reads and writes of a ledger that failed.", labelQuota),
		ended: c.counter("ledger", "reservations_ended_total",
			"Reservations that ended, by end: the object was observed (settled), never came (expired), "+
				"or its request was refused or given up (released).", labelQuota, labelEnd),
		lost: c.counter("ledger", "lost_total",
			"Ledgers that somebody other than the operator deleted, edited or restored.", labelQuota, labelHow),
	}
}

// of returns the counters with those of a quota. All of these are there from its first write on: a counter that comes up
// at one never shows that it rose.
func (l ledgers) of(quota string) ledgers {
	for _, vec := range []*prometheus.CounterVec{l.commits, l.conflicts, l.failures, l.impossible} {
		vec.WithLabelValues(quota)
	}
	for _, end := range []string{endSettled, endExpired, endReleased} {
		l.ended.WithLabelValues(quota, end)
	}
	for _, how := range []outcomes.Loss{outcomes.Deleted, outcomes.Edited, outcomes.Restored} {
		l.lost.WithLabelValues(quota, string(how))
	}
	return l
}
