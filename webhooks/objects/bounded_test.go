// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// slowly makes a client whose reads take so long.
func slowly(to client.WithWatch, takes time.Duration) client.Client {
	rest := func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clock.RealClock{}.After(takes):
			return nil
		}
	}
	return interceptor.NewClient(to, interceptor.Funcs{
		Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := rest(ctx); err != nil {
				return err
			}
			return to.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := rest(ctx); err != nil {
				return err
			}
			return to.List(ctx, list, options...)
		},
	})
}

// A request doesn't wait long for an answer that can't be no.
func TestARequestThatNothingRefusesIsAnsweredSoon(t *testing.T) {
	const unchecked = "not checked against the quotas of this namespace, and admitted: waiting for "
	asks := func(witness webhookconfig.Witness, epoch uint64, quotas ...types.UID) webhookconfig.Question {
		return webhookconfig.Question{Witness: witness, Quotas: webhookconfig.QuotaSet(quotas), Epoch: epoch, Admits: true}
	}
	usual := asks(webhookconfig.WitnessExact, 0, "uid of team")
	for name, test := range map[string]struct {
		quotas   []*quotav1.ClusterResourceQuota
		question webhookconfig.Question
		change   func(*testing.T, *served)
		takes    time.Duration
		denied   string
		warned   string
		// within and after are how long it takes at most and at least.
		within, after time.Duration
	}{
		"the namespace is read slowly": {
			question: asks(webhookconfig.WitnessExact, 0, "uid of another"), takes: time.Minute, warned: unchecked + "namespace shop: context deadline exceeded" + readLogIfItLasts,
		},
		"the quotas are listed slowly": {
			question: asks(webhookconfig.WitnessNone, 2000), takes: time.Minute, warned: unchecked + "the list of quotas: context deadline exceeded" + readLogIfItLasts,
		},
		"its ledger is missing, and the quota is read slowly": {
			question: usual, change: func(_ *testing.T, s *served) { s.store.forget("team") }, takes: time.Minute,
			warned: unchecked + "namespace shop: context deadline exceeded" + readLogIfItLasts,
		},
		"the API server is a little slow": {question: asks(webhookconfig.WitnessExact, 0, "uid of another"), takes: 300 * time.Millisecond},
		"the ledger is read slowly": {
			question: usual, change: func(_ *testing.T, s *served) { s.store.stuck = true }, takes: time.Minute,
			warned: "not checked against quota team, and admitted: waiting for quota team: context deadline exceeded" + lookAtReady,
		},
		"it never settles": {
			question: usual, change: func(_ *testing.T, s *served) {
				behind := undecided(ledger.StaleNamespaces, 1)
				behind.Unenforced = false
				s.handler.Charger = &scripted{answers: []ledger.Decision{behind}}
			}, warned: unchecked + "quota team: context deadline exceeded" + readLogIfItLasts,
		},
		"a quota that enforces is waited for": {
			quotas: quotas(mode(audit, quotaOf("team", "pods", "9")), whenUnavailable("Admit", quotaOf("strict", "pods", "0"))), question: asks(webhookconfig.WitnessExact, 0, "uid of another"),
			takes: 1500 * time.Millisecond, after: 3 * time.Second, within: 9 * time.Second, denied: "exceeded quota: strict, requested: pods=1, used: pods=0, limited: pods=0",
		},
		"an entry that refuses is waited for": {
			question: webhookconfig.Question{Witness: webhookconfig.WitnessExact, Quotas: webhookconfig.QuotaSet([]types.UID{"uid of another"})}, takes: 1500 * time.Millisecond,
			after: 3 * time.Second, within: 4 * time.Second,
		},
		"a quota that begins to enforce meanwhile is waited for": {
			question: usual, takes: 1500 * time.Millisecond, after: 1500 * time.Millisecond, within: 9 * time.Second,
			change: beginToEnforce, denied: "exceeded quota: team, requested: pods=1, used: pods=0, limited: pods=0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			covering := test.quotas
			if covering == nil {
				covering = quotas(mode(audit, quotaOf("team", "pods", "9")))
			}
			serveFrom(t, func(live client.WithWatch) client.Client { return slowly(live, test.takes) }, covering, func(t *testing.T, served *served) {
				if test.change != nil {
					test.change(t, served)
				}
				began := now()
				got := served.handler.Handle(t.Context(), Call{Start: began, Timeout: webhookconfig.Timeout, Question: test.question}, creation())
				took := now().Sub(began)
				defer func() { <-clock.RealClock{}.After(10 * time.Second) }() // the reads end
				if test.within == 0 {
					test.within = 1300 * time.Millisecond
				}
				if took > test.within || took < test.after {
					t.Errorf("it took %v, want %v to %v", took, test.after, test.within)
				}
				if got.Allowed != (test.denied == "") || !got.Allowed && got.Result.Message != test.denied {
					t.Errorf("allowed: %v, %+v, want %q", got.Allowed, got.Result, test.denied)
				}
				if warned := strings.Join(got.Warnings, "; "); warned != test.warned {
					t.Errorf("warned %q, want %q", warned, test.warned)
				}
			})
		})
	}
}

