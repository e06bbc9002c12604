// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// openLedger is stored for the quota team, and open.
func openLedger() *quotav1.QuotaLedger {
	return &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{
		Name: "team", UID: "open", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota", Name: "team", UID: "uid", Controller: ptr.To(true),
		}},
	}}
}

// newNamingBench has a quota whose status names a ledger, and this ledger. Each live
// read of it is told of.
func newNamingBench(t *testing.T, named types.UID, stored *quotav1.QuotaLedger, read func(*bench)) *bench {
	t.Helper()
	quota := team("configmaps", "5")
	quota.Status.Ledger = named
	objects := []client.Object{quota, registered()}
	if stored != nil {
		objects = append(objects, stored)
	}
	b := newBench(t, objects...)
	b.counts(t, quota, 1)
	b.Ledgers.Intact = func(ledger *quotav1.QuotaLedger) bool { return ledger.Entries.Checksum != "edited" }
	b.Ledgers.Live = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			read(b)
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("a live read has no deadline")
			}
			return c.Get(ctx, key, object, options...)
		},
	})
	return b
}

func TestTheStatusNamesTheLedgerThatIsOpen(t *testing.T) {
	for name, test := range map[string]struct {
		named  types.UID
		stored *quotav1.QuotaLedger
		change func(*bench)
		want   types.UID
		// reads are how often the ledger is read live.
		reads int
	}{
		"after an edit":                     {named: "edited", stored: openLedger(), want: "open", reads: 1},
		"after it was emptied":              {named: "", stored: openLedger(), want: "open", reads: 1},
		"and asks nobody while all is well": {named: "open", stored: openLedger(), want: "open"},
		"not one that is sealed": {named: "before", stored: func() *quotav1.QuotaLedger {
			sealed := openLedger()
			sealed.Entries.Sealed = ptr.To(metav1.NewTime(moment))
			return sealed
		}(), want: "before", reads: 1},
		// Without its seal it would look open.
		"not an edited one": {named: "before", stored: func() *quotav1.QuotaLedger {
			edited := openLedger()
			edited.Entries.Checksum = "edited"
			return edited
		}(), want: "before", reads: 1},
		"not one of another quota": {named: "before", stored: func() *quotav1.QuotaLedger {
			another := openLedger()
			another.OwnerReferences[0].UID = "another"
			return another
		}(), want: "before", reads: 1},
		"not one that is gone": {named: "before", want: "before"},
		// While a ledger is rebuilt, Recovery goes by the name of the one before it.
		"not while this process knows of none that is open": {
			named: "before", stored: openLedger(), change: func(b *bench) {
				state := b.Group.Current("team")
				state.Sealed = moment
				b.Group.Gone("team")
				b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 2}, State: state})
			}, want: "before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			b := newNamingBench(t, test.named, test.stored, func(*bench) { reads++ })
			if test.change != nil {
				test.change(b)
			}
			b.reconcile(t)
			if got := b.status(t).Ledger; got != test.want || reads != test.reads {
				t.Errorf("the status names %q after %d live reads, want %q after %d", got, reads, test.want, test.reads)
			}
		})
	}
}

// The ledger is deleted after it was read, and the next one is named and opened.
func TestTheNameOfANewerLedgerIsKept(t *testing.T) {
	b := newNamingBench(t, "edited", openLedger(), func(b *bench) {
		quota := &quotav1.ClusterResourceQuota{}
		if err := b.client.Get(t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
			t.Fatal(err)
		}
		quota.Status.Ledger = "newer"
		if err := b.client.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	})
	b.reconcile(t)
	if got := b.status(t); got.Ledger != "newer" || b.writes != 1 || len(got.Conditions) > 0 {
		t.Errorf("the status names %q, want newer: %d writes, %v", got.Ledger, b.writes, got.Conditions)
	}
}
