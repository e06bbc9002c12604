// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

const (
	warn  = quotav1.EnforcementWarn
	audit = quotav1.EnforcementAudit
)

func mode(mode quotav1.EnforcementMode, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.Spec.Enforcement.Mode = mode
	return quota
}

func whenUnavailable(policy quotav1.UnavailablePolicy, quota *quotav1.ClusterResourceQuota) *quotav1.ClusterResourceQuota {
	quota.Spec.Enforcement.WhenUnavailable = policy
	return quota
}

func TestWhatIsSaidOfARequestThatIsAdmitted(t *testing.T) {
	const (
		exceeded = "exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0"
		onlyWarn = " (admitted, because the quota only warns: make room, or state what is missing, before the quota's mode becomes Deny)"
		missing  = "failed quota: team: must specify limits.cpu for: c"
	)
	for name, test := range map[string]struct {
		quotas   []*quotav1.ClusterResourceQuota
		denied   string
		warnings []string
		audited  string
		// counted are the resources that the request would have been refused for.
		counted []string
		// told is the reason of the event, if there is one.
		told string
	}{
		"a request fits, in any mode": {quotas: quotas(mode(warn, quotaOf("team", "pods", "1")), mode(audit, quotaOf("other", "pods", "1")))},
		"with Warn": {
			quotas: quotas(mode(warn, quotaOf("team", "pods", "0"))), warnings: []string{exceeded + onlyWarn},
			counted: []string{"Warn team pods"}, told: "WouldExceed",
		},
		"with Audit": {
			quotas: quotas(mode(audit, quotaOf("team", "pods", "0"))), audited: exceeded,
			counted: []string{"Audit team pods"}, told: "WouldExceed",
		},
		"with Deny": {
			quotas: quotas(quotaOf("team", "pods", "0")), denied: exceeded,
			told: "QuotaExceeded",
		},
		"another quota denies, and nothing is said of the first": {
			quotas: quotas(mode(warn, quotaOf("a", "pods", "0")), quotaOf("team", "pods", "0")), denied: exceeded,
			told: "QuotaExceeded",
		},
		"with Warn, a resource that is not specified": {
			quotas: quotas(mode(warn, quotaOf("team", "limits.cpu", "1"))), warnings: []string{missing + onlyWarn},
			counted: []string{"Warn team limits.cpu"}, told: "WouldExceed",
		},
		"with Audit, a resource that is not specified": {
			quotas: quotas(mode(audit, quotaOf("team", "limits.cpu", "1", "pods", "1"))), audited: missing,
			counted: []string{"Audit team limits.cpu"}, told: "WouldExceed",
		},
		"with Deny, a resource that is not specified": {
			quotas: quotas(quotaOf("team", "limits.cpu", "1")), denied: missing,
			told: "RequestIncomplete",
		},
	} {
		for kind, request := range map[string]*admissionv1.AdmissionRequest{"": creation(), ", in a dry run": dryRun(creation())} {
			t.Run(name+kind, func(t *testing.T) {
				serve(t, test.quotas, func(t *testing.T, served *served) {
					got := served.handle(t.Context(), request)
					want, wantOutcome := admission.Allowed(""), outcomes.Allowed
					if test.denied != "" {
						want, wantOutcome = admission.Denied(test.denied), outcomes.Denied
					}
					want.Warnings = test.warnings
					if test.audited != "" {
						want.AuditAnnotations = map[string]string{"would-refuse": test.audited}
					}
					if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("(-want,+got):\n%s", diff)
					}
					if diff := cmp.Diff(map[outcomes.Outcome]int{wantOutcome: 1}, served.told.answers()); diff != "" {
						t.Errorf("outcomes (-want,+got):\n%s", diff)
					}
					counted, reason := test.counted, test.told
					if request.DryRun != nil {
						counted, reason = nil, ""
					}
					if diff := cmp.Diff(counted, served.told.counted()); diff != "" {
						t.Errorf("counted (-want,+got):\n%s", diff)
					}
					var reasons []string
					for _, refusal := range served.told.refusals {
						reasons = append(reasons, refusal.Reason)
					}
					if got := strings.Join(reasons, ", "); got != reason {
						t.Errorf("told %q, want %q", got, reason)
					}
					for _, quota := range test.quotas {
						held := len(served.store.reserved(quota.Name))
						if charges := test.denied == "" && request.DryRun == nil && !strings.Contains(name, "not specified"); charges && held != 1 ||
							!charges && request.DryRun != nil && held != 0 {
							t.Errorf("quota %s: %d are reserved", quota.Name, held)
						}
					}
				})
			})
		}
	}
}

