// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/trail"
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
			controller := NewLedgerController(nil, group, trail.New(ledgerstore.Intact), nil, nil, func([]string) { told++ })
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
