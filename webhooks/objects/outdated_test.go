// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// An edit from Audit to Deny was fenced, stored and answered. A replica that hasn't seen it, and whose ledger hasn't counted
// the namespace, passes no quota over.
func TestAFencedQuotaIsNotPassedOver(t *testing.T) {
	serve(t, quotas(mode(audit, quotaOf("team", "pods", "0"))), func(t *testing.T, served *served) {
		object := &quotav1.ClusterResourceQuota{}
		if err := served.live.Get(t.Context(), client.ObjectKey{Name: "team"}, object); err != nil {
			t.Fatal(err)
		}
		object.Generation, object.Spec.Enforcement.Mode = 2, quotav1.EnforcementDeny
		if err := served.live.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		served.store.mu.Lock()
		state := served.store.stored["team"].State
		state.Fence = ledger.Fence{Generation: 2, Hard: list("pods", "0"), Until: now().Add(time.Minute)}
		served.store.lockedPut("team", state)
		served.store.mu.Unlock()
		served.index.Namespaces().Set(&metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "x", ResourceVersion: "5000", Labels: map[string]string{"team": "shop"}},
		})
		if got := served.handle(t.Context(), creation()); got.Allowed {
			t.Errorf("admitted above a limit: %+v", got)
		}
	})
}

// The replica knows that the quota refuses. Only the entry by which it is asked is older.
func TestAnOutdatedEntryAdmitsNothing(t *testing.T) {
	refusing := whenUnavailable(quotav1.UnavailableRefuse, mode(quotav1.EnforcementDeny, quotaOf("team", "pods", "0")))
	serve(t, quotas(refusing), func(t *testing.T, served *served) {
		charging(machine.ErrStore)(served)
		if got := served.admits(t.Context(), creation()); got.Allowed {
			t.Errorf("admitted by an outdated entry: %v", got.Warnings)
		}
	})
}

// A quota that was passed over goes while another one is waited for.
func TestAQuotaThatWasPassedOverGoes(t *testing.T) {
	serve(t, quotas(mode(audit, quotaOf("team", "pods", "1")), quotaOf("z", "pods", "1")), func(t *testing.T, served *served) {
		late, other := undecided(ledger.StaleLimits, 0), undecided(ledger.NotJoined, 0)
		late.Unenforced, other.Quota = true, "z"
		served.handler.Charger = &byQuota{answers: map[string][]ledger.Decision{
			"team": {late}, "z": append(slices.Repeat([]ledger.Decision{other}, 30), ledger.Granted{}),
		}}
		go func() {
			<-served.handler.Clock.After(700 * time.Millisecond) // team has been passed over, and z is waited for
			if err := served.live.Delete(t.Context(), quotaOf("team")); err != nil {
				t.Error(err)
			}
			served.index.Quotas().Remove("team", 99999)
		}()
		if got := served.handle(t.Context(), creation()); !got.Allowed || len(got.AuditAnnotations) != 0 {
			t.Errorf("got %+v, want it admitted without a word of the quota that has gone", got)
		}
	})
}