// The API server passes on 256 characters of each warning, and 4096 of all.
func TestWarningsAreFewAndShort(t *testing.T) {
	var many []*quotav1.ClusterResourceQuota
	for i := range 20 {
		many = append(many, mode(warn, quotaOf(fmt.Sprintf("%s%02d", strings.Repeat("team-", 40), i), "pods", "0", "requests.cpu", "0")))
	}
	serve(t, many, func(t *testing.T, served *served) {
		got := served.handle(t.Context(), creation())
		if !got.Allowed || len(got.Warnings) != 15 {
			t.Fatalf("allowed: %v, with %d warnings; want 15", got.Allowed, len(got.Warnings))
		}
		total := 0
		for _, warning := range got.Warnings {
			total += len(warning)
			if len(warning) > 256 {
				t.Errorf("%d characters: %s", len(warning), warning)
			}
		}
		if last := got.Warnings[14]; total > 4096 || last != "6 more warnings: mend what the others say to see them" {
			t.Errorf("%d characters in all; the last is %s", total, last)
		}
	})
	for i, quota := range many {
		many[i] = mode(audit, quota)
	}
	serve(t, many, func(t *testing.T, served *served) {
		got := served.handle(t.Context(), creation())
		if text := got.AuditAnnotations[auditWouldRefuse]; len(got.Warnings) > 0 || len(text) != maxAudit || !strings.HasSuffix(text, "...") {
			t.Errorf("got %v, and %d characters for the audit log; want %d", got.Warnings, len(text), maxAudit)
		}
	})
}

func TestATextIsCutBetweenCharacters(t *testing.T) {
	for text, want := range map[string]string{"12345678": "12345678", "123456789": "12345...", "1234ü6789": "1234...", "": ""} {
		if got := shortened(text, 8); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// A quota that refuses nothing, and can't decide, doesn't cause the refusal.
func TestAQuotaThatCannotDecideIsPassedOver(t *testing.T) {
	uncounted := outcomes.UnknownUse.Text("team", "pods", outcomes.NotCountedYet.Cause)
	for name, test := range map[string]struct {
		quotas  []*quotav1.ClusterResourceQuota
		request *admissionv1.AdmissionRequest
		// gone are quotas without a ledger.
		gone     []string
		denied   string
		warnings []string
		audited  string
		reserved []string
	}{
		"it is the only one": {quotas: quotas(mode(audit, quotaOf("team", "pods", "1"))), gone: []string{"team"}, audited: uncounted},
		"it warns": {
			quotas: quotas(mode(warn, quotaOf("team", "pods", "1"))), gone: []string{"team"},
			warnings: []string{outcomes.OnlyWarnsUnknown.Text(uncounted)},
		},
		"another one grants": {
			quotas: quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "1"), quotaOf("a", "pods", "1")),
			gone:   []string{"team"}, audited: uncounted, reserved: []string{"a", "z"},
		},
		"another one denies": {
			quotas: quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "0"), quotaOf("a", "pods", "1")), gone: []string{"team"},
			denied: "exceeded quota: z, requested: pods=1, used: pods=0, limited: pods=0",
		},
		"another one can't decide, and refuses then": {
			quotas: quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "1")), gone: []string{"team", "z"},
			denied: outcomes.UnknownUse.Text("z", "pods", outcomes.NotCountedYet.Text()),
		},
		"two of them can't decide": {
			quotas:  quotas(mode(audit, quotaOf("team", "pods", "1")), mode(audit, quotaOf("z", "pods", "1")), quotaOf("a", "pods", "1")),
			gone:    []string{"team", "z"},
			audited: uncounted + "; " + strings.Replace(uncounted, "team", "z", 1), reserved: []string{"a"},
		},
		"in a dry run": {
			quotas:  quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "1")),
			request: dryRun(creation()), gone: []string{"team"}, audited: uncounted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				for _, quota := range test.gone {
					served.store.forget(quota)
				}
				request := test.request
				if request == nil {
					request = creation()
				}
				began := now()
				got := served.handle(t.Context(), request)
				if got.Allowed != (test.denied == "") || got.Result.Message != test.denied || got.AuditAnnotations[auditWouldRefuse] != test.audited {
					t.Errorf("allowed: %v, %s\naudited: %s\nwant: %s\naudited: %s",
						got.Allowed, got.Result.Message, got.AuditAnnotations[auditWouldRefuse], test.denied, test.audited)
				}
				if diff := cmp.Diff(test.warnings, got.Warnings, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("warnings (-want,+got):\n%s", diff)
				}
				if took := now().Sub(began); took > 7*time.Second {
					t.Errorf("it took %v", took)
				}
				for _, quota := range test.quotas {
					want := 0
					for _, reserved := range test.reserved {
						if reserved == quota.Name {
							want = 1
						}
					}
					if held := len(served.store.reserved(quota.Name)); held != want {
						t.Errorf("quota %s: %d are reserved, want %d", quota.Name, held, want)
					}
				}
			})
		})
	}
}

