// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const topUncovered = "insufficient quota to match these scopes: [{PriorityClass In [top]}]"

// serveLimited is serve where pods of the priority class "top" and widgets are
// limited by default.
func serveLimited(t *testing.T, quotas []*quotav1.ClusterResourceQuota, test func(t *testing.T, served *served)) {
	t.Helper()
	serve(t, quotas, func(t *testing.T, served *served) {
		served.handler.Evaluators = evaluation.New(clock.RealClock{}, evaluation.ClaimSources{},
			resourcequotaapi.LimitedResource{Resource: "pods", MatchScopes: ofTop().MatchExpressions},
			resourcequotaapi.LimitedResource{APIGroup: "example.com", Resource: "widgets", MatchContains: []string{"widgets"}})
		test(t, served)
	})
}

func ofTop() *corev1.ScopeSelector {
	return &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"top"}},
	}}
}

// topQuota is quotaOf for pods of the priority class "top".
func topQuota(name string, hard ...string) *quotav1.ClusterResourceQuota {
	quota := quotaOf(name, hard...)
	quota.Spec.Quota.ScopeSelector = ofTop()
	return quota
}

// top gives the pod the priority class "top".
func top(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	text := strings.Replace(string(request.Object.Raw), `"spec":{`, `"spec":{"priorityClassName":"top",`, 1)
	request.Object = raw(text)
	return request
}

func TestAResourceLimitedByDefaultNeedsAQuota(t *testing.T) {
	for name, test := range map[string]struct {
		quotas  []*quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		refusal string
	}{
		"an unselected namespace has none":  {request: in("office", top(creation())), refusal: topUncovered},
		"a quota of something else is none": {quotas: quotas(quotaOf("team", "pods", "1")), request: top(creation()), refusal: topUncovered},
		"a quota of it is one":              {quotas: quotas(topQuota("team", "pods", "1")), request: top(creation())},
		"as long as it isn't used up":       {quotas: quotas(topQuota("team", "pods", "0")), request: top(creation()), refusal: "exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0"},
		"a dry run needs one too":           {request: dryRun(top(creation())), refusal: topUncovered},
	} {
		t.Run(name, func(t *testing.T) {
			serveLimited(t, test.quotas, func(t *testing.T, served *served) {
				got := served.handle(t.Context(), test.request)
				outcome := outcomes.Allowed
				if test.refusal != "" {
					outcome = outcomes.Denied
					wantRefused(t, got, http.StatusForbidden, test.refusal)
				} else if !got.Allowed {
					t.Errorf("refused: %s", got.Result.Message)
				}
				if diff := gocmp.Diff(map[outcomes.Outcome]int{outcome: 1}, served.told.answers()); diff != "" {
					t.Errorf("outcomes (-want,+got):\n%s", diff)
				}
				if held := served.store.reserved("team"); test.refusal != "" && len(held) > 0 {
					t.Errorf("reserved: got %+v, want nothing", held)
				}
			})
		})
	}
}

func wantRefused(t *testing.T, got admission.Response, code int32, message string) {
	t.Helper()
	if got.Allowed || got.Result.Code != code || got.Result.Message != message {
		t.Errorf("got %v, %d, %s, want %d, %s", got.Allowed, got.Result.Code, got.Result.Message, code, message)
	}
}

// The caches don't show yet the quota that would cover the request.
func TestAQuotaIsFoundBeforeACacheHasSeenIt(t *testing.T) {
	create := func(quota *quotav1.ClusterResourceQuota) func(*testing.T, *served) {
		return func(t *testing.T, served *served) {
			if err := served.live.Create(t.Context(), quota); err != nil {
				t.Fatal(err)
			}
			served.store.count(t, quota)
		}
	}
	for name, test := range map[string]struct {
		known     []*quotav1.ClusterResourceQuota
		change    func(*testing.T, *served)
		namespace string
	}{
		"it is new": {change: create(topQuota("team", "pods", "1"))},
		"it is new, beside a quota that doesn't cover": {
			known: quotas(quotaOf("other", "pods", "1")), change: create(topQuota("team", "pods", "1")),
		},
		"it has become one of the class": {
			known: quotas(quotaOf("team", "pods", "1")),
			change: func(t *testing.T, served *served) {
				changed := topQuota("team", "pods", "1")
				changed.Generation = 2
				served.update(t, &quotav1.ClusterResourceQuota{}, "team", func(q client.Object) {
					q.SetGeneration(2)
					q.(*quotav1.ClusterResourceQuota).Spec = changed.Spec
				})
				served.store.count(t, changed)
			},
		},
		"the namespace has come under it": {
			known: quotas(topQuota("team", "pods", "1")), namespace: "office",
			change: func(t *testing.T, served *served) {
				served.update(t, &corev1.Namespace{}, "office", func(n client.Object) { n.SetLabels(map[string]string{"team": "shop"}) })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			serveLimited(t, test.known, func(t *testing.T, served *served) {
				test.change(t, served)
				if got := served.handle(t.Context(), in(cmp.Or(test.namespace, "shop"), top(creation()))); !got.Allowed {
					t.Fatalf("refused: %s", got.Result.Message)
				}
				if held := served.store.reserved("team"); len(held) != 1 {
					t.Errorf("reserved: got %+v, want the pod", held)
				}
			})
		})
	}
}

