// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// ledgers counts what happens to each quota's ledger.
type ledgers struct {
	commits, conflicts, failures, impossible, ended, lost *prometheus.CounterVec

	// mu guards known.
	mu sync.Mutex
	// quota name -> its counters
	known map[string]*ledgerCounters
}

// ledgerCounters are those of one ledger. All of them are there from its first
// write on: a counter that comes up at one never shows that it rose.
type ledgerCounters struct {
	commits, conflicts, failures, impossible prometheus.Counter
	// settled, expired and released count how reservations ended.
	settled, expired, released prometheus.Counter
	// deleted and edited count how the ledger was lost.
	deleted, edited prometheus.Counter
}

func newLedgers(c *catalogue) *ledgers {
	return &ledgers{
		commits: c.counter("ledger", "commits_total", "Writes of a ledger.", labelQuota),
		conflicts: c.counter("ledger", "conflicts_total",
			"Writes of a ledger that met a newer one and were judged again.", labelQuota),
		impossible: c.counter("ledger", "impossible_events_total",
			"Events that cannot happen, such as a ledger that goes back to an older version. They were ignored. "+
				"A quota that is deleted and created again at once may add a few. "+
				"More is a defect, or a store that was restored from a backup.", labelQuota),
		failures: c.counter("ledger", "failures_total", "Reads and writes of a ledger that failed.", labelQuota),
		ended: c.counter("ledger", "reservations_ended_total",
			"Reservations that ended, by end: the object was observed (settled), never came (expired), "+
				"or its request was refused or given up (released).", labelQuota, labelEnd),
		lost: c.counter("ledger", "lost_total",
			"Ledgers that somebody else than the operator deleted or edited, and that were rebuilt.", labelQuota, labelHow),
		known: map[string]*ledgerCounters{},
	}
}

func (l *ledgers) of(quota string) *ledgerCounters {
	l.mu.Lock()
	defer l.mu.Unlock()
	counters, known := l.known[quota]
	if !known {
		counters = &ledgerCounters{
			commits:    l.commits.WithLabelValues(quota),
			conflicts:  l.conflicts.WithLabelValues(quota),
			failures:   l.failures.WithLabelValues(quota),
			impossible: l.impossible.WithLabelValues(quota),
			settled:    l.ended.WithLabelValues(quota, "settled"),
			expired:    l.ended.WithLabelValues(quota, "expired"),
			released:   l.ended.WithLabelValues(quota, "released"),
			deleted:    l.lost.WithLabelValues(quota, string(Deleted)),
			edited:     l.lost.WithLabelValues(quota, string(Edited)),
		}
		l.known[quota] = counters
	}
	return counters
}

func (l *ledgers) forget(quota string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, quota)
	for _, vec := range []*prometheus.CounterVec{l.commits, l.conflicts, l.failures, l.impossible, l.ended, l.lost} {
		vec.DeletePartialMatch(prometheus.Labels{labelQuota: quota})
	}
}
