// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

func TestWhichUpdatesOfAQuotaPass(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*quotav1.ClusterResourceQuota)
		spec, ledger bool
	}{
		"its status":         {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Summary = "pods: 1/2" }},
		"its labels":         {change: func(q *quotav1.ClusterResourceQuota) { q.Labels = map[string]string{"a": "b"} }},
		"its spec":           {change: func(q *quotav1.ClusterResourceQuota) { q.Generation++ }, spec: true, ledger: true},
		"it is another":      {change: func(q *quotav1.ClusterResourceQuota) { q.UID = "b" }, spec: true, ledger: true},
		"its ledger's name":  {change: func(q *quotav1.ClusterResourceQuota) { q.Status.Ledger = "c" }, ledger: true},
		"nothing: a re-list": {change: func(*quotav1.ClusterResourceQuota) {}},
	} {
		t.Run(name, func(t *testing.T) {
			before := &quotav1.ClusterResourceQuota{}
			before.UID, before.Generation = "a", 1
			after := before.DeepCopy()
			test.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			if spec, ledger := SpecChanged().Update(update), SpecOrLedgerChanged().Update(update); spec != test.spec || ledger != test.ledger {
				t.Errorf("got %t and %t, want %t and %t", spec, ledger, test.spec, test.ledger)
			}
			if !SpecChanged().Create(event.CreateEvent{Object: after}) || !SpecOrLedgerChanged().Delete(event.DeleteEvent{Object: after}) {
				t.Error("want every creation and deletion passed")
			}
		})
	}
}
