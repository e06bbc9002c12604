// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

func quotas(quotas ...*quotav1.ClusterResourceQuota) []*quotav1.ClusterResourceQuota { return quotas }

func (s *served) handle(ctx context.Context, request *admissionv1.AdmissionRequest) admission.Response {
	call := Call{Start: now(), Timeout: webhookconfig.Timeout, Question: webhookconfig.Question{Witness: webhookconfig.WitnessNone}}
	return s.handler.Handle(ctx, call, request)
}

func in(namespace string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	request.Namespace = namespace
	request.Object = raw(strings.ReplaceAll(string(request.Object.Raw), `"namespace":"shop"`, `"namespace":"`+namespace+`"`))
	return request
}

// The beginning and the end of the answers to requests that can't be decided.
const (
	unread = "the operator can't read the request: "
	// lookAtReady ends a warning about a quota, and readLogIfItLasts one about all.
	lookAtReady      = "; if it lasts, ask your cluster administrator to look at the quota's condition Ready"
	readLogIfItLasts = "; if it lasts, ask your cluster administrator to read the operator's log"
	readLog          = "; ask your cluster administrator to read the operator's log"
	tryAgain         = "; try again in a moment, and if it stays so, ask your cluster administrator to read the operator's log"
)

func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		quotas  []*quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		allowed bool
		code    int32
		message string
		outcome outcomes.Outcome
	}{
		"a request that fits is allowed": {
			quotas: quotas(quotaOf("team", "pods", "1", "requests.cpu", "1")), request: creation(),
			allowed: true, code: 200, outcome: outcomes.Allowed,
		},
		"a request that doesn't fit is denied in the words of Kubernetes": {
			quotas: quotas(quotaOf("team", "pods", "1", "requests.cpu", "200m")), request: creation(),
			code: 403, outcome: outcomes.Denied,
			message: "exceeded quota: team, requested: requests.cpu=250m, used: requests.cpu=0, limited: requests.cpu=200m",
		},
		"an update is charged with its rise": {
			quotas: quotas(quotaOf("team", "requests.cpu", "149m")), request: resize(),
			code: 403, outcome: outcomes.Denied,
			message: "exceeded quota: team, requested: requests.cpu=150m, used: requests.cpu=0, limited: requests.cpu=149m",
		},
		"an object that must say more is refused": {
			quotas: quotas(quotaOf("team", "limits.cpu", "1")), request: creation(),
			code: 403, outcome: outcomes.Denied, message: "failed quota: team: must specify limits.cpu for: c",
		},
		"a namespace that no quota selects is free": {
			quotas: quotas(quotaOf("team", "pods", "0")), request: in("office", creation()),
			allowed: true, code: 200, outcome: outcomes.Allowed,
		},
		"a resource that the quota doesn't limit is free": {
			quotas: quotas(quotaOf("team", "services", "0")), request: creation(), allowed: true, code: 200, outcome: outcomes.Allowed,
		},
		"a custom resource is counted by its metadata": {
			quotas: quotas(quotaOf("team", "count/widgets.example.com", "0")), request: widget(),
			code: 403, outcome: outcomes.Denied,
			message: "exceeded quota: team, requested: count/widgets.example.com=1, used: count/widgets.example.com=0, " +
				"limited: count/widgets.example.com=0",
		},
		"a service that is sent as a pod can't be judged": {
			quotas: quotas(quotaOf("team", "pods", "1")),
			request: but(creation(), func(r *admissionv1.AdmissionRequest) {
				r.Object = raw(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","uid":"pod"}}`)
			}),
			code: 400, outcome: outcomes.Undecodable, message: unread + "reading the object: as pods: it is a Service of v1" + readLog,
		},
		"an object that has no UID can't be judged": {
			quotas: quotas(quotaOf("team", "pods", "1")),
			request: but(creation(), func(r *admissionv1.AdmissionRequest) {
				r.Object = raw(strings.Replace(string(r.Object.Raw), `,"uid":"pod"`, "", 1))
			}),
			code: 500, outcome: outcomes.Failed, message: "the object has no UID: this API server doesn't set it before admission" + tryAgain,
		},
		"an object that can't be read is a bad request": {
			quotas:  quotas(quotaOf("team", "pods", "1")),
			request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("") }),
			code:    400, outcome: outcomes.Undecodable, message: unread + "reading the object: it is missing" + readLog,
		},
		"an unknown namespace fails": {
			quotas: quotas(quotaOf("team", "pods", "1")), request: in("nowhere", creation()),
			code: 500, outcome: outcomes.Failed, message: `reading namespace nowhere: namespaces "nowhere" not found` + tryAgain,
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				got := served.handle(t.Context(), test.request)
				if got.Allowed != test.allowed || got.Result.Code != test.code || got.Result.Message != test.message {
					t.Errorf("got  %v, %d, %s\nwant %v, %d, %s",
						got.Allowed, got.Result.Code, got.Result.Message, test.allowed, test.code, test.message)
				}
				if diff := cmp.Diff(map[outcomes.Outcome]int{test.outcome: 1}, served.told.answers()); diff != "" {
					t.Errorf("outcomes (-want,+got):\n%s", diff)
				}
			})
		})
	}
}