func TestANewQuotaThatIsUsedUpIsTheOneThatRefuses(t *testing.T) {
	serveLimited(t, nil, func(t *testing.T, served *served) {
		team := topQuota("team", "pods", "0")
		if err := served.live.Create(t.Context(), team); err != nil {
			t.Fatal(err)
		}
		served.store.count(t, team)
		wantRefused(t, served.handle(t.Context(), top(creation())), http.StatusForbidden,
			"exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0")
	})
}

// The quota that refuses at first has changed, and then no quota that a cache knows covers the request.
func TestAQuotaIsFoundAfterAnotherHasRefused(t *testing.T) {
	serveLimited(t, quotas(topQuota("old", "limits.cpu", "1")), func(t *testing.T, served *served) {
		if err := served.live.Delete(t.Context(), quotaOf("old")); err != nil {
			t.Fatal(err)
		}
		team := topQuota("team", "pods", "1")
		if err := served.live.Create(t.Context(), team); err != nil {
			t.Fatal(err)
		}
		served.store.count(t, team)
		if got := served.handle(t.Context(), top(creation())); !got.Allowed {
			t.Errorf("refused: %s", got.Result.Message)
		}
	})
}

func TestANewQuotaIsWaitedForUntilItIsCounted(t *testing.T) {
	serveLimited(t, nil, func(t *testing.T, served *served) {
		team := topQuota("team", "pods", "1")
		if err := served.live.Create(t.Context(), team); err != nil {
			t.Fatal(err)
		}
		go func() {
			<-clock.RealClock{}.After(time.Second)
			served.store.count(t, team)
		}()
		if got := served.handle(t.Context(), top(creation())); !got.Allowed {
			t.Errorf("refused: %s", got.Result.Message)
		}
	})
}

func TestAnIneffectiveQuotaCoversNothing(t *testing.T) {
	for name, test := range map[string]struct {
		quota  *quotav1.ClusterResourceQuota
		change func(*testing.T, *served)
	}{
		"it is invalid":               {quota: topQuota("team", "pods", "500m")},
		"it selects other namespaces": {quota: selecting("office", topQuota("team", "pods", "1"))},
		"it is being deleted": {
			quota: finalized(topQuota("team", "pods", "1")),
			change: func(t *testing.T, served *served) {
				if err := served.live.Delete(t.Context(), quotaOf("team")); err != nil {
					t.Fatal(err)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			serveLimited(t, nil, func(t *testing.T, served *served) {
				if err := served.live.Create(t.Context(), test.quota); err != nil {
					t.Fatal(err)
				}
				if test.change != nil {
					test.change(t, served)
				}
				wantRefused(t, served.handle(t.Context(), top(creation())), http.StatusForbidden, topUncovered)
			})
		})
	}
}

func selecting(team string, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.Spec.Selector.LabelSelector.MatchLabels["team"] = team
	return quota
}

func finalized(quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.Finalizers = []string{"example.com/wait"}
	return quota
}

// If quotas can't be listed, the request is neither refused nor granted.
func TestAnUncoveredRequestFailsWhereQuotasCannotBeListed(t *testing.T) {
	for want, funcs := range map[string]interceptor.Funcs{
		"listing quotas: it is down": {List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("it is down")
		}},
		"reading quota team: it is down": {Get: func(
			ctx context.Context, live client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
		) error {
			if _, isQuota := object.(*quotav1.ClusterResourceQuota); isQuota {
				return errors.New("it is down")
			}
			return live.Get(ctx, key, object, options...)
		}},
	} {
		t.Run(want, func(t *testing.T) {
			serveLimited(t, nil, func(t *testing.T, served *served) {
				if err := served.live.Create(t.Context(), topQuota("team", "pods", "1")); err != nil {
					t.Fatal(err)
				}
				index := namespaces.NewIndex(clock.RealClock{}, interceptor.NewClient(served.live.(client.WithWatch), funcs))
				index.Quotas().List(nil, 1)
				index.Namespaces().List(nil, 1)
				served.handler.Coverage = index
				wantRefused(t, served.handle(t.Context(), top(creation())), http.StatusInternalServerError, want+tryAgain)
			})
		})
	}
}
