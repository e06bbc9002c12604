// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"

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

// webhooks is what the paths begin with at which the API server asks about objects.
const webhooks = "/admit-objects"

// attackable has new replicas run, with a quota that has one namespace of its name, and returns the one that is attacked.
func attackable(ctx context.Context, name string, args ...string) *harness.Operator {
	GinkgoHelper()
	end(ctx)
	run(ctx, args...)
	mustCreate(ctx, builders.Namespace(name).Label("team", name).Obj())
	enforced(ctx, builders.Quota(name).Label("team", name).Hard("count/configmaps", "100k"))
	return replicas.Running[0]
}

// at is the address of a replica's webhooks.
func at(replica *harness.Operator) string {
	return net.JoinHostPort(replica.Address, "9443")
}

// forged is a review that reserves a place in a namespace for an object of which the API
// server knows nothing.
func forged(namespace string) []byte {
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
func post(ctx context.Context, to *harness.Operator, path string, body []byte, certificates ...tls.Certificate) (status int, allowed bool, err error) {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+at(to)+path, bytes.NewReader(body))
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

// reserved is how many reservations a quota's ledger holds.
func reserved(ctx context.Context, quota string) int {
	GinkgoHelper()
	ledger := &quotav1.QuotaLedger{}
	Expect(admin.Get(ctx, client.ObjectKey{Name: quota}, ledger)).To(Succeed())
	return len(ledger.Entries.Reservations)
}

// gauge is the value of a metric of a replica.
func gauge(ctx context.Context, of *harness.Operator, name string) float64 {
	GinkgoHelper()
	families := suite.Scrape(ctx, scraper, of)
	Expect(families).To(HaveKey(name))
	metric := families[name].GetMetric()[0]
	return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
}