func TestAnAllowedRequestIsReservedInEveryQuota(t *testing.T) {
	serve(t, quotas(quotaOf("cpu", "requests.cpu", "1"), quotaOf("count", "pods", "1")), func(t *testing.T, served *served) {
		if got := served.handle(t.Context(), creation()); !got.Allowed {
			t.Fatalf("refused: %s", got.Result.Message)
		}
		for quota, want := range map[string]corev1.ResourceList{"cpu": list("requests.cpu", "250m"), "count": list("pods", "1")} {
			held := served.store.reserved(quota)
			if len(held) != 1 || held[0].UID != "pod" {
				t.Fatalf("reserved in %s: got %+v, want the pod", quota, held)
			}
			if diff := cmp.Diff(want, held[0].Amounts); diff != "" {
				t.Errorf("amounts in %s (-want,+got):\n%s", quota, diff)
			}
			if want := now().Add(90 * time.Second).Truncate(time.Second); held[0].Expiry.After(want) {
				t.Errorf("expiry in %s: got %s, want at most %s", quota, held[0].Expiry, want)
			}
		}
	})
}

func TestADryRunIsJudgedAndReservesNothing(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "1")), func(t *testing.T, served *served) {
		for range 2 {
			if got := served.handle(t.Context(), dryRun(creation())); !got.Allowed {
				t.Fatalf("refused: %s", got.Result.Message)
			}
		}
		if held := served.store.reserved("team"); len(held) > 0 {
			t.Errorf("reserved: got %+v, want nothing", held)
		}
		if got := served.handle(t.Context(), creation()); !got.Allowed {
			t.Fatalf("refused: %s", got.Result.Message)
		}
		other := but(dryRun(creation()), func(r *admissionv1.AdmissionRequest) {
			r.Object = raw(strings.NewReplacer(`"uid":"pod"`, `"uid":"other"`, `"name":"web"`, `"name":"other"`).Replace(string(r.Object.Raw)))
		})
		if got := served.handle(t.Context(), other); got.Allowed {
			t.Error("want the dry run refused too once the quota is full")
		}
	})
}

// The caches show a namespace as it was: a request that they would refuse is looked at again.
func TestARefusalRestsOnWhatTheAPIServerHas(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *served){
		"the namespace has left the quota": func(t *testing.T, served *served) {
			served.update(t, &corev1.Namespace{}, "shop", func(n client.Object) { n.SetLabels(nil) })
		},
		"the quota has been raised": func(t *testing.T, served *served) {
			served.update(t, &quotav1.ClusterResourceQuota{}, "team", func(q client.Object) {
				q.SetGeneration(2)
				q.(*quotav1.ClusterResourceQuota).Spec.Quota.Hard = list("pods", "1")
			})
		},
		"the quota is gone": func(t *testing.T, served *served) {
			if err := served.live.Delete(t.Context(), quotaOf("team")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", "0")), func(t *testing.T, served *served) {
				change(t, served)
				if got := served.handle(t.Context(), creation()); !got.Allowed {
					t.Errorf("refused: %s", got.Result.Message)
				}
			})
		})
	}
}

func (s *served) update(t *testing.T, object client.Object, name string, change func(client.Object)) {
	t.Helper()
	if err := s.live.Get(t.Context(), client.ObjectKey{Name: name}, object); err != nil {
		t.Fatal(err)
	}
	change(object)
	if err := s.live.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// now is the time within the bubble.
func now() time.Time { return clock.RealClock{}.Now() }

func TestNothingIsAllowedBeforeQuotasAndNamespacesAreKnown(t *testing.T) {
	served := newServed(t.Context(), t, quotaOf("team", "pods", "1"))
	served.handler.Coverage = namespaces.NewIndex(clock.RealClock{}, served.live)
	got := served.handle(t.Context(), creation())
	const want = "the operator is still starting: try again in a moment"
	if got.Allowed || got.Result.Code != http.StatusServiceUnavailable || got.Result.Message != want {
		t.Errorf("got %v, %d, %s, want 503, %s", got.Allowed, got.Result.Code, got.Result.Message, want)
	}
}
