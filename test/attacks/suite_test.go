// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// What is attacked: a quota and its one namespace.
const (
	quota     = "team"
	namespace = "team-web"
	hard      = "100k"
	webhooks  = "/admit-objects"
)

func TestMain(m *testing.M) {
	os.Exit(harness.InNamespace(m.Run))
}

func TestAttacks(t *testing.T) {
	suite.Run(t, "Attacks", suite.BuildTimeout+10*time.Minute)
}

// target is a cluster with the operator.
type target struct {
	cluster  *harness.Cluster
	admin    client.Client
	operator *harness.Production
	replicas []*harness.Operator
	// binary and args are those of each replica.
	binary string
	args   []string
	// scraper is the token of a ServiceAccount that may read metrics.
	scraper string
}

// install starts a cluster with two replicas, which are given further arguments, and with
// the quota.
func install(ctx context.Context, options harness.Options, addresses []int, args ...string) *target {
	GinkgoHelper()
	built := suite.Async(ctx, suite.Operator)
	options.CRDDirs, options.Production = []string{}, true
	t := &target{}
	var err error
	t.cluster, err = harness.Start(ctx, options)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(t.stop)
	t.admin = suite.Client(t.cluster.Config(), suite.Deadline)
	t.operator = suite.StartProduction(ctx, t.cluster)
	t.scraper = suite.Scraper(ctx, t.cluster)
	t.binary, t.args = <-built, args
	for _, address := range addresses {
		t.replicas = append(t.replicas, t.start(ctx, harness.Address(address)))
	}
	Eventually(t.operator.Ready).Should(ConsistOf(t.replicas))
	Expect(t.admin.Create(ctx, builders.Namespace(namespace).Label("team", quota).Obj())).To(Succeed())
	limits := builders.Quota(quota).Label("team", quota).Hard("count/configmaps", hard).Obj()
	// The API server hears of the Service's endpoints a moment after they are stored.
	Eventually(ctx, func(ctx context.Context) error { return t.admin.Create(ctx, limits) }).Should(Succeed())
	suite.WaitUntilEnforced(ctx, t.admin, quota)
	return t
}

func (t *target) start(ctx context.Context, address string) *harness.Operator {
	GinkgoHelper()
	replica, err := t.operator.Start(ctx, harness.ReplicaOptions{Binary: t.binary, Address: address, Args: t.args})
	Expect(err).NotTo(HaveOccurred())
	return replica
}

// restart ends a replica, and starts another one at its address.
func (t *target) restart(ctx context.Context, replica int) {
	GinkgoHelper()
	Expect(t.operator.Stop(t.replicas[replica])).To(Succeed())
	t.replicas[replica] = t.start(ctx, t.replicas[replica].Address)
	Eventually(t.operator.Ready).Should(ConsistOf(t.replicas))
}

func (t *target) stop() {
	for _, replica := range t.replicas {
		Expect(t.operator.Stop(replica)).To(Succeed())
	}
	if t.operator != nil {
		t.operator.Close()
	}
	suite.CheckOperatorLogs(t.cluster)
	Expect(t.cluster.Stop()).To(Succeed())
}

// at is the address of a replica's webhooks.
func (t *target) at(replica int) string {
	return net.JoinHostPort(t.replicas[replica].Address, "9443")
}

// forged is a review that reserves a place for an object of which the API server knows
// nothing.
func forged() []byte {
	GinkgoHelper()
	uid := uuid.NewUUID()
	object, err := json.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forged-" + string(uid), UID: uid},
	})
	Expect(err).NotTo(HaveOccurred())
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: uuid.NewUUID(), Namespace: namespace, Name: "forged-" + string(uid), Operation: admissionv1.Create,
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "configmaps"},
			Object:   runtime.RawExtension{Raw: object},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	return body
}

// post sends a body to a replica as a pod of the cluster might, and returns the status and
// whether the review was allowed.
func (t *target) post(ctx context.Context, path string, body []byte, certificates ...tls.Certificate) (status int, allowed bool, err error) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+t.at(0)+path, bytes.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	calling := &http.Client{Timeout: suite.Deadline, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates},
	}}
	response, err := calling.Do(request)
	if err != nil {
		return 0, false, err
	}
	defer response.Body.Close()
	review := &admissionv1.AdmissionReview{}
	decoded := json.NewDecoder(response.Body).Decode(review) == nil && review.Response != nil
	return response.StatusCode, decoded && review.Response.Allowed, nil
}

// reserved is how many reservations the quota's ledger holds.
func (t *target) reserved(ctx context.Context) int {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(t.admin.Get(ctx, client.ObjectKey{Name: quota}, ledger)).To(Succeed())
	return len(ledger.Entries.Reservations)
}

// gauge is the value of a metric of the attacked replica.
func (t *target) gauge(ctx context.Context, name string) float64 {
	GinkgoHelper()
	families := suite.Scrape(ctx, t.scraper, t.replicas[0])
	Expect(families).To(HaveKey(name))
	metric := families[name].GetMetric()[0]
	return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
}