// beginToEnforce sets the quota to Deny while the ledger is read. Its fence shows before the watch does.
func beginToEnforce(t *testing.T, s *served) {
	t.Helper()
	s.store.mu.Lock()
	state := s.store.stored["team"].State
	state.Fence = ledger.Fence{Generation: 2, Hard: corev1.ResourceList{"pods": list("pods", "0")["pods"]}, Until: now().Add(time.Minute)}
	s.store.lockedPut("team", state)
	s.store.mu.Unlock()
	s.update(t, &quotav1.ClusterResourceQuota{}, "team", func(object client.Object) {
		quota := object.(*quotav1.ClusterResourceQuota)
		quota.Generation, quota.Spec.Enforcement.Mode, quota.Spec.Quota.Hard = 2, quotav1.EnforcementDeny, list("pods", "0")
	})
}

// uncounted is a Charger whose ledgers of some quotas lack the state to judge by, and can't be written.
type uncounted struct {
	scripted

	// quota -> why nothing can be decided
	reasons map[string]ledger.Reason
	err     error
	checked []string
}

func (u *uncounted) Reserve(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	for _, charge := range charges {
		if reason, lacks := u.reasons[charge.Limits.Name]; lacks {
			u.next()
			return ledger.Undecided{Quota: charge.Limits.Name, Reason: reason, Resources: []corev1.ResourceName{"pods"}}, nil
		}
	}
	return u.scripted.Reserve(ctx, charges)
}

func (u *uncounted) Judge(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	return u.Reserve(ctx, charges)
}

func (u *uncounted) Check(_ context.Context, quota string) error {
	u.checked = append(u.checked, quota)
	return u.err
}

// A count isn't settled while the ledger can't be written. Then no request can be decided, though the ledger can be read.
func TestAQuotaThatCannotBeSettledAdmitsIfItSaysSo(t *testing.T) {
	admits := func(name string) *quotav1.ClusterResourceQuota {
		return whenUnavailable("Admit", quotaOf(name, "pods", "9"))
	}
	broken := fmt.Errorf("waiting for quota team: %w: the disk is full", machine.ErrStore)
	const warned = "not checked against quota team, and admitted: waiting for quota team: its ledger can't be read or written: the disk is full" + lookAtReady
	for name, test := range map[string]struct {
		quotas   []*quotav1.ClusterResourceQuota
		reasons  map[string]ledger.Reason
		err      error
		request  *admissionv1.AdmissionRequest
		admitted bool
		checked  int
		charged  []string
	}{
		"the namespace has just joined": {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.NotJoined}, err: broken, admitted: true, checked: 1},
		"nothing is counted yet":        {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.NotCounted}, err: broken, admitted: true, checked: 1},
		"another one is charged":        {quotas: quotas(admits("team"), quotaOf("other", "pods", "9")), reasons: map[string]ledger.Reason{"team": ledger.NotJoined}, err: broken, admitted: true, checked: 1, charged: []string{"other"}},
		"it can be written":             {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.NotJoined}, checked: 1},
		"it is lost":                    {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.NotCounted}, err: machine.ErrNoLedger, checked: 1},
		"it was lost":                   {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.Sealed}, err: broken},
		"very many are in flight":       {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.Full}, err: broken},
		"it refuses then":               {quotas: quotas(quotaOf("team", "pods", "9")), reasons: map[string]ledger.Reason{"team": ledger.NotJoined}, err: broken},
		"in a dry run":                  {quotas: quotas(admits("team")), reasons: map[string]ledger.Reason{"team": ledger.NotJoined}, err: broken, request: dryRun(creation())},
		"another one refuses then": {
			quotas:  quotas(admits("team"), quotaOf("zebra", "pods", "9")),
			reasons: map[string]ledger.Reason{"team": ledger.NotJoined, "zebra": ledger.NotJoined}, err: broken, checked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, test.quotas, func(t *testing.T, served *served) {
				charger := &uncounted{scripted: scripted{answers: []ledger.Decision{ledger.Granted{}}}, reasons: test.reasons, err: test.err}
				served.handler.Charger = charger
				request := test.request
				if request == nil {
					request = creation()
				}
				got := served.admits(t.Context(), request)
				if got.Allowed != test.admitted || got.Allowed && (len(got.Warnings) != 1 || got.Warnings[0] != warned || got.AuditAnnotations[auditUnchecked] != warned) {
					t.Errorf("got %+v, %v", got, got.Result)
				}
				if len(charger.checked) != test.checked {
					t.Errorf("checked %v, want %d", charger.checked, test.checked)
				}
				var charged []string
				for _, charge := range charger.reserved {
					charged = append(charged, charge.Limits.Name)
				}
				if !slices.Equal(charged, test.charged) {
					t.Errorf("charged %v, want %v", charged, test.charged)
				}
			})
		})
	}
}
