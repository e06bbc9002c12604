// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

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
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

var _ = Describe("A request on which the API server works for long", longest, func() {
	const bound, before = 34 * time.Second, 6 * time.Second

	It("stores nothing after the time on which a reservation's life rests", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "1"))
		namespace := team.namespace(ctx)
		// It is held for 30 seconds by a webhook that is then passed over, after another has
		// taken its time. So it is the bound alone that ends the request.
		recorder := startRecorder(ctx, team)
		recorder.passOver(ctx)
		recorder.waitUntilAsked(ctx, namespace)
		startSlow(ctx, team, namespace, before)
		recorder.hold()

		patient := suite.Client(cluster.Config(), 2*time.Minute)
		began := time.Now()
		err := patient.Create(ctx, builders.Pod(namespace, "late").Obj())
		took := time.Since(began)
		AddReportEntry("ended after", took.Round(time.Millisecond).String()+": "+err.Error())
		Expect(err).To(MatchError(ContainSubstring("context deadline exceeded")))
		Expect(took).To(BeNumerically("~", bound, 2*time.Second))
		Expect(reservations(ctx, quota)).To(HaveLen(1), "it is told apart from one that was never admitted")
		recorder.release()
		Consistently(ctx, func(ctx context.Context) []corev1.Pod { return podsOf(ctx, []string{namespace}) }).
			WithTimeout(3 * time.Second).Should(BeEmpty())
	})
})

// passOver has requests admitted that the recorder doesn't answer in time.
func (r *recorder) passOver(ctx context.Context) {
	GinkgoHelper()
	r.configuration.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	Expect(api.Update(ctx, r.configuration)).To(Succeed())
}

// startSlow has the API server ask another webhook before all validating ones, which takes so
// long with what isn't a dry run.
func startSlow(ctx context.Context, team *team, namespace string, takes time.Duration) {
	GinkgoHelper()
	asked := make(chan bool, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		defer GinkgoRecover()
		review := &admissionv1.AdmissionReview{}
		Expect(json.NewDecoder(request.Body).Decode(review)).To(Succeed())
		if ptr.Deref(review.Request.DryRun, false) {
			select {
			case asked <- true:
			default:
			}
		} else {
			clock.RealClock{}.Sleep(takes)
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		writer.Header().Set("Content-Type", "application/json")
		Expect(json.NewEncoder(writer).Encode(review)).To(Succeed())
	}))
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: unique("slow")},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "slow.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{teamLabel: team.name}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	mustCreate(ctx, configuration)
	DeferCleanup(func(ctx context.Context) {
		deleteIfThere(ctx, configuration)
		server.Close()
	})
	Eventually(ctx, func(ctx context.Context) <-chan bool {
		Expect(api.Create(ctx, builders.Pod(namespace, "probe").Obj(), client.DryRunAll)).To(Succeed())
		return asked
	}).Should(Receive())
}
