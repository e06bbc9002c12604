// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/prometheus/client_golang/prometheus"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/trail"
)

const life = 90 * time.Second

// recoveryBench is an operator's process, and the API server that it talks to.
type recoveryBench struct {
	*Recovery
	t     *testing.T
	clock *clocktesting.FakeClock
	store *ledgerstore.Store
	quota *quotav1.ClusterResourceQuota
	made  int
	// beforeNaming, where set, runs once before a status is written.
	beforeNaming func()
}

func newRecoveryBench(t *testing.T) *recoveryBench {
	t.Helper()
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	b := &recoveryBench{
		t: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
		quota: &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "q"}},
	}
	server := fake.NewClientBuilder().WithScheme(known).WithObjects(b.quota).WithStatusSubresource(b.quota).
		WithInterceptorFuncs(interceptor.Funcs{Create: b.create, Update: b.update, SubResourcePatch: b.name}).Build()
	b.store = ledgerstore.New(server)
	b.restart(server)
	return b
}

// restart is another process, which has seen nothing.
func (b *recoveryBench) restart(server client.Client) {
	group := driver.New(b.t.Context(), b.clock, b.store, nil, driver.Options{})
	newest := func(context.Context, *quotav1.ClusterResourceQuota, ...schema.GroupResource) (map[schema.GroupResource]uint64, error) {
		return map[schema.GroupResource]uint64{{Resource: "pods"}: 77}, nil
	}
	b.Recovery = NewRecovery(b.clock, server, server, group, trail.New(ledgerstore.Intact), ledgerstore.Snapshot, newest,
		metrics.New(prometheus.NewRegistry()), life)
}

// numbering is a client of a server that gives objects UIDs and counts their changes.
func (b *recoveryBench) numbering(server client.WithWatch) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{Create: b.create, Update: b.update})
}

// The API server gives objects their UIDs, and counts their changes.
func (b *recoveryBench) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	b.made++
	object.SetUID(types.UID(fmt.Sprintf("ledger-%d", b.made)))
	object.SetGeneration(1)
	return c.Create(ctx, object, options...)
}

func (b *recoveryBench) update(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	current := &quotav1.QuotaLedger{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), current); err != nil {
		return err
	}
	object.SetUID(current.UID)
	object.SetGeneration(current.Generation + 1)
	return c.Update(ctx, object, options...)
}

func (b *recoveryBench) name(
	ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption,
) error {
	if before := b.beforeNaming; before != nil {
		b.beforeNaming = nil
		before()
	}
	return c.SubResource(subresource).Patch(ctx, object, patch, options...)
}

// recovers calls Ensure until there is nothing more to do for now, and returns how
// long that is.
func (b *recoveryBench) recovers() time.Duration {
	b.t.Helper()
	for range 20 {
		wait, err := b.Ensure(b.t.Context(), b.quota)
		if err != nil {
			b.t.Fatal(err)
		}
		if wait != lookSoon {
			return wait
		}
	}
	b.t.Fatal("it doesn't come to an end")
	return 0
}

// ledger returns what is stored.
func (b *recoveryBench) ledger() *quotav1.QuotaLedger {
	b.t.Helper()
	object := &quotav1.QuotaLedger{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Name: "team"}, object); err != nil {
		b.t.Fatal(err)
	}
	return object
}

func (b *recoveryBench) named() types.UID {
	b.t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := b.client.Get(b.t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
		b.t.Fatal(err)
	}
	return quota.Status.Ledger
}

// serves opens a first ledger, and admits a pod.
func (b *recoveryBench) serves() *quotav1.QuotaLedger {
	b.t.Helper()
	b.recovers()
	held := ledger.Reservation{
		Object:  ledger.Object{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespace: "a", Name: "p", UID: "p"},
		Amounts: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}, Expiry: b.clock.Now().Add(life),
	}
	state := ledger.State{
		Basis: ledger.Basis{Quota: "q", Digest: "d"}, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("3")},
		Counted:      map[schema.GroupResource]uint64{{Resource: "pods"}: 55},
		Reservations: map[ledger.Key]ledger.Reservation{held.Key(): held},
	}
	if _, err := b.group.Replace(b.t.Context(), "team", ledgerstore.Version(b.ledger()), state); err != nil {
		b.t.Fatal(err)
	}
	b.trail.Saw(b.ledger())
	return b.ledger()
}

