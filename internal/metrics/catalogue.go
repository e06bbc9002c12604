// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// catalogue makes the metrics and registers them.
type catalogue struct {
	prometheus.Registerer

	// ofQuotas have the name of a quota as their first label.
	ofQuotas []*prometheus.CounterVec
}

func (c *catalogue) counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}, labels)
	c.MustRegister(vec)
	if len(labels) > 0 && labels[0] == labelQuota {
		c.ofQuotas = append(c.ofQuotas, vec)
	}
	return vec
}

func (c *catalogue) histogram(subsystem, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Subsystem: subsystem, Name: name, Help: help, Buckets: buckets,
	}, labels)
	c.MustRegister(vec)
	return vec
}

func gaugeOf(subsystem, name, help string) prometheus.GaugeOpts {
	return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: help}
}

// answers are the requests of one outcome.
type answers struct {
	number prometheus.Counter
	took   prometheus.Observer
}

func (a answers) count(took time.Duration) {
	a.number.Inc()
	a.took.Observe(took.Seconds())
}

// answersOf has a series of each outcome from the start on.
func answersOf[T ~string](requests *prometheus.CounterVec, duration *prometheus.HistogramVec, outcomes ...T) map[T]answers {
	all := map[T]answers{}
	for _, outcome := range outcomes {
		all[outcome] = answers{number: requests.WithLabelValues(string(outcome)), took: duration.WithLabelValues(string(outcome))}
	}
	return all
}
