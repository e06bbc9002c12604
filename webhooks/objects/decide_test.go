// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/admission"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// ask posts a request at the path of an entry that was made for these quotas.
func (s *served) ask(t *testing.T, epoch uint64, quotas []types.UID, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	question := webhookconfig.Question{Witness: webhookconfig.WitnessExact, Quotas: webhookconfig.QuotaSet(quotas), Epoch: epoch, Specs: "0123456789abcdef"}
	return s.post(t, Path+"/"+question.Path()+"?timeout=10s", strings.NewReader(reviewOf(t, request)))
}

// The watches of this replica are cut off, and show nothing.
func TestAReplicaThatIsBehindGrantsNothingThatItDoesNotKnowOf(t *testing.T) {
	const full = "exceeded quota: new, requested: pods=1, used: pods=0, limited: pods=0"
	for name, test := range map[string]struct {
		change    func(*testing.T, *served)
		epoch     uint64
		namespace string
		quotas    []types.UID
	}{
		"of a new quota": {
			change: func(t *testing.T, s *served) { s.create(t, quotaOf("new", "pods", "0")) },
			epoch:  1000, namespace: "shop", quotas: []types.UID{"uid of team", "uid of new"},
		},
		"of a new quota that the entry names": {
			change: func(t *testing.T, s *served) { s.create(t, quotaOf("new", "pods", "0")) },
			epoch:  999, namespace: "shop", quotas: []types.UID{"uid of team", "uid of new"},
		},
		"of a namespace that has come under a quota": {
			change: func(t *testing.T, s *served) {
				s.create(t, selecting("warehouse", quotaOf("new", "pods", "0")))
				s.update(t, &corev1.Namespace{}, "office", func(n client.Object) { n.SetLabels(map[string]string{"team": "warehouse"}) })
			},
			epoch: 999, namespace: "office", quotas: []types.UID{"uid of new"},
		},
		"of a namespace that has moved to another quota": {
			change: func(t *testing.T, s *served) {
				s.create(t, selecting("warehouse", quotaOf("new", "pods", "0")))
				s.update(t, &corev1.Namespace{}, "shop", func(n client.Object) { n.SetLabels(map[string]string{"team": "warehouse"}) })
			},
			epoch: 999, namespace: "shop", quotas: []types.UID{"uid of new"},
		},
	} {
		for kind, request := range map[string]func() *admissionv1.AdmissionRequest{
			"a request": creation, "a dry run": func() *admissionv1.AdmissionRequest { return dryRun(creation()) },
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				serve(t, quotas(quotaOf("team", "pods", "5")), func(t *testing.T, served *served) {
					test.change(t, served)
					got := served.ask(t, test.epoch, test.quotas, in(test.namespace, request()))
					if got.Allowed || got.Result.Message != full {
						t.Errorf("got %+v, want %s", got, full)
					}
				})
			})
		}
	}
}

func (s *served) create(t *testing.T, quota *quotav1.ClusterResourceQuota) {
	t.Helper()
	if err := s.live.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	s.store.count(t, quota)
}

// scripted answers charges one after the other, the last answer ever after.
type scripted struct {
	answers  []ledger.Decision
	reserved []ledger.Charge
	judged   []ledger.Charge
}

func (s *scripted) next() ledger.Decision {
	answer := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	return answer
}

func (s *scripted) Reserve(_ context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	s.reserved = append(s.reserved, charges...)
	return s.next(), nil
}

func (s *scripted) Current(string) ledger.State { return ledger.State{} }

func (s *scripted) Check(context.Context, string) error { return nil }

func (s *scripted) Judge(_ context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	s.judged = append(s.judged, charges...)
	return s.next(), nil
}

// stalling answers as scripted does, and after its last answer not at all.
type stalling struct{ scripted }

func (s *stalling) Reserve(ctx context.Context, _ []ledger.Charge) (ledger.Decision, error) {
	if len(s.answers) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer, nil
}

func undecided(reason ledger.Reason, members uint64) ledger.Undecided {
	return ledger.Undecided{Quota: "team", Reason: reason, Resources: []corev1.ResourceName{"pods"}, Members: members}
}

func TestAChargeSaysWhatIsKnownOfNamespaces(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "5")), func(t *testing.T, served *served) {
		charger := &scripted{answers: []ledger.Decision{undecided(ledger.StaleNamespaces, 2000), ledger.Granted{}}}
		served.handler.Charger = charger
		if got := served.ask(t, 999, []types.UID{"uid of team"}, creation()); !got.Allowed {
			t.Fatalf("refused: %s", got.Result.Message)
		}
		var knowledge []ledger.Knowledge
		for _, charge := range charger.reserved {
			knowledge = append(knowledge, charge.Knowledge)
		}
		if diff := cmp.Diff([]ledger.Knowledge{{Joined: 999, All: 999, Seen: 999}, {Joined: 999, All: 999, Seen: 2000}}, knowledge); diff != "" {
			t.Errorf("knowledge (-want,+got):\n%s", diff)
		}
	})
}

