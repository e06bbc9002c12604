// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Type is what Prometheus calls a metric's type.
type Type string

const (
	// Counter: it only rises, or begins again at zero with the process.
	Counter Type = "counter"
	// Gauge: it rises and falls.
	Gauge Type = "gauge"
	// Histogram: how often something was at most as large as each of its buckets.
	Histogram Type = "histogram"
)

// Entry is one metric that is exported.
type Entry struct {
	Name   string
	Type   Type
	Labels []string
	// Help is what the endpoint itself says of the metric.
	Help string
}

// catalogue makes the metrics and registers them, so that nothing is exported that
// it doesn't list.
type catalogue struct {
	registerer prometheus.Registerer
	entries    []Entry
}

func (c *catalogue) add(kind Type, subsystem, name, help string, labels []string) string {
	full := prometheus.BuildFQName(namespace, subsystem, name)
	c.entries = append(c.entries, Entry{Name: full, Type: kind, Labels: labels, Help: help})
	return full
}

func (c *catalogue) counter(subsystem, name, help string, labels ...string) *prometheus.CounterVec {
	full := c.add(Counter, subsystem, name, help, labels)
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: full, Help: help}, labels)
	c.registerer.MustRegister(vec)
	return vec
}

func (c *catalogue) gauge(subsystem, name, help string) prometheus.Gauge {
	full := c.add(Gauge, subsystem, name, help, nil)
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: full, Help: help})
	c.registerer.MustRegister(gauge)
	return gauge
}

// measured is a gauge that is read at each scrape.
func (c *catalogue) measured(subsystem, name, help string, value func() float64) {
	full := c.add(Gauge, subsystem, name, help, nil)
	c.registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: full, Help: help}, value))
}

func (c *catalogue) histogram(subsystem, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	full := c.add(Histogram, subsystem, name, help, labels)
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: full, Help: help, Buckets: buckets}, labels)
	c.registerer.MustRegister(vec)
	return vec
}

// described lists a gauge that a collector makes at each scrape.
func (c *catalogue) described(subsystem, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(c.add(Gauge, subsystem, name, help, labels), help, labels, nil)
}
