// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

func pods(number int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(number, resource.DecimalSI)}
}

// A charge causes a read of the ledger, and then a compare-and-swap. The charge is answered
// only after the write has succeeded. Then the machine asks for the count, because there may
// be something to settle. The caller of Step makes the calls that the effects ask for, and
// hands each reply back as the next event.
func Example() {
	basis := ledger.Basis{Quota: "uid-of-the-quota", Generation: 1, Digest: "digest-of-the-spec"}
	stored := machine.Snapshot{
		Version: machine.Version{ResourceVersion: 7, UID: "uid-of-the-ledger"},
		State:   ledger.State{Basis: basis, Used: pods(1)},
	}
	written := machine.Version{ResourceVersion: 8, UID: stored.Version.UID}
	podsResource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	charge := ledger.Charge{
		Limits: ledger.Limits{Name: "team", Basis: basis, Hard: pods(2)},
		Reservation: ledger.Reservation{
			Object:  ledger.Object{Resource: podsResource, Namespace: "shop", Name: "web", UID: "uid-of-web"},
			Amounts: pods(1),
		},
	}

	enforcement := machine.New(machine.Options{MaxWaiting: 100})
	for _, event := range []machine.Event{
		machine.Charge{ID: 1, Charge: charge},
		machine.Loaded{Snapshot: stored},
		machine.Swapped{Version: written, Took: 5 * time.Millisecond},
	} {
		for _, effect := range enforcement.Step(time.Unix(1000, 0), event) {
			fmt.Printf("%T causes %T\n", event, effect)
		}
	}
	state := enforcement.Current().State
	reserved := state.Reserved()
	fmt.Println("used", state.Used.Pods(), "reserved", reserved.Pods())

	// Output:
	// machine.Charge causes machine.Load
	// machine.Loaded causes machine.Swap
	// machine.Swapped causes machine.Committed
	// machine.Swapped causes machine.Answer
	// machine.Swapped causes machine.Observe
	// used 1 reserved 1
}
