// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package production

import (
	"bytes"
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/discovery"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// asked returns how many admission requests replicas have answered, by their metrics.
func asked(ctx context.Context, of ...*harness.Operator) int {
	GinkgoHelper()
	sum := 0
	for _, replica := range of {
		families := suite.Scrape(ctx, mayScrape, replica)
		const name = "sharedquota_admission_requests_total"
		Expect(families).To(HaveKey(name))
		for _, metric := range families[name].GetMetric() {
			sum += int(metric.GetCounter().GetValue())
		}
	}
	return sum
}

// leader returns the index of the replica that leads by its own metrics, or -1 for none.
func leader(ctx context.Context) int {
	GinkgoHelper()
	return slices.IndexFunc(replicas.Running, func(replica *harness.Operator) bool {
		for _, metric := range suite.Scrape(ctx, mayScrape, replica)["leader_election_master_status"].GetMetric() {
			if metric.GetGauge().GetValue() == 1 {
				return true
			}
		}
		return false
	})
}

// watches is how many watches of a resource the API server has under way.
func watches(ctx context.Context, resource string) int {
	GinkgoHelper()
	raw, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	text, err := raw.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	number := 0
	for _, metric := range families["apiserver_longrunning_requests"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["resource"] == resource && labels["verb"] == "WATCH" {
			number += int(metric.GetGauge().GetValue())
		}
	}
	return number
}
