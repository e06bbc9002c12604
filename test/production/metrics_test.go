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

package production

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// scraper makes a ServiceAccount that may read the metrics, and returns its token.
func scraper(ctx context.Context) string {
	GinkgoHelper()
	suite.Kubectl(ctx, cluster, "create", "serviceaccount", "scraper")
	suite.Kubectl(ctx, cluster, "create", "clusterrolebinding", "scraper",
		"--clusterrole=shared-quota-metrics-reader", "--serviceaccount=default:scraper")
	return suite.Kubectl(ctx, cluster, "create", "token", "scraper")
}

// asked tells how many admission requests a replica has answered, by its metrics.
func asked(ctx context.Context, replica *harness.Operator) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+net.JoinHostPort(replica.Address, "8443")+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Authorization", "Bearer "+mayScrape)
	// The certificate is for the Service's name, and not what matters here.
	scraping := &http.Client{Timeout: suite.Deadline, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	response, err := scraping.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	Expect(response).To(HaveHTTPStatus(http.StatusOK))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	Expect(err).NotTo(HaveOccurred())
	const name = "sharedquota_admission_requests_total"
	Expect(families).To(HaveKey(name))
	sum := 0
	for _, metric := range families[name].GetMetric() {
		sum += int(metric.GetCounter().GetValue())
	}
	return sum
}

// counts tells it of all replicas.
func counts(ctx context.Context) string {
	text := ""
	for _, replica := range replicas {
		text += fmt.Sprintf("%s: %d\n", replica.Name(), asked(ctx, replica))
	}
	return text
}
