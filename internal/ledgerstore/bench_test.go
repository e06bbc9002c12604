// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledgerstore

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func benchLedger() ledger.State {
	state := ledger.State{
		Basis:   ledger.Basis{Quota: "q", Generation: 1, Digest: "d"},
		Used:    corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")},
		Counted: map[schema.GroupResource]uint64{{Resource: "pods"}: 7}, Reservations: map[ledger.Key]ledger.Reservation{},
	}
	for i := range 100 {
		reservation := ledger.Reservation{
			Object: ledger.Object{
				Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: "team-a", Name: fmt.Sprintf("web-%d", i),
				UID: types.UID(fmt.Sprintf("e2a1ad51-59d1-4a1f-8f52-%012d", i)),
			},
			Amounts: corev1.ResourceList{
				corev1.ResourcePods: resource.MustParse("1"), corev1.ResourceRequestsCPU: resource.MustParse("250m"),
				corev1.ResourceRequestsMemory: resource.MustParse("256Mi"),
			},
			Expiry: time.Unix(1_800_000_000, 0),
		}
		state.Reservations[reservation.Key()] = reservation
	}
	return state
}

// BenchmarkEncode is the operator's cost for a write of 100 reservations, but for
// the connection.
func BenchmarkEncode(b *testing.B) {
	state := benchLedger()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(encode("team", state, edition{"u", 2})); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSnapshot is each replica's cost for another's write.
func BenchmarkSnapshot(b *testing.B) {
	written := encode("team", benchLedger(), edition{"u", 2})
	written.Generation, written.UID = 2, "u" // as the API server does
	stored, err := json.Marshal(written)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		object := &quotav1.QuotaLedger{}
		if err := json.Unmarshal(stored, object); err != nil {
			b.Fatal(err)
		}
		if snapshot, err := Snapshot(object); err != nil || snapshot.Edited {
			b.Fatalf("want the ledger, got %+v, error %v", snapshot, err)
		}
	}
}

// BenchmarkChecksum is the part of either that the checksum takes.
func BenchmarkChecksum(b *testing.B) {
	object := encode("team", benchLedger(), edition{"u", 2})
	object.Generation, object.UID = 2, "u"
	b.ReportAllocs()
	for b.Loop() {
		if !Intact(object) {
			b.Fatal("want it intact")
		}
	}
}
