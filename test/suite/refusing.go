// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// Refusing is the name of a webhook of the tests that refuses every pod. The API server asks
// it beside the operator, so that the operator holds room for what is never stored.
const Refusing = "refuses-all.example.com"

// RefuseAll has every pod in a namespace refused, until the spec has ended.
func RefuseAll(ctx context.Context, api client.Client, namespace string) {
	GinkgoHelper()
	askBeside(ctx, api, namespace, Refusing, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "no pods here"}}
	})
	Eventually(ctx, func(ctx context.Context) error {
		return api.Create(ctx, builders.Pod(namespace, "probe").Request("cpu", "1m").Obj(), client.DryRunAll)
	}).WithTimeout(Deadline).Should(MatchError(ContainSubstring(Refusing)), "the API server loads a configuration a moment later")
}

// SlowDown has another webhook take so long with every pod in a namespace that is no dry run, until the spec has ended.
func SlowDown(ctx context.Context, api client.Client, namespace string, takes time.Duration) {
	GinkgoHelper()
	asked := make(chan struct{}, 1)
	askBeside(ctx, api, namespace, "slow.example.com", func(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		if ptr.Deref(request.DryRun, false) {
			select {
			case asked <- struct{}{}:
			default:
			}
		} else {
			clock.RealClock{}.Sleep(takes)
		}
		return &admissionv1.AdmissionResponse{Allowed: true}
	})
	Eventually(ctx, func(ctx context.Context) <-chan struct{} {
		_ = api.Create(ctx, builders.Pod(namespace, "probe").Request("cpu", "1m").Obj(), client.DryRunAll) // refused or not
		return asked
	}).WithTimeout(Deadline).Should(Receive(), "the API server loads a configuration a moment later")
}

// askBeside has the API server ask a webhook beside the operator about every pod in a namespace.
func askBeside(
	ctx context.Context, api client.Client, namespace, name string,
	answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse,
) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(request.Body).Decode(review); err != nil {
			http.Error(writer, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID, review.Request = review.Request.UID, nil
		writer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(writer).Encode(review) // the API server notices
	}))
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + namespace},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	Expect(api.Create(ctx, configuration)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, configuration))).To(Succeed())
		server.Close()
	})
}
