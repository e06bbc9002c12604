// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// post sends a body as the API server does.
func (s *served) post(t *testing.T, url string, body io.Reader) *admissionv1.AdmissionResponse {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	request.Header.Set("Content-Type", "application/json")
	return s.send(t, request)
}

func (s *served) send(t *testing.T, request *http.Request) *admissionv1.AdmissionResponse {
	t.Helper()
	recorder := httptest.NewRecorder()
	NewEndpoint(s.handler).ServeHTTP(recorder, request)
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil || review.Response == nil {
		t.Fatalf("want an AdmissionReview with a response, got %q, error %v", recorder.Body, err)
	}
	return review.Response
}

func TestAReviewIsAnswered(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "1")), func(t *testing.T, served *served) {
		got := served.post(t, Path+"?timeout=10s", strings.NewReader(reviewOf(t, creation())))
		if !got.Allowed || got.UID != "request" {
			t.Errorf("got %+v, want request allowed", got)
		}
		if diff := cmp.Diff(map[outcomes.Outcome]int{outcomes.Allowed: 1}, served.told.answers()); diff != "" {
			t.Errorf("outcomes (-want,+got):\n%s", diff)
		}
	})
}

func TestAPanicIsARefusal(t *testing.T) {
	panics := admission.HandlerFunc(func(context.Context, admission.Request) admission.Response { panic("broken") })
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(reviewOf(t, creation())))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	direct{&admission.Webhook{Handler: panics}}.ServeHTTP(recorder, request)
	review := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &review); err != nil {
		t.Fatalf("reading %q: %v", recorder.Body, err)
	}
	if got := review.Response; got.Allowed || got.UID != "request" || !strings.Contains(got.Result.Message, "broken") {
		t.Errorf("got %+v, want request refused, and why", got)
	}
}

func TestAReviewOfTheOldVersionIsAnsweredInIt(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "0")), func(t *testing.T, served *served) {
		old := strings.Replace(reviewOf(t, creation()), "admission.k8s.io/v1", "admission.k8s.io/v1beta1", 1)
		if got := served.post(t, Path, strings.NewReader(old)); got.Allowed || got.UID != "request" {
			t.Errorf("got %+v, want request denied", got)
		}
	})
}

