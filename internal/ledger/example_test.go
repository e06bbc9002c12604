// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

func pods(number int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(number, resource.DecimalSI)}
}

// A quota allows two pods, and one has been counted. The first charge is granted
// and reserved, so the second is denied. Then the count includes the first pod,
// and a settle turns its reservation into use: the sum of used and reserved stays
// the same.
func Example() {
	basis := ledger.Basis{Quota: "uid-of-the-quota", Generation: 1, Digest: "digest-of-the-spec"}
	limits := ledger.Limits{Name: "team", Basis: basis, Hard: pods(2)}
	podsResource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	state := ledger.State{Basis: basis, Used: pods(1)}

	draft := ledger.Edit(state)
	for _, name := range []string{"web", "job"} {
		object := ledger.Object{Resource: podsResource, Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}
		charge := ledger.Charge{Limits: limits, Reservation: ledger.Reservation{Object: object, Amounts: pods(1)}}
		switch decision := draft.Reserve(charge).(type) {
		case ledger.Granted:
			fmt.Println(name, "is granted")
		case ledger.Denied:
			fmt.Println(name, "is denied: used", decision.Used.Pods(), "of", decision.Limited.Pods())
		}
	}
	state = draft.State() // store it before you answer anybody
	reserved := state.Reserved()
	fmt.Println("used", state.Used.Pods(), "reserved", reserved.Pods())

	draft = ledger.Edit(state)
	draft.Settle(ledger.Observation{
		Basis: basis, Used: pods(2),
		Sources: map[corev1.ResourceName][]schema.GroupResource{corev1.ResourcePods: {podsResource.GroupResource()}},
		Counted: map[schema.GroupResource]uint64{podsResource.GroupResource(): 42, ledger.Namespaces: 1},
		Seen:    func(reservation ledger.Reservation) bool { return reservation.Name == "web" },
	})
	state = draft.State()
	reserved = state.Reserved()
	fmt.Println("used", state.Used.Pods(), "reserved", reserved.Pods())

	// Output:
	// web is granted
	// job is denied: used 2 of 2
	// used 1 reserved 1
	// used 2 reserved 0
}
