// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// someState is a ledger in which there is something of everything.
func someState() ledger.State {
	one, other := reservationOf("team-a", "web-0", "pods", "1"), reservationOf("team-b", "web-1", "pods", "1")
	other.UID = "another"
	return ledger.State{
		Basis:        ledger.Basis{Quota: "q", Generation: 3, Digest: "d"},
		Used:         list("pods", "5", "requests.memory", "1Gi"),
		Counted:      map[schema.GroupResource]uint64{{Resource: "pods"}: 70, {Resource: "namespaces"}: 60},
		Reservations: map[ledger.Key]ledger.Reservation{one.Key(): one, other.Key(): other},
	}
}

func TestAnEditIsNoticed(t *testing.T) {
	for name, edit := range map[string]func(*quotav1.QuotaLedger){
		"used is lowered":              func(l *quotav1.QuotaLedger) { l.Entries.Used[corev1.ResourcePods] = resource.MustParse("4") },
		"used is emptied":              func(l *quotav1.QuotaLedger) { l.Entries.Used = nil },
		"a resource is taken away":     func(l *quotav1.QuotaLedger) { delete(l.Entries.Used, corev1.ResourcePods) },
		"a reservation is taken away":  func(l *quotav1.QuotaLedger) { l.Entries.Reservations = l.Entries.Reservations[:1] },
		"all reservations are":         func(l *quotav1.QuotaLedger) { l.Entries.Reservations = nil },
		"a reservation is made larger": func(l *quotav1.QuotaLedger) { l.Entries.Reservations[0] += "0" },
		"it was counted less far":      func(l *quotav1.QuotaLedger) { l.Entries.Counted["pods"] = "69" },
		"a source is taken away":       func(l *quotav1.QuotaLedger) { delete(l.Entries.Counted, "namespaces") },
		"the digest is another":        func(l *quotav1.QuotaLedger) { l.Entries.Digest = "e" },
		"the generation is another":    func(l *quotav1.QuotaLedger) { l.Entries.Generation++ },
		"the encoding is a newer one":  func(l *quotav1.QuotaLedger) { l.Entries.Encoding++ },
		"the encoding is an older one": func(l *quotav1.QuotaLedger) { l.Entries.Encoding-- },
		"it is sealed":                 func(l *quotav1.QuotaLedger) { l.Entries.Sealed = &metav1.Time{Time: time.Unix(1, 0)} },
		"the checksum is taken away":   func(l *quotav1.QuotaLedger) { l.Entries.Checksum = "" },
		"it is another quota's":        func(l *quotav1.QuotaLedger) { l.OwnerReferences[0].UID = "r" },
		"it has no owner":              func(l *quotav1.QuotaLedger) { l.OwnerReferences = nil },
		"it is an older one, put back": func(l *quotav1.QuotaLedger) { l.Generation++ },
		"it is another's, put back":    func(l *quotav1.QuotaLedger) { l.UID = "v" },
		"everything is taken away":     func(l *quotav1.QuotaLedger) { l.Entries = quotav1.QuotaLedgerEntries{} },
	} {
		t.Run(name, func(t *testing.T) {
			object := stored(t, someState())
			if snapshot, err := Snapshot(object); err != nil || snapshot.Edited {
				t.Fatalf("before the edit: %+v, error %v", snapshot, err)
			}
			edit(object)
			snapshot, err := Snapshot(object)
			if err != nil || !snapshot.Edited || snapshot.State.Used != nil || snapshot.State.Reservations != nil {
				t.Errorf("want it edited and empty, got %+v, error %v", snapshot, err)
			}
		})
	}
}

// An operator distinguishes a newer one's ledger from an edited one, in any
// encoding. So the checksum of a ledger must stay as it is.
func TestTheChecksumIsTheSameInEveryRelease(t *testing.T) {
	object := stored(t, someState())
	object.Entries.Encoding, object.Entries.Reservations = 12, []string{"a newer operator's"}
	object.Entries.Checksum = "80219957"
	if snapshot, err := Snapshot(object); err == nil || snapshot.Edited {
		t.Errorf("a newer operator's: want an error and no edit, got %+v, error %v", snapshot, err)
	}
	object.Entries.Reservations[0] = "somebody else's"
	if snapshot, err := Snapshot(object); err != nil || !snapshot.Edited {
		t.Errorf("a newer operator's, edited: want it edited, got %+v, error %v", snapshot, err)
	}
}

// Labels and annotations don't count.
func TestALabelIsNoEdit(t *testing.T) {
	object := stored(t, someState())
	object.Labels = map[string]string{"backup": "yes"}
	object.ResourceVersion = "18"
	if !Intact(object) {
		t.Error("want it intact")
	}
}

// An amount may be written in another way once it has been stored.
func TestEveryAmountSurvivesTheChecksum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := resource.NewScaledQuantity(rapid.Int64Min(0).Draw(t, "amount"), resource.Scale(rapid.IntRange(-9, 6).Draw(t, "scale")))
		amount.Format = rapid.SampledFrom([]resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}).Draw(t, "format")
		amount.Add(*resource.NewQuantity(rapid.Int64Range(0, 1<<40).Draw(t, "more"), amount.Format))
		object := stored(t, ledger.State{Used: corev1.ResourceList{"requests.memory": *amount}})
		if !Intact(object) {
			t.Fatalf("%s is not read as it was written", amount)
		}
		again, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(again, object); err != nil || !Intact(object) {
			t.Fatalf("%s is not read again as it was, error %v", amount, err)
		}
	})
}