// deletes is somebody; the operator's process may see it.
func (b *recoveryBench) deletes(seen bool) {
	b.t.Helper()
	object := b.ledger()
	if err := b.client.Delete(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
	b.group.Gone("team")
	if seen {
		b.trail.Deleted(object, true)
	}
}

// garble makes an entry of this version of the ledger one that can't be read. Either all
// others can, or nothing.
func (b *recoveryBench) garble(previous *quotav1.QuotaLedger, remains bool) {
	b.t.Helper()
	b.group.Gone("team")
	b.decode = func(object *quotav1.QuotaLedger) (machine.Snapshot, error) {
		snapshot, err := ledgerstore.Snapshot(object)
		if object.UID != previous.UID || object.ResourceVersion != previous.ResourceVersion {
			return snapshot, err
		}
		edited := machine.Snapshot{Version: snapshot.Version, Edited: true}
		if remains {
			edited.Remains = &snapshot.State
		}
		return edited, err
	}
}

// edits is somebody; the operator's process may see it.
func (b *recoveryBench) edits(seen bool) {
	b.t.Helper()
	object := b.ledger()
	object.Entries.Reservations = nil
	if err := b.client.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
	b.group.Gone("team")
	if seen {
		b.trail.Saw(b.ledger())
	}
}

// wantOpen wants the stored ledger intact, open and named, with so many reservations.
func (b *recoveryBench) wantOpen(reservations int) {
	b.t.Helper()
	current := b.ledger()
	snapshot, err := ledgerstore.Snapshot(current)
	if err != nil || snapshot.Edited || !snapshot.State.Sealed.IsZero() || snapshot.State.Quota != "q" ||
		len(snapshot.State.Reservations) != reservations {
		b.t.Errorf("want it open with %d reservations, got %+v, error %v", reservations, snapshot, err)
	}
	if named := b.named(); named != current.UID {
		b.t.Errorf("the status names %q, want %q", named, current.UID)
	}
}

// wantSealed wants a ledger that grants nothing, and that the status doesn't name.
func (b *recoveryBench) wantSealed() {
	b.t.Helper()
	current := b.ledger()
	if !ledgerstore.Intact(current) || current.Entries.Sealed == nil || b.named() == current.UID {
		b.t.Errorf("want it sealed and not named, got %+v, named %q", current, b.named())
	}
}

func TestAFirstLedgerIsOpenedAtOnce(t *testing.T) {
	b := newRecoveryBench(t)
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(0)
}

func TestADeletedLedgerThatWasSeenToItsEndIsBackAtOnce(t *testing.T) {
	b := newRecoveryBench(t)
	previous := b.serves()
	b.deletes(true)
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(1)
	if current := b.ledger(); current.UID == previous.UID || current.Entries.Counted["pods"] != "55" || current.Entries.Used.Pods().Value() != 3 {
		t.Errorf("want another object that says the same, got %+v", current)
	}
}

// The deletion's event may come after the ledger was found missing.
func TestADeletedLedgerIsBackOnceItsEndWasSeen(t *testing.T) {
	b := newRecoveryBench(t)
	previous := b.serves()
	b.deletes(false)
	if wait := b.recovers(); wait <= lookSoon {
		t.Errorf("want to wait, got %s", wait)
	}
	b.wantSealed()
	b.trail.Deleted(previous, true)
	b.trail.Saw(b.ledger())
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no more wait, got %s", wait)
	}
	b.wantOpen(1)
}

func TestALedgerThatNobodyKnowsIsSealedForTheLifeOfAReservation(t *testing.T) {
	for name, lose := range map[string]func(*recoveryBench){
		"deleted":               func(b *recoveryBench) { b.deletes(false) },
		"edited":                func(b *recoveryBench) { b.edits(true) },
		"edited while it began": func(b *recoveryBench) { b.edits(true); b.edits(true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newRecoveryBench(t)
			b.serves()
			b.restart(b.client)
			lose(b)
			for range 3 {
				if wait := b.recovers(); wait <= life/2 || wait > life+time.Second {
					t.Errorf("want to wait for the life of a reservation, got %s", wait)
				}
				b.wantSealed()
				b.clock.Step(10 * time.Second)
				b.restart(b.client) // which must not begin it again, nor end it
			}
			b.clock.Step(life - 30*time.Second)
			b.recovers()
			b.wantSealed()
			b.clock.Step(time.Second)
			if wait := b.recovers(); wait != 0 {
				t.Errorf("want no more wait, got %s", wait)
			}
			b.wantOpen(0)
			if current := b.ledger(); current.Entries.Used != nil || current.Entries.Counted["pods"] != "77" {
				t.Errorf("want nothing used until a count includes version 77, got %+v", current.Entries)
			}
		})
	}
}

func TestAnEditThatWasSeenIsTakenBack(t *testing.T) {
	b := newRecoveryBench(t)
	previous := b.serves()
	b.edits(true)
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(1)
	if current := b.ledger(); current.UID != previous.UID {
		t.Error("want the same object")
	}
}

// Who can compute the checksum, and an operator of before, may leave what can't be read.
func TestEntriesThatCannotBeReadAreLeftOut(t *testing.T) {
	for name, lose := range map[string]func(*recoveryBench){
		"at once":                           func(*recoveryBench) {},
		"if the ledger is edited besides":   func(b *recoveryBench) { b.edits(true) },
		"if the ledger is deleted, as well": func(b *recoveryBench) { b.deletes(true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newRecoveryBench(t)
			previous := b.serves()
			b.garble(previous, true)
			lose(b)
			if wait := b.recovers(); wait != 0 {
				t.Errorf("want no wait, got %s", wait)
			}
			b.wantOpen(1)
			if current := b.ledger(); current.ResourceVersion == previous.ResourceVersion && current.UID == previous.UID {
				t.Errorf("want it written anew, got %+v", current)
			}
		})
	}
}

