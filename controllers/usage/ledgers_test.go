// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// The machine of the quota knows version 7 of its ledger.
func TestAnOwnWriteOfALedgerCausesNoReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		version int
		// created: the event is of a creation. another: the update stands for a deletion and a creation.
		created, another bool
		changed, enqueue bool
	}{
		"one that this process wrote":    {version: 7, changed: true},
		"one before that":                {version: 6, changed: true},
		"one that another replica wrote": {version: 8, enqueue: true},
		"one that is new":                {version: 7, created: true, enqueue: true},
		"one in place of another":        {version: 7, another: true, enqueue: true},
	} {
		t.Run(name, func(t *testing.T) {
			group := driver.New(t.Context(), clocktesting.NewFakeClock(time.Unix(0, 0)), nil, nil, driver.Options{})
			group.Saw("red", machine.Snapshot{Version: machine.Version{UID: "l", ResourceVersion: 7}})
			told := 0
			controller := NewLedgerController(&Parts{Group: group, OnChange: func([]string) { told++ }})
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			ledger := &quotav1.QuotaLedger{}
			ledger.Name, ledger.UID, ledger.ResourceVersion = "red", "l", strconv.Itoa(test.version)
			before := ledger.DeepCopy()
			if test.another {
				before.UID = "before"
			}
			if test.created {
				controller.followed().Create(t.Context(), event.CreateEvent{Object: ledger}, queue)
			} else {
				controller.followed().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: ledger}, queue)
			}
			if changed, enqueued := told > 0, queue.Len() > 0; changed != test.changed || enqueued != test.enqueue {
				t.Errorf("told %t and asked for a reconcile %t, want %t and %t", changed, enqueued, test.changed, test.enqueue)
			}
		})
	}
}

func TestAQuotaThatIsGoneIsForgotten(t *testing.T) {
	const old, renewed = types.UID("old"), types.UID("new")
	for name, test := range map[string]struct {
		// quota and ledger are whose UIDs the API server has now; empty for none.
		quota, ledger types.UID
		want          []string
	}{
		"as ever":                          {quota: old, ledger: old},
		"the ledger alone":                 {quota: old},
		"deleted":                          {want: []string{"red"}},
		"made again, and has no ledger":    {quota: renewed},
		"deleted, and its ledger is there": {ledger: old},
	} {
		t.Run(name, func(t *testing.T) {
			known := runtime.NewScheme()
			if err := quotav1.AddToScheme(known); err != nil {
				t.Fatal(err)
			}
			server := fake.NewClientBuilder().WithScheme(known)
			if test.quota != "" {
				server = server.WithObjects(&quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "red", UID: test.quota}})
			}
			if test.ledger != "" {
				server = server.WithObjects(&quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "red", ResourceVersion: "9"}})
			}
			snapshot := func(resourceVersion uint64, quota types.UID) machine.Snapshot {
				return machine.Snapshot{
					Version: machine.Version{UID: "l", ResourceVersion: resourceVersion}, State: ledger.State{Basis: ledger.Basis{Quota: quota}},
				}
			}
			group := driver.New(t.Context(), clocktesting.NewFakeClock(time.Unix(0, 0)), nil, nil, driver.Options{})
			group.Saw("red", snapshot(7, old))
			var told []string
			controller := NewLedgerController(&Parts{
				Client: server.Build(), Group: group, Outcomes: gone{told: &told}, OnChange: func([]string) {},
				Decode: func(*quotav1.QuotaLedger) (machine.Snapshot, error) { return snapshot(9, test.ledger), nil },
			})
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: "red"}}
			if _, err := controller.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(told, test.want) {
				t.Errorf("told %q, want %q", told, test.want)
			}
		})
	}
}

// gone remembers the quotas that are no more.
type gone struct {
	outcomes.Observer
	told *[]string
}

func (g gone) Gone(quota string) { *g.told = append(*g.told, quota) }