// The answer of another quota once one is passed over is looked at again: that quota may only need time.
func TestWhatIsAnsweredOnceAQuotaIsPassedOverIsLookedAtAgain(t *testing.T) {
	serve(t, quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "1")), func(t *testing.T, served *served) {
		other := undecided(ledger.NotJoined, 0)
		other.Quota = "z"
		late := undecided(ledger.StaleLimits, 0)
		late.Unenforced = true
		charger := &byQuota{answers: map[string][]ledger.Decision{
			"team": {late}, "z": {other, other, other, ledger.Granted{}},
		}}
		served.handler.Charger = charger
		if got := served.handle(t.Context(), creation()); !got.Allowed || got.AuditAnnotations[auditWouldRefuse] == "" {
			t.Errorf("got %+v, want it admitted", got)
		}
	})
}

// byQuota answers for the first quota by name that has something to say, the last answer ever after.
type byQuota struct {
	scripted

	answers map[string][]ledger.Decision
}

func (b *byQuota) Reserve(_ context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	for _, charge := range charges {
		answers := b.answers[charge.Limits.Name]
		if len(answers) > 1 {
			b.answers[charge.Limits.Name] = answers[1:]
		}
		if !ledger.IsGranted(answers[0]) {
			return answers[0], nil
		}
	}
	return ledger.Granted{}, nil
}

// failing is a Charger that fails.
type failing struct {
	scripted

	err error
}

func (f *failing) Reserve(context.Context, []ledger.Charge) (ledger.Decision, error) {
	return nil, f.err
}

func (s *served) admits(ctx context.Context, request *admissionv1.AdmissionRequest) admission.Response {
	call := Call{Start: now(), Timeout: webhookconfig.Timeout, Question: webhookconfig.Question{Witness: webhookconfig.WitnessNone, Admits: true}}
	return s.handler.Handle(ctx, call, request)
}

// If the API server lets an unanswered request pass, so does a replica that can't decide. A request that is itself
// the reason doesn't get past a limit.
func TestARequestThatNobodyCanDecideIsAdmittedIfTheEntrySaysSo(t *testing.T) {
	long := but(resize(), func(r *admissionv1.AdmissionRequest) { r.UID = types.UID(strings.Repeat("x", 200)) })
	for name, test := range map[string]struct {
		mode     quotav1.EnforcementMode
		request  *admissionv1.AdmissionRequest
		change   func(*served)
		admitted bool
		code     int32
	}{
		"the ledger can't be reached":                    {change: charging(machine.ErrStore), admitted: true},
		"or can't be understood":                         {change: charging(machine.ErrUnreadable), admitted: true},
		"time is up":                                     {change: charging(context.DeadlineExceeded), admitted: true},
		"contact is lost":                                {change: func(s *served) { s.handler.Contact = outOfContact{} }, admitted: true},
		"very many ask":                                  {change: charging(machine.ErrBusy), code: 429},
		"the ledger can't be stored":                     {change: charging(machine.ErrRejected), code: 500},
		"an identifier is too long":                      {request: long, code: 400},
		"very many ask, of a quota that refuses nothing": {mode: audit, change: charging(machine.ErrBusy), admitted: true},
		"it can't be decoded":                            {mode: audit, request: but(creation(), func(r *admissionv1.AdmissionRequest) { r.Object = raw("") }), code: 400},
	} {
		t.Run(name, func(t *testing.T) {
			quota := whenUnavailable(quotav1.UnavailableAdmit, mode(test.mode, quotaOf("team", "pods", "9", "requests.cpu", "9")))
			serve(t, quotas(quota), func(t *testing.T, served *served) {
				if test.change != nil {
					test.change(served)
				}
				request := test.request
				if request == nil {
					request = creation()
				}
				got := served.admits(t.Context(), request)
				if got.Allowed != test.admitted || !test.admitted && got.Result.Code != test.code {
					t.Errorf("got %+v, %v", got, got.Result)
				}
				want := map[outcomes.Outcome]int{outcomes.Unchecked: 1}
				if !test.admitted {
					want = map[outcomes.Outcome]int{outcomes.Failed: 1}
					if test.code == 400 && test.mode == audit {
						want = map[outcomes.Outcome]int{outcomes.Undecodable: 1}
					}
				}
				if diff := cmp.Diff(want, served.told.answers()); diff != "" {
					t.Errorf("outcomes (-want,+got):\n%s", diff)
				}
				text := got.AuditAnnotations[auditUnchecked]
				if told := strings.HasPrefix(text, "not checked against the quotas of this namespace, and admitted: "); told != test.admitted || strings.Contains(text, "try again") ||
					test.admitted && (len(got.Warnings) != 1 || len(got.Warnings[0]) > 256) {
					t.Errorf("audited: %q, warned %v", text, got.Warnings)
				}
			})
		})
	}
}

