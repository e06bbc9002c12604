// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The load of 100 clients: 25 charges in a batch, while 100 reservations wait
// for their objects to be observed.
const (
	benchBatch    = 25
	benchInFlight = 100
)

func benchPod(i int) Reservation {
	return Reservation{
		Object: Object{
			Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
			Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)),
		},
		Amounts: corev1.ResourceList{
			corev1.ResourcePods:           resource.MustParse("1"),
			corev1.ResourceRequestsCPU:    resource.MustParse("250m"),
			corev1.ResourceRequestsMemory: resource.MustParse("256Mi"),
		},
		Expiry: time.Unix(1000, 0),
	}
}

func benchState() (Limits, State) {
	hard := corev1.ResourceList{
		corev1.ResourcePods:           resource.MustParse("1M"),
		corev1.ResourceRequestsCPU:    resource.MustParse("1M"),
		corev1.ResourceRequestsMemory: resource.MustParse("1Pi"),
	}
	basis := Basis{Quota: "q", Generation: 1, Digest: "d"}
	used := corev1.ResourceList{}
	for name := range hard {
		used[name] = resource.MustParse("1")
	}
	state := State{Basis: basis, Used: used, Reservations: map[Key]Reservation{}}
	for i := range benchInFlight {
		reservation := benchPod(i)
		state.Reservations[reservation.Key()] = reservation
	}
	return Limits{Basis: basis, Name: "team", Hard: hard}, state
}

// BenchmarkBatch is one batch of charges; divide by its size for one charge.
func BenchmarkBatch(b *testing.B) {
	enforced, state := benchState()
	exceeded := enforced.advising()
	exceeded.Hard = corev1.ResourceList{}
	for name := range enforced.Hard {
		exceeded.Hard[name] = resource.MustParse("1")
	}
	for name, limits := range map[string]Limits{"Deny": enforced, "Audit": enforced.advising(), "AuditExceeded": exceeded} {
		b.Run(name, func(b *testing.B) { benchCharges(b, limits, state) })
	}
}

func benchCharges(b *testing.B, limits Limits, state State) {
	b.Helper()
	var batch []Reservation
	for i := range benchBatch {
		batch = append(batch, benchPod(benchInFlight+i))
	}
	b.ReportAllocs()
	for b.Loop() {
		draft := Edit(state)
		for _, reservation := range batch {
			if _, granted := draft.Reserve(asking(limits, reservation)).(Granted); !granted {
				b.Fatal("not granted")
			}
		}
	}
}

// BenchmarkSettle settles all that is in flight.
func BenchmarkSettle(b *testing.B) {
	limits, state := benchState()
	source := schema.GroupResource{Resource: "pods"}
	count := Observation{
		Basis: limits.Basis, Used: state.Used, Counted: map[schema.GroupResource]uint64{source: 7},
		Sources: map[corev1.ResourceName][]schema.GroupResource{},
		Seen:    func(Reservation) bool { return true },
	}
	for name := range limits.Hard {
		count.Sources[name] = []schema.GroupResource{source}
	}
	b.ReportAllocs()
	for b.Loop() {
		draft := Edit(state)
		draft.Settle(count)
		if len(draft.State().Reservations) > 0 {
			b.Fatal("not settled")
		}
	}
}

// A name that is tried again and again has all its reservations in one slot. The
// ledger was written by another replica.
func BenchmarkEditOfOneName(b *testing.B) {
	_, state := benchState()
	for i := range 1200 {
		reservation := benchPod(0)
		reservation.UID, reservation.Attempt = types.UID(fmt.Sprintf("again-%d", i)), fmt.Sprintf("again-%d", i)
		state.Reservations[reservation.Key()] = reservation
	}
	for b.Loop() {
		Edit(state)
	}
}
