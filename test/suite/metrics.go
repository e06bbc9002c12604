// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// Scraper makes a ServiceAccount that may read the metrics, and returns its token.
func Scraper(ctx context.Context, cluster *harness.Cluster) string {
	GinkgoHelper()
	Kubectl(ctx, cluster, "create", "serviceaccount", "scraper")
	Kubectl(ctx, cluster, "create", "clusterrolebinding", "scraper",
		"--clusterrole=shared-quota-metrics-reader", "--serviceaccount=default:scraper")
	return Kubectl(ctx, cluster, "create", "token", "scraper")
}

// Scrape returns a replica's metrics, as a Scraper reads them.
func Scrape(ctx context.Context, scraper string, replica *harness.Operator) map[string]*dto.MetricFamily {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(replica.Address, "8443")+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+scraper)
	// The certificate is for the Service's name, and not what matters here.
	scraping := &http.Client{Timeout: Deadline, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := scraping.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return families
}