// The cost of a request is known whether or not the API server and the ledgers can be reached.
func TestARequestOfUnknownCostIsBarred(t *testing.T) {
	enforcing := namespaces.Covered{Definitions: []definition.Definition{definition.Salvage(mode(audit, quotaOf("a", "pods", "1"))), definition.Salvage(quotaOf("b", "pods", "1"))}}
	for name, test := range map[string]struct {
		outcome outcome
		want    bool
	}{
		"by a quota that enforces":        {outcome: outcome{err: unjudged{machine.ErrUnreadable}, covered: enforcing}, want: true},
		"not if none does":                {outcome: outcome{err: unjudged{machine.ErrUnreadable}, covered: namespaces.Covered{Definitions: enforcing.Definitions[:1]}}},
		"nor if no ledger can be reached": {outcome: outcome{err: machine.ErrStore, covered: enforcing}},
		"nor if nothing is wrong":         {outcome: outcome{covered: enforcing}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.outcome.isBarred(); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// outOfContact has no contact with the API server.
type outOfContact struct{ inContact }

func (outOfContact) Await(context.Context) error {
	return &apiserver.LostError{Replica: "replica-1", Silence: time.Minute}
}

func charging(err error) func(*served) {
	return func(s *served) { s.handler.Charger = &failing{err: fmt.Errorf("charging: %w", err)} }
}

// Of several quotas one can't be reached, and admits then.
func TestAnUncheckedQuotaIsNamed(t *testing.T) {
	serve(t, quotas(quotaOf("team", "pods", "9")), func(t *testing.T, served *served) {
		served.handler.Charger = &scripted{answers: []ledger.Decision{ledger.Granted{Remarks: []ledger.Remark{{
			Quota: "team", Unchecked: true,
			Refusal: ledger.Undecided{Quota: "team", Reason: ledger.Unavailable, Resources: []corev1.ResourceName{"pods"}, Detail: errors.New("no answer").Error()},
		}}}}}
		got := served.handle(t.Context(), creation())
		const want = "not checked against quota team, and admitted: no answer" + lookAtReady
		if !got.Allowed || got.AuditAnnotations[auditUnchecked] != want || len(got.Warnings) != 1 || got.Warnings[0] != want {
			t.Errorf("got %+v", got)
		}
		if diff := cmp.Diff(map[outcomes.Outcome]int{outcomes.Unchecked: 1}, served.told.answers()); diff != "" {
			t.Errorf("outcomes (-want,+got):\n%s", diff)
		}
	})
}

// A charge says whether it is admitted if its ledger can't be reached.
func TestAChargeSaysWhetherItIsAdmittedUnchecked(t *testing.T) {
	for name, test := range map[string]struct {
		quota     *quotav1.ClusterResourceQuota
		byDefault bool
		want      bool
	}{
		"Deny":                           {quota: quotaOf("team", "pods", "9")},
		"Deny, and the operator ignores": {quota: quotaOf("team", "pods", "9"), byDefault: true, want: true},
		"Audit":                          {quota: mode(audit, quotaOf("team", "pods", "9")), want: true},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, quotas(test.quota), func(t *testing.T, served *served) {
				charger := &scripted{answers: []ledger.Decision{ledger.Granted{}}}
				served.handler.Charger, served.handler.AdmitByDefault = charger, test.byDefault
				served.handle(t.Context(), creation())
				if len(charger.reserved) != 1 || charger.reserved[0].Admits != test.want {
					t.Errorf("got %+v", charger.reserved)
				}
			})
		})
	}
}

// counted returns the resources that requests would have been refused for.
func (t *told) counted() []string {
	var all []string
	for _, refusal := range t.refusals {
		for _, resource := range refusal.Resources {
			if refusal.Mode != "" {
				all = append(all, fmt.Sprintf("%s %s %s", refusal.Mode, refusal.Quota, resource))
			}
		}
	}
	return all
}