func TestAnUndecodableRequestIsRefusedAndCounted(t *testing.T) {
	for name, body := range map[string]string{
		"nothing":                       "",
		"garbage":                       "garbage",
		"half a review":                 `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"re`,
		"a list":                        `[]`,
		"null":                          `null`,
		"an empty object":               `{}`,
		"a review without a request":    `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`,
		"a review of no request":        `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}`,
		"a review of an empty request":  `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}}`,
		"a review of a number":          `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":7}`,
		"a review of a version to come": `{"apiVersion":"admission.k8s.io/v7","kind":"AdmissionReview","request":{"uid":"x"}}`,
		"another kind":                  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}`,
		"a review about an object it lacks": `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":` +
			`{"uid":"x","operation":"CREATE","kind":{"version":"v1","kind":"Pod"},"resource":{"version":"v1","resource":"pods"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", "1")), func(t *testing.T, served *served) {
				got := served.post(t, Path, strings.NewReader(body))
				requireBadRequest(t, got)
				if diff := cmp.Diff(map[outcomes.Outcome]int{outcomes.Undecodable: 1}, served.told.answers()); diff != "" {
					t.Errorf("outcomes (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

func requireBadRequest(t *testing.T, got *admissionv1.AdmissionResponse) {
	t.Helper()
	if got.Allowed || got.Result == nil || got.Result.Code != http.StatusBadRequest || got.Result.Message == "" {
		t.Errorf("got %+v, want a bad request and why", got)
	}
}

func TestABodyThatIsNoReviewIsRefusedAndCounted(t *testing.T) {
	serve(t, nil, func(t *testing.T, served *served) {
		plain := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(reviewOf(t, creation())))
		plain.Header.Set("Content-Type", "text/plain")
		requireBadRequest(t, served.send(t, plain))
		requireBadRequest(t, served.send(t, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path, http.NoBody)))
		huge := served.post(t, Path, bytes.NewReader(make([]byte, 8<<20)))
		if huge.Allowed || huge.Result.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("got %+v, want it too large", huge)
		}
		if diff := cmp.Diff(map[outcomes.Outcome]int{outcomes.Undecodable: 3}, served.told.answers()); diff != "" {
			t.Errorf("outcomes (-want,+got):\n%s", diff)
		}
	})
}

func TestTheURLSaysHowLongToWork(t *testing.T) {
	for name, test := range map[string]struct {
		url  string
		want time.Duration
	}{
		"as the API server does":                            {url: Path + "?timeout=7s", want: 7 * time.Second},
		"never more than the default":                       {url: Path + "?timeout=30s", want: webhookconfig.Timeout},
		"in any unit":                                       {url: Path + "?timeout=1500ms", want: 1500 * time.Millisecond},
		"nothing is the default":                            {url: Path, want: webhookconfig.Timeout},
		"an empty time is the default":                      {url: Path + "?timeout=", want: webhookconfig.Timeout},
		"a text that isn't a time is the default":           {url: Path + "?timeout=soon", want: webhookconfig.Timeout},
		"a time that leaves none to work in is the default": {url: Path + "?timeout=500ms", want: webhookconfig.Timeout},
		"a negative time is the default":                    {url: Path + "?timeout=-5s", want: webhookconfig.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, test.url, http.NoBody)
			if got := timeoutOf(request); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestThePathSaysWhatTheEntryWasMadeFor(t *testing.T) {
	exact := webhookconfig.Question{Witness: webhookconfig.WitnessExact, Quotas: "0123456789abcdef", Epoch: 4711, Specs: "fedcba9876543210"}
	for name, test := range map[string]struct {
		path string
		want webhookconfig.Question
	}{
		"an exact entry":          {path: Path + "/" + exact.Path(), want: exact},
		"no question":             {path: Path, want: webhookconfig.Question{Witness: webhookconfig.WitnessNone}},
		"an empty question":       {path: Path + "/", want: webhookconfig.Question{Witness: webhookconfig.WitnessNone}},
		"an unreadable question":  {path: Path + "/exact/soon", want: webhookconfig.Question{Witness: webhookconfig.WitnessNone}},
		"a later release's entry": {path: Path + "/" + exact.Path() + "/more/of/it", want: webhookconfig.Question{Witness: webhookconfig.WitnessNone}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, questionIn(test.path)); diff != "" {
				t.Errorf("question (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAnAnswerComesBeforeTheCallerGivesUp(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "1")), func(t *testing.T, served *served) {
		served.store.stuck = true
		began := now()
		got := served.post(t, Path+"?timeout=2s", strings.NewReader(reviewOf(t, creation())))
		if got.Allowed || got.Result.Code != http.StatusGatewayTimeout {
			t.Errorf("got %+v, want a timeout", got)
		}
		if took := now().Sub(began); took != 1500*time.Millisecond {
			t.Errorf("took %s, want 1.5s", took)
		}
	})
}

// The API server is silent from the start, and so is the store.
func TestARequestIsRefusedOnceContactIsLost(t *testing.T) {
	const words = "the replica replica-1 has had no answer from the API server for 5s, so it can't tell what quotas allow: " +
		"try again in a moment"
	serve(t, quotas(quotaOf("team", "pods", "1")), func(t *testing.T, served *served) {
		silent := apiserver.NewContact(clock.RealClock{}, "replica-1")
		served.handler.Contact, served.store.stuck = silent, true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() {
			apiserver.NewMonitor(silent, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }).Run(ctx)
		}()
		for _, took := range []time.Duration{5 * time.Second, 0} {
			began := now()
			got := served.post(t, Path+"?timeout=10s", strings.NewReader(reviewOf(t, creation())))
			if got.Allowed || got.Result.Code != http.StatusServiceUnavailable || got.Result.Message != words {
				t.Errorf("got %+v, want 503, %s", got, words)
			}
			if waited := now().Sub(began); waited != took {
				t.Errorf("took %s, want %s", waited, took)
			}
		}
		if diff := cmp.Diff(map[outcomes.Outcome]int{outcomes.Failed: 2}, served.told.answers()); diff != "" {
			t.Errorf("outcomes (-want,+got):\n%s", diff)
		}
	})
}

// Every body gets an answer, and nothing is allowed that wasn't understood: every body is counted once.
func FuzzEndpoint(f *testing.F) {
	for _, request := range []*admissionv1.AdmissionRequest{creation(), resize(), widget(), dryRun(creation())} {
		body, err := json.Marshal(admissionv1.AdmissionReview{Request: request})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Replace(body, []byte("{"), []byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`), 1))
	}
	f.Add([]byte(""))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","resource":{"resource":"pods"},"object":{}}}`))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"x","resource":{"resource":"pods"},` +
		`"namespace":"shop","operation":"UPDATE","object":{"kind":"Pod","apiVersion":"v1"},"oldObject":{"kind":"Pod","apiVersion":"v1"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		serve(t, quotas(quotaOf("team", "pods", "0", "requests.cpu", "0", "count/widgets.example.com", "0")),
			func(t *testing.T, served *served) {
				got := served.post(t, Path, bytes.NewReader(body))
				answers := served.told.answers()
				if got.Allowed != (answers[outcomes.Allowed] == 1) {
					t.Errorf("allowed is %v, counted as %v", got.Allowed, answers)
				}
				total := 0
				for _, count := range answers {
					total += count
				}
				if total != 1 {
					t.Errorf("counted %v times: %v", total, answers)
				}
			})
	})
}
