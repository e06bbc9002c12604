// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// The escrow of a replica that is gone ends once its time is over, and all that is stored is counted.
func TestTheEscrowOfAReplicaThatIsGone(t *testing.T) {
	escrow := ledger.Escrow{
		EscrowKey: ledger.EscrowKey{Process: "e", Number: 1}, Holder: "gone", Amounts: corev1.ResourceList{countGadgets: resource.MustParse("3")},
	}
	for name, test := range map[string]struct {
		// renewed: its holder lives, and renewed it a moment ago.
		renewed bool
		// newest is how far a count must have come; that of this process has come to 11.
		newest   uint64
		unlisted schema.GroupResource
		err      error
		want     string
	}{
		"it goes if all is counted":                  {newest: 11, want: "q"},
		"it stays while something isn't":             {newest: 12, want: "q, gone 0"},
		"it stays while it can't be listed":          {unlisted: gadgets, want: "q, gone 0"},
		"it stays if the newest objects are unknown": {err: errors.New("it is down"), want: "q, gone 0"},
		"it stays before its time, unlooked":         {renewed: true, newest: 11, want: "q, gone 2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newExpiryBench(t)
				hold := func(escrow ledger.Escrow) {
					if err := b.Group.Edit(t.Context(), "red", func(draft *ledger.Draft) { draft.Hold(escrow) }); err != nil {
						t.Fatal(err)
					}
				}
				b.holds(ledger.Fence{})
				hold(escrow)
				b.settles()
				b.sees(time.Minute)
				if test.renewed {
					again := escrow
					again.Renewal = 2
					hold(again)
				}
				looks := 0
				escrows := NewEscrows(t.Context(), &b.Parts,
					func(context.Context, *quotav1.ClusterResourceQuota, ...schema.GroupResource) (ledger.Newest, error) {
						looks++
						if test.unlisted.Resource != "" {
							return ledger.Newest{Unlisted: sets.New(test.unlisted)}, nil
						}
						return ledger.Newest{Versions: map[schema.GroupResource]uint64{gadgets: test.newest}}, test.err
					})
				sighted := b.sight("red")
				over, _ := expired(sighted, sighted.State.Escrows, time.Minute)
				again := escrows.Follow(limiting(countGadgets), over)
				synctest.Wait()
				b.wantStored(test.want)
				if waits := again > 0; waits == test.renewed || looks > 0 != waits {
					t.Errorf("looked %d times, and again after %v", looks, again)
				}
				if _, err := b.expire(t.Context(), "red", b.sight("red")); err != nil {
					t.Error(err)
				}
				b.wantStored(test.want) // nothing else ends it
			})
		})
	}
}
