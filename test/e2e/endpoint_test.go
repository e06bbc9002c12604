// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("The webhook's endpoint", func() {
	// review returns the body of a request about a pod of a team that is limited.
	review := func(namespace, object string) string {
		request := &admissionv1.AdmissionRequest{
			UID: "11111111-2222-3333-4444-555555555555", Operation: admissionv1.Create, Namespace: namespace,
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object:   runtime.RawExtension{Raw: []byte(object)},
		}
		body, err := json.Marshal(&admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
		})
		Expect(err).NotTo(HaveOccurred())
		return string(body)
	}
	// Outcomes of the operator's metric.
	const (
		undecodable = "undecodable"
		failed      = "failed"
	)
	const (
		noObject = `null`
		pod      = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p1","uid":"u1"},"spec":{}}`
	)

	DescribeTable("refuses what it can't read, counts it, and goes on",
		func(ctx SpecContext, outcome string, body func(namespace string) string) {
			team := newTeam()
			quota := enforce(ctx, team.quota().Hard("pods", "1"))
			namespace := team.namespace(ctx)
			before := answered(ctx, outcome)

			answer := post(ctx, "/admit-objects", body(namespace))
			Expect(answer).To(HaveField("Allowed", BeFalse()))
			Expect(answer.Result.Message).NotTo(BeEmpty())
			Expect(answered(ctx, outcome)).To(Equal(before + 1))

			mustCreate(ctx, builders.Pod(namespace, "p1").Obj())
			Expect(api.Create(ctx, builders.Pod(namespace, "p2").Obj())).To(BeRefused(exceeded(quota.Name, "pods", "1", "1", "1")))
			eventuallyUses(ctx, quota, "pods=1")
		},
		Entry("nothing", undecodable, func(string) string { return "" }),
		Entry("a review without a request", undecodable, func(string) string { return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}` }),
		Entry("a review without an object", undecodable, func(namespace string) string { return review(namespace, noObject) }),
		Entry("a pod that isn't one", undecodable, func(namespace string) string {
			return review(namespace, `{"apiVersion":"v1","kind":"Pod","spec":{"containers":"many"}}`)
		}),
		Entry("an object of another version", undecodable, func(namespace string) string {
			return review(namespace, strings.Replace(pod, `"v1"`, `"v9"`, 1))
		}),
		Entry("a pod without a UID", failed, func(namespace string) string {
			return review(namespace, strings.Replace(pod, `,"uid":"u1"`, "", 1))
		}),
	)

	DescribeTable("of quotas refuses what it can't read",
		func(ctx SpecContext, body string) {
			Expect(post(ctx, "/validate-quotas", body)).To(HaveField("Allowed", BeFalse()))
		},
		Entry("nothing", ""),
	)
})

// anyCertificate is for the operator's own, which only the API server knows.
var anyCertificate = &http.Client{
	Timeout:   deadline,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

// post sends a body to the webhook, past the API server, and returns the answer.
func post(ctx SpecContext, path, body string) *admissionv1.AdmissionResponse {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, running.WebhookURL+"/"+suite.CallersToken(ctx, api)+path, bytes.NewBufferString(body))
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Content-Type", "application/json")
	response, err := anyCertificate.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	review := &admissionv1.AdmissionReview{}
	Expect(json.NewDecoder(response.Body).Decode(review)).To(Succeed())
	Expect(review.Response).NotTo(BeNil())
	return review.Response
}

// answered returns how many requests the operator has answered in one way.
func answered(ctx SpecContext, outcome string) int {
	GinkgoHelper()
	return int(scrape(ctx).value("sharedquota_admission_requests_total", "outcome", outcome))
}
