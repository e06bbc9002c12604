// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// sighting is an object as a webhook saw it.
type sighting struct {
	name string
	uid  types.UID
}

// recorder is a validating webhook of the suite's own. It allows everything,
// remembers what it saw, and can hold a request on its way to storage.
type recorder struct {
	server        *httptest.Server
	configuration *admissionregistrationv1.ValidatingWebhookConfiguration

	// mu guards what follows.
	mu   sync.Mutex
	seen []sighting
	// dryRuns is how many dry-run requests were seen.
	dryRuns int
	// gate holds requests until it is closed; nil lets them pass.
	gate chan struct{}
	// holding receives what is held.
	holding chan sighting
}

// startRecorder registers a recorder for what is created in the team's namespaces.
func startRecorder(ctx context.Context, team *team) *recorder {
	GinkgoHelper()
	r := &recorder{holding: make(chan sighting, 10)}
	r.server = httptest.NewTLSServer(r)
	DeferCleanup(r.server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	r.configuration = &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: unique("recorder")},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "recorder.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &r.server.URL, CABundle: certificate},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"", widget.Group}, APIVersions: []string{"*"}, Resources: []string{"pods", "widgets"},
				},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{teamLabel: team.name}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          ptr.To[int32](30),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}
	mustCreate(ctx, r.configuration)
	DeferCleanup(r.stop)
	return r
}

// stop takes the webhook back. Stopping it again does nothing. The API server may ask it for a
// moment longer, so that it answers until the spec has ended.
func (r *recorder) stop(ctx context.Context) {
	GinkgoHelper()
	r.release()
	deleteIfThere(ctx, r.configuration)
}

// waitUntilAsked returns once the API server asks the webhook: it loads a new
// configuration a moment after it was written.
func (r *recorder) waitUntilAsked(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) int {
		Expect(api.Create(ctx, builders.Pod(namespace, "probe").Obj(), client.DryRunAll)).To(Succeed())
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.dryRuns
	}).Should(BeNumerically(">", 0))
}

// hold keeps what is created from now on, until release.
func (r *recorder) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gate = make(chan struct{})
}

// waitUntilHolding returns what is held, once something is.
func (r *recorder) waitUntilHolding(ctx context.Context) sighting {
	GinkgoHelper()
	var held sighting
	Eventually(ctx, r.holding).Should(Receive(&held))
	return held
}

// release lets go of what is held.
func (r *recorder) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gate != nil {
		close(r.gate)
		r.gate = nil
	}
}

// sightings returns what was seen under a name, dry runs left out.
func (r *recorder) sightings(name string) []sighting {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []sighting
	for _, seen := range r.seen {
		if seen.name == name {
			found = append(found, seen)
		}
	}
	return found
}

// ServeHTTP implements http.Handler.
func (r *recorder) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	review := &admissionv1.AdmissionReview{}
	object := &metav1.PartialObjectMetadata{}
	err := json.NewDecoder(request.Body).Decode(review)
	if err == nil {
		err = json.Unmarshal(review.Request.Object.Raw, object)
	}
	if err != nil {
		http.Error(writer, err.Error(), http.StatusBadRequest)
		return
	}
	if gate := r.record(sighting{name: object.Name, uid: object.UID}, ptr.Deref(review.Request.DryRun, false)); gate != nil {
		<-gate
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	answer, err := json.Marshal(review)
	if err != nil {
		http.Error(writer, err.Error(), http.StatusInternalServerError)
		return
	}
	writer.Header().Set("Content-Type", "application/json")
	_, _ = writer.Write(answer) // The API server notices.
}

// record returns the gate that the request has to wait at, if there is one.
func (r *recorder) record(seen sighting, dryRun bool) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if dryRun {
		r.dryRuns++
		return nil
	}
	r.seen = append(r.seen, seen)
	if r.gate != nil {
		r.holding <- seen
	}
	return r.gate
}
