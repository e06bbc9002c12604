// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","dryRun":true}}`

func TestAProbeIsAnsweredWithTheEditionThatIsAskedAbout(t *testing.T) {
	edition := webhookconfig.Edition{Generation: 12, Mark: "0123456789abcdef"}
	for name, test := range map[string]struct {
		path     string
		warnings []string
		refused  bool
	}{
		"an edition":     {path: "/probe/12-0123456789abcdef", warnings: []string{edition.Warning()}},
		"none":           {path: "/probe/", refused: true},
		"something else": {path: "/probe/hello", refused: true},
		"more":           {path: "/probe/12-0123456789abcdef/more", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "https://localhost"+test.path, strings.NewReader(review))
			request.Header.Set("Content-Type", "application/json")
			recorder := httptest.NewRecorder()
			newProbe().ServeHTTP(recorder, request)
			answer := &admissionv1.AdmissionReview{}
			if err := json.Unmarshal(recorder.Body.Bytes(), answer); err != nil {
				t.Fatalf("reading %s: %v", recorder.Body, err)
			}
			if answer.Response.Allowed == test.refused || answer.Response.UID != "u" {
				t.Errorf("got %+v, want it refused: %t", answer.Response, test.refused)
			}
			if diff := cmp.Diff(test.warnings, answer.Response.Warnings); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
		})
	}
}