// Only time can tell what was in flight.
func TestALedgerOfWhichNothingCanBeReadIsAsGoodAsUnknown(t *testing.T) {
	for name, lose := range map[string]func(*recoveryBench){
		"as it is":                     func(*recoveryBench) {},
		"edited besides":               func(b *recoveryBench) { b.edits(true) },
		"deleted":                      func(b *recoveryBench) { b.deletes(true) },
		"deleted, as nobody has noted": func(b *recoveryBench) { b.deletes(false) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newRecoveryBench(t)
			b.garble(b.serves(), false)
			lose(b)
			if wait := b.recovers(); wait <= life/2 {
				t.Errorf("want to wait for the life of a reservation, got %s", wait)
			}
			b.wantSealed()
			b.clock.Step(life + time.Second)
			if wait := b.recovers(); wait != 0 {
				t.Errorf("want no more wait, got %s", wait)
			}
			b.wantOpen(0)
		})
	}
}

// Its event is on the way: nothing is given up before that.
func TestAnEditThatWasNotSeenYetIsWaitedFor(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	b.edits(false)
	for range 3 {
		if wait, err := b.Ensure(t.Context(), b.quota); wait != lookSoon || err != nil {
			t.Errorf("want to look again soon, got %s, error %v", wait, err)
		}
	}
	b.trail.Saw(b.ledger())
	b.recovers()
	b.wantOpen(1)
}

// Whoever named it died before they opened it.
func TestALedgerThatIsNamedIsOpened(t *testing.T) {
	b := newRecoveryBench(t)
	stored := found{quota: b.quota}
	if err := b.Recovery.create(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	stored.quota, stored.ledger = b.quota.DeepCopy(), b.ledger()
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(b.quota), stored.quota); err != nil {
		t.Fatal(err)
	}
	if err := b.Recovery.name(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	b.restart(b.client)
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(0)
}

// A machine may have read a ledger that was deleted before the cache first listed ledgers.
func TestALedgerThatOnlyTheMachineKnowsIsLookedFor(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	if err := b.client.Delete(t.Context(), b.ledger()); err != nil {
		t.Fatal(err)
	}
	if wait := b.recovers(); wait <= lookSoon {
		t.Errorf("want a ledger that is sealed for the life of a reservation, got a wait of %s", wait)
	}
	b.wantSealed()
}

// What was imposed on a ledger that is being rebuilt holds once it is open.
func TestLimitsImposedDuringTheRecoveryHold(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	b.deletes(true)
	fence := ledger.Fence{Generation: 9, Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}, Until: time.Unix(1_800_000_060, 0)}
	if err := b.group.Impose(t.Context(), "team", "q", func(draft *ledger.Draft) { draft.SetFence(fence) }); err != nil {
		t.Fatal(err)
	}
	b.recovers()
	b.wantOpen(1)
	if current := b.group.Current("team").Fence; current.Generation != 9 {
		t.Errorf("want the fence kept, got %+v", current)
	}
}

// Between this process's look and its naming, another leader has opened a ledger,
// which admitted something, and somebody has deleted that.
func TestALedgerIsNotOpenedWhereAnotherOneCameInBetween(t *testing.T) {
	b := newRecoveryBench(t)
	b.beforeNaming = func() {
		quota := &quotav1.ClusterResourceQuota{}
		if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(b.quota), quota); err != nil {
			t.Fatal(err)
		}
		quota.Status.Ledger = "another"
		if err := b.client.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	}
	if wait := b.recovers(); wait <= lookSoon {
		t.Errorf("want to wait: what the other one admitted isn't known, got %s", wait)
	}
	b.wantSealed()
}

// The quota is another one of the same name, and nothing was admitted under it.
func TestTheLedgerOfAnotherQuotaIsReplaced(t *testing.T) {
	b := newRecoveryBench(t)
	foreign := ledger.State{Basis: ledger.Basis{Quota: "before"}}
	if _, err := b.store.Swap(t.Context(), "team", machine.Version{}, foreign); err != nil {
		t.Fatal(err)
	}
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(0)
}

// What an older operator wrote has no checksum and was never named. It isn't the
// first of its quota.
func TestALedgerWithoutAChecksumIsNotForgotten(t *testing.T) {
	b := newRecoveryBench(t)
	if _, err := b.store.Swap(t.Context(), "team", machine.Version{}, ledger.State{Basis: ledger.Basis{Quota: "q"}}); err != nil {
		t.Fatal(err)
	}
	old := b.ledger()
	old.Entries.Encoding, old.Entries.Checksum = 1, ""
	if err := b.client.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	b.trail.Saw(b.ledger())
	if wait := b.recovers(); wait <= life/2 {
		t.Errorf("want to wait for the life of a reservation, got %s", wait)
	}
	b.wantSealed()
}

func TestAQuotaThatIsGoneGetsNoLedger(t *testing.T) {
	b := newRecoveryBench(t)
	if err := b.client.Delete(t.Context(), b.quota.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ensure(t.Context(), b.quota); !apierrors.IsNotFound(err) {
		t.Errorf("want not found, got %v", err)
	}
	if b.made != 0 {
		t.Errorf("want no ledger made, got %d", b.made)
	}
}
