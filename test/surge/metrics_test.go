// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package surge

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	dto "github.com/prometheus/client_model/go"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// figures are those of a place's surge in the metrics.
func (p place) figures(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	figures := map[string]float64{}
	each(ctx, func(name string, series *dto.Metric) {
		if labelled(series, "quota", p.name) && (name == "sharedquota_quota_surge" || labelled(series, "workload", "Deployment "+p.name+"/broken")) {
			figures[name] = series.GetGauge().GetValue()
		}
	})
	return figures
}

// looked returns how many looks had an outcome, over all replicas.
func looked(ctx context.Context, outcome string) (sum float64) {
	GinkgoHelper()
	each(ctx, func(name string, series *dto.Metric) {
		if name == "sharedquota_admission_replacement_lookups_total" && labelled(series, "outcome", outcome) {
			sum += series.GetCounter().GetValue()
		}
	})
	return sum
}

// each calls visit with the series of all replicas.
func each(ctx context.Context, visit func(name string, series *dto.Metric)) {
	GinkgoHelper()
	for _, replica := range replicas.Running {
		for name, family := range suite.Scrape(ctx, scraper, replica) {
			for _, series := range family.GetMetric() {
				visit(name, series)
			}
		}
	}
}

func labelled(series *dto.Metric, name, value string) bool {
	for _, label := range series.GetLabel() {
		if label.GetName() == name && label.GetValue() == value {
			return true
		}
	}
	return false
}