func TestANamespaceThatChangedIsChargedToTheQuotaThatCoversItNow(t *testing.T) {
	for kind, request := range map[string]*admissionv1.AdmissionRequest{"a request": creation(), "a dry run": dryRun(creation())} {
		t.Run(kind, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", "5"), selecting("warehouse", quotaOf("new", "pods", "5"))), func(t *testing.T, served *served) {
				charger := &scripted{answers: []ledger.Decision{undecided(ledger.StaleNamespaces, 1000), ledger.Granted{}}}
				served.handler.Charger = charger
				served.update(t, &corev1.Namespace{}, "shop", func(n client.Object) { n.SetLabels(map[string]string{"team": "warehouse"}) })
				if got := served.ask(t, 999, []types.UID{"uid of team"}, request); !got.Allowed {
					t.Fatalf("refused: %s", got.Result.Message)
				}
				var charged []string
				for _, charge := range append(charger.reserved, charger.judged...) {
					charged = append(charged, charge.Limits.Name)
				}
				if diff := cmp.Diff([]string{"team", "new"}, charged); diff != "" {
					t.Errorf("charged (-want,+got):\n%s", diff)
				}
				if dry := len(charger.judged) > 0; dry != (request.DryRun != nil) {
					t.Errorf("judged without being reserved: got %t", dry)
				}
			})
		})
	}
}

func TestACountUnderWayIsWaitedForBriefly(t *testing.T) {
	for message, answer := range map[string]ledger.Decision{
		"the objects in a namespace that joined this quota are still being counted": undecided(ledger.NotJoined, 1000),
		"usage is still being counted":                                              undecided(ledger.NotCounted, 1000),
		"too much in doubt":                                                         ledger.Withheld{Quota: "team"},
	} {
		t.Run(message, func(t *testing.T) {
			serve(t, quotas(quotaOf("team", "pods", "5")), func(t *testing.T, served *served) {
				answers := slices.Repeat([]ledger.Decision{answer}, 10)
				served.handler.Charger = &scripted{answers: append(answers, ledger.Granted{})}
				began := now()
				if got := served.ask(t, 999, []types.UID{"uid of team"}, creation()); !got.Allowed {
					t.Errorf("refused: %s", got.Result.Message)
				}
				if took := now().Sub(began); took != 9*admission.Poll {
					t.Errorf("took %s, want %s", took, 9*admission.Poll)
				}
				for name, charger := range map[string]Charger{
					"the answer stays the same": &scripted{answers: answers[:1]}, "then nobody answers": &stalling{scripted{answers: answers[:1]}},
				} {
					served.handler.Charger = charger
					began = now()
					got := served.ask(t, 999, []types.UID{"uid of team"}, creation())
					if got.Allowed || got.Result.Code != http.StatusForbidden || !strings.Contains(got.Result.Message, message) {
						t.Errorf("%s: got %+v, want it refused because %s", name, got, message)
					}
					if took := now().Sub(began); took < admission.CountWait || took > admission.CountWait+2*admission.Poll {
						t.Errorf("%s: took %s, want about %s", name, took, admission.CountWait)
					}
				}
			})
		})
	}
}

const (
	isInvalid = "status unknown for quota: broken, resources: pods (the quota's spec is not valid for this version of the operator: " +
		`spec.quota.hard[pods]: Invalid value: "500m": must be an integer`
	invalidSpec = isInvalid + "; ask your cluster administrator to correct the quota's spec)"
)

func TestAQuotaThatDoesNotCompileRefusesWhatItNames(t *testing.T) {
	for name, test := range map[string]struct {
		mode    quotav1.EnforcementMode
		request *admissionv1.AdmissionRequest
		message string
		audited string
	}{
		"a resource that it names is refused":                     {request: creation(), message: invalidSpec},
		"a resource that it names is refused in a dry run":        {request: dryRun(creation()), message: invalidSpec},
		"a resource that it names is refused in an unknown mode":  {mode: "Dream", request: creation(), message: invalidSpec},
		"a resource that it names is admitted in the mode Audit":  {mode: audit, request: creation(), audited: isInvalid + ")"},
		"a resource that it doesn't name is free":                 {request: widget()},
		"a resource that it names is free in another's namespace": {request: in("office", creation())},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(quotaOf("all", "pods", "5", "count/widgets.example.com", "5")), func(t *testing.T, served *served) {
				if err := served.live.Create(t.Context(), mode(test.mode, quotaOf("broken", "pods", "500m"))); err != nil {
					t.Fatal(err)
				}
				show(t.Context(), t, served.index, served.live)
				got := served.handle(t.Context(), test.request)
				if got.Allowed != (test.message == "") || test.message != "" && !strings.HasPrefix(got.Result.Message, test.message[:60]) ||
					got.AuditAnnotations[auditWouldRefuse] != test.audited {
					t.Errorf("got  %t, %s, %v\nwant %s", got.Allowed, got.Result.Message, got.AuditAnnotations, test.message)
				}
				outcome := map[bool]outcomes.Outcome{true: outcomes.Allowed, false: outcomes.Unknown}[got.Allowed]
				if diff := cmp.Diff(map[outcomes.Outcome]int{outcome: 1}, served.told.answers()); diff != "" {
					t.Errorf("outcomes (-want,+got):\n%s", diff)
				}
				if held := len(served.store.reserved("all")); test.message != "" && held > 0 || test.audited != "" && held != 1 {
					t.Errorf("reserved in another quota: %d", held)
				}
			})
		})
	}
}

func TestAQuotaThatWasCorrectedIsEnforced(t *testing.T) {
	serve(t, nil, func(t *testing.T, served *served) {
		if err := served.live.Create(t.Context(), quotaOf("broken", "pods", "500m")); err != nil {
			t.Fatal(err)
		}
		show(t.Context(), t, served.index, served.live)
		corrected := quotaOf("broken", "pods", "1")
		corrected.Generation = 2
		served.update(t, &quotav1.ClusterResourceQuota{}, "broken", func(q client.Object) {
			q.SetGeneration(2)
			q.(*quotav1.ClusterResourceQuota).Spec = corrected.Spec
		})
		served.store.count(t, corrected)
		if got := served.handle(t.Context(), creation()); !got.Allowed {
			t.Errorf("refused: %s", got.Result.Message)
		}
	})
}
