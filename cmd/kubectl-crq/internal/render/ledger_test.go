// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
)

func pods(count string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(count)}
}

func stored(encoding int32, entries ...string) *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{
		ObjectMeta: metav1.ObjectMeta{Name: "payments"},
		Entries:    quotav1.QuotaLedgerEntries{Encoding: encoding, Generation: 2, Used: pods("7"), Reservations: entries},
	}
}

func TestOf(t *testing.T) {
	expiry := time.Unix(1000, 0)
	later := ledger.Reservation{
		Object:  ledger.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "shop", Name: "web", UID: "u1"},
		Amounts: pods("1"), Expiry: expiry.Add(time.Second),
	}
	sooner := ledger.Reservation{
		Object: ledger.Object{
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "ledgers", Name: "books", UID: "u2",
		},
		From: "4711", Attempt: "a", Amounts: pods("2"), Expiry: expiry, Doubtful: true,
	}
	suspect := ledger.Suspect{
		Object: ledger.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "shop", Name: "bad", UID: "u3"},
		Expiry: expiry.Add(time.Minute),
	}
	escrow := ledger.Escrow{
		EscrowKey: ledger.EscrowKey{Process: "u4", Number: 1}, Holder: "replica-1", Amounts: pods("5"), Expiry: expiry.Add(time.Hour), Recalled: true,
	}
	texts := ledgerstore.Encode(ledger.State{
		Reservations: map[ledger.Key]ledger.Reservation{later.Key(): later, sooner.Key(): sooner},
		Escrows:      map[ledger.EscrowKey]ledger.Escrow{escrow.EscrowKey: escrow}, Suspects: map[string]ledger.Suspect{"shop": suspect},
	})
	got := LedgerOf(stored(2, append(texts, "nonsense")...))
	want := Ledger{
		Quota: "payments", Generation: 2, Encoding: 2, Known: true, Used: pods("7"), Reserved: pods("8"),
		Reservations: []Reservation{
			{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "ledgers", Name: "books", UID: "u2",
				Attempt: Update, From: "4711", Amounts: pods("2"), Expires: metav1.NewTime(expiry), Doubtful: true},
			{Version: "v1", Resource: "pods", Namespace: "shop", Name: "web", UID: "u1",
				Attempt: Create, Amounts: pods("1"), Expires: metav1.NewTime(expiry.Add(time.Second))},
			{Group: "quota.sharedquota.dev", Version: "v1", Resource: "escrows", Name: "replica-1", UID: "u4",
				Attempt: Escrow, From: "recalled", Amounts: pods("5"), Expires: metav1.NewTime(expiry.Add(time.Hour))},
		},
		Suspected: []Suspected{{Namespace: "shop", Until: metav1.NewTime(expiry.Add(time.Minute))}},
		Undecoded: []string{"nonsense"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("view (-want,+got):\n%s", diff)
	}
}

func TestAnUnknownEncodingIsNotGuessedAt(t *testing.T) {
	got := LedgerOf(stored(99, "a", "b"))
	if got.Known || len(got.Reservations) > 0 {
		t.Errorf("got %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b"}, got.Undecoded); diff != "" {
		t.Errorf("not decoded (-want,+got):\n%s", diff)
	}
}
