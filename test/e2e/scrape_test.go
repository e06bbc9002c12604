// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// Tokens of ServiceAccounts, of which one may read metrics.
var mayScrape, mayNotScrape string

// createScrapers makes two ServiceAccounts, and binds one to the role that is
// installed for the purpose.
func createScrapers(ctx context.Context) {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(suite.RepositoryRoot(), "config", "rbac", "metrics_reader_role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	reader := &rbacv1.ClusterRole{}
	Expect(yaml.UnmarshalStrict(text, reader)).To(Succeed())
	mustCreate(ctx, reader)
	mustCreate(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "scraper"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: reader.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: "scraper"}},
	})
	mayScrape, mayNotScrape = tokenOf(ctx, "scraper"), tokenOf(ctx, "stranger")
}

// tokenOf makes a ServiceAccount, and returns a token of it.
func tokenOf(ctx context.Context, name string) string {
	GinkgoHelper()
	account := mustCreate(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}})
	request := &authenticationv1.TokenRequest{}
	Expect(api.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// clientTrusting makes a client that trusts only who signed the certificates in PEM.
func clientTrusting(authorities []byte) *http.Client {
	GinkgoHelper()
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM(authorities)).To(BeTrue())
	return &http.Client{Timeout: deadline, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// getMetrics asks the endpoint, and returns its answer's status and body.
func getMetrics(ctx context.Context, as *http.Client, token string) (status int, body []byte) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+metricsAddress+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := as.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, body
}

// scraped is what the endpoint answered.
type scraped struct {
	text     []byte
	families map[string]*dto.MetricFamily
}

func scrape(ctx context.Context) scraped {
	GinkgoHelper()
	status, text := getMetrics(ctx, anyCertificate, mayScrape)
	Expect(status).To(Equal(http.StatusOK), string(text))
	return parseMetrics(text)
}

// scrapeAPIServer reads the API server's own metrics.
func scrapeAPIServer(ctx context.Context) scraped {
	GinkgoHelper()
	raw, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	Expect(err).NotTo(HaveOccurred())
	text, err := raw.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	return parseMetrics(text)
}

func parseMetrics(text []byte) scraped {
	GinkgoHelper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	Expect(err).NotTo(HaveOccurred())
	return scraped{text: text, families: families}
}

// names of the operator's own metrics.
func (s scraped) names() []string {
	var names []string
	for name := range s.families {
		if strings.HasPrefix(name, "sharedquota_") {
			names = append(names, name)
		}
	}
	return names
}

// of returns which metrics have a series with a label of this value.
func (s scraped) of(value string) []string {
	var names []string
	for name, family := range s.families {
		if slices.ContainsFunc(family.GetMetric(), func(metric *dto.Metric) bool {
			return slices.ContainsFunc(metric.GetLabel(), func(label *dto.LabelPair) bool { return label.GetValue() == value })
		}) {
			names = append(names, name)
		}
	}
	return names
}

// value of a counter or gauge. Labels are names, each followed by its value; all
// must be given.
func (s scraped) value(name string, labels ...string) float64 {
	GinkgoHelper()
	metric := s.metric(name, labels)
	return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
}

func (s scraped) histogram(name string, labels ...string) *dto.Histogram {
	GinkgoHelper()
	return s.metric(name, labels).GetHistogram()
}

// sum of the series of a counter or a gauge that have these labels, and maybe others.
func (s scraped) sum(name string, labels ...string) float64 {
	total := 0.0
	for _, metric := range s.families[name].GetMetric() {
		if has(metric, labels) {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return total
}

func has(metric *dto.Metric, labels []string) bool {
	values := map[string]string{}
	for _, label := range metric.GetLabel() {
		values[label.GetName()] = label.GetValue()
	}
	for i := 0; i < len(labels); i += 2 {
		if values[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

func (s scraped) metric(name string, labels []string) *dto.Metric {
	GinkgoHelper()
	for _, metric := range s.families[name].GetMetric() {
		if len(metric.GetLabel()) == len(labels)/2 && has(metric, labels) {
			return metric
		}
	}
	Fail("there is no " + name + " with " + strings.Join(labels, " "))
	return nil
}

func without(all []string, excepted ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(excepted, one) })
}
