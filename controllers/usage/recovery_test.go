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
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const life = 90 * time.Second

// told counts the outcomes of ledgers and counts.
type told struct{ *metrics.Metrics }

func (told) Decided(outcomes.Decision) {}

// recoveryBench is an operator's process, and the API server that it talks to.
type recoveryBench struct {
	*Recovery
	t        *testing.T
	clock    *clocktesting.FakeClock
	store    *ledgerstore.Store
	quota    *quotav1.ClusterResourceQuota
	registry *prometheus.Registry
	metrics  *metrics.Metrics
	made     int
	// counted is how far objects are counted, and now the version of a live list.
	counted, now uint64
	// beforeCreating and beforeNaming, where set, run once before a ledger is created, and before a status is written.
	beforeCreating, beforeNaming func()
}

func newRecoveryBench(t *testing.T) *recoveryBench {
	t.Helper()
	known := runtime.NewScheme()
	if err := quotav1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	b := &recoveryBench{
		counted: 55, now: 77, t: t, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
		registry: prometheus.NewRegistry(),
		quota:    &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "q", Generation: 4}},
	}
	b.metrics = metrics.New(b.registry)
	server := fake.NewClientBuilder().WithScheme(known).WithObjects(b.quota).WithStatusSubresource(b.quota).
		WithInterceptorFuncs(interceptor.Funcs{Create: b.create, Update: b.update, SubResourcePatch: b.name}).Build()
	b.store = ledgerstore.New(server)
	b.restart(server)
	return b
}

// restart is another process, which has seen nothing.
func (b *recoveryBench) restart(server client.Client) {
	group := driver.New(b.t.Context(), b.clock, b.store, nil, driver.Options{})
	newest := func(context.Context, *quotav1.ClusterResourceQuota, ...schema.GroupResource) (ledger.Newest, error) {
		return ledger.Newest{Versions: map[schema.GroupResource]uint64{{Resource: "pods"}: 77}}, nil
	}
	parts := &Parts{
		Clock: b.clock, Client: server, Live: server, Group: group, Decode: ledgerstore.Snapshot, Outcomes: told{b.metrics}, Life: life,
	}
	b.Recovery = NewRecovery(parts, newest, func(context.Context, schema.GroupResource) (uint64, error) { return b.now, nil })
}

// numbering is a client of a server that gives objects UIDs and counts their changes.
func (b *recoveryBench) numbering(server client.WithWatch) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{Create: b.create, Update: b.update})
}

// The API server gives objects their UIDs, and counts their changes.
func (b *recoveryBench) create(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if before := b.beforeCreating; before != nil {
		b.beforeCreating = nil
		before()
	}
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
		wait, err := b.Ensure(b.t.Context(), b.stored(), map[schema.GroupResource]uint64{{Resource: "pods"}: b.counted})
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

// ledger returns the stored ledger.
func (b *recoveryBench) ledger() *quotav1.QuotaLedger {
	b.t.Helper()
	object := &quotav1.QuotaLedger{}
	if err := b.Client.Get(b.t.Context(), client.ObjectKey{Name: "team"}, object); err != nil {
		b.t.Fatal(err)
	}
	return object
}

// stored returns the quota as it is stored.
func (b *recoveryBench) stored() *quotav1.ClusterResourceQuota {
	b.t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := b.Client.Get(b.t.Context(), client.ObjectKeyFromObject(b.quota), quota); err != nil {
		b.t.Fatal(err)
	}
	return quota
}

func (b *recoveryBench) named() types.UID { return b.stored().Status.Ledger }

// lost is how many ledgers were counted as lost so.
func (b *recoveryBench) lost(how outcomes.Loss) int {
	b.t.Helper()
	families, err := b.registry.Gather()
	if err != nil {
		b.t.Fatal(err)
	}
	for _, family := range families {
		for _, series := range family.Metric {
			for _, label := range series.Label {
				if family.GetName() == "sharedquota_ledger_lost_total" && label.GetName() == "how" && label.GetValue() == string(how) {
					return int(series.GetCounter().GetValue())
				}
			}
		}
	}
	return 0
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
	if _, err := b.Group.Replace(b.t.Context(), "team", ledgerstore.Version(b.ledger()), state); err != nil {
		b.t.Fatal(err)
	}
	return b.ledger()
}

// deletes removes the ledger, as a user would.
func (b *recoveryBench) deletes() {
	b.t.Helper()
	if err := b.Client.Delete(b.t.Context(), b.ledger()); err != nil {
		b.t.Fatal(err)
	}
	b.Group.Gone("team")
}

// edits changes the ledger, as a user would.
func (b *recoveryBench) edits() {
	b.t.Helper()
	object := b.ledger()
	object.Entries.Reservations = nil
	if err := b.Client.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
	b.Group.Gone("team")
}

// takesBack is a restore of etcd to a version, after which a client has written a state that is true no longer.
func (b *recoveryBench) takesBack(now uint64, write func(*ledger.State)) {
	b.t.Helper()
	b.counted, b.now = now, now
	known := b.Group.Known("team")
	write(&known.State)
	if _, err := b.Group.Replace(b.t.Context(), "team", known.Version, known.State); err != nil {
		b.t.Fatal(err)
	}
	if b.recovers() == 0 {
		b.clock.Step(behindFor)
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
	shown := b.stored()
	b.Live = nil // no live look is needed
	if wait, err := b.Ensure(t.Context(), shown, nil); wait != 0 || err != nil {
		t.Errorf("want it open at once, got a wait of %s, error %v", wait, err)
	}
	b.wantOpen(0)
	if generation := b.ledger().Generation; generation != 2 {
		t.Errorf("it was written %d times, want once to create it, and once to open it", generation)
	}
}

// A status that names the ledger is the first that a quota gets, unless people were told more before.
func TestAStatusThatNamesTheFirstLedgerSaysThatItIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		begun      int
	}{
		"nothing is said yet": {begun: 1},
		"something is said":   {conditions: []metav1.Condition{{Type: quotav1.ConditionReady}}},
	} {
		t.Run(name, func(t *testing.T) {
			b, begun := newRecoveryBench(t), 0
			b.Begin = func(*quotav1.ClusterResourceQuota, time.Time) { begun++ }
			current := &quotav1.ClusterResourceQuota{}
			if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "team"}, current); err != nil {
				t.Fatal(err)
			}
			current.Status.Conditions = test.conditions
			if err := b.Client.Status().Update(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			b.recovers()
			if begun != test.begun {
				t.Errorf("it was begun %d times, want %d", begun, test.begun)
			}
		})
	}
}

// The charges in flight are unknown. Only the time shows when they have been stored, by the clock of each leader alone.
func TestALostLedgerIsSealedForTheLifeOfAReservation(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*recoveryBench)
		lost map[outcomes.Loss]int
	}{
		"deleted":      {lose: (*recoveryBench).deletes, lost: map[outcomes.Loss]int{outcomes.Deleted: 1}},
		"edited":       {lose: (*recoveryBench).edits, lost: map[outcomes.Loss]int{outcomes.Edited: 1}},
		"edited twice": {lose: func(b *recoveryBench) { b.edits(); b.edits() }, lost: map[outcomes.Loss]int{outcomes.Edited: 1}},
		"edited, and its name too": {lose: func(b *recoveryBench) {
			b.edits()
			quota := b.stored()
			quota.Status.Ledger = ""
			if err := b.Client.Status().Update(b.t.Context(), quota); err != nil {
				b.t.Fatal(err)
			}
		}, lost: map[outcomes.Loss]int{outcomes.Edited: 1}},
		"counted for a spec that was taken back": {
			lose: func(b *recoveryBench) { b.takesBack(77, func(s *ledger.State) { s.Generation = 5 }) },
			lost: map[outcomes.Loss]int{outcomes.Restored: 1},
		},
		"counted further than the API server has come": {
			lose: func(b *recoveryBench) { b.takesBack(54, func(*ledger.State) {}) }, lost: map[outcomes.Loss]int{outcomes.Restored: 1},
		},
		"knowing of joins to which the API server has not come": {
			lose: func(b *recoveryBench) { b.takesBack(77, func(s *ledger.State) { s.Joined = 1e6 }) },
			lost: map[outcomes.Loss]int{outcomes.Restored: 1},
		},
		"asked to know of joins to which the API server has not come": {
			lose: func(b *recoveryBench) { b.takesBack(77, func(s *ledger.State) { s.Asked = 1e6 }) },
			lost: map[outcomes.Loss]int{outcomes.Restored: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newRecoveryBench(t)
			b.serves()
			test.lose(b)
			for _, off := range []time.Duration{time.Hour, -3 * time.Hour, 0} {
				if wait := b.recovers(); wait != life {
					t.Errorf("want a new leader to wait for the life of a reservation, got %s", wait)
				}
				b.clock.Step(10 * time.Second)
				if wait := b.recovers(); wait != life-10*time.Second {
					t.Errorf("got a wait of %s after ten seconds", wait)
				}
				b.wantSealed()
				b.clock.SetTime(b.clock.Now().Add(off))
				b.restart(b.Client)
			}
			b.recovers()
			b.clock.Step(life - 1)
			b.recovers()
			b.wantSealed()
			b.clock.Step(1)
			if wait := b.recovers(); wait != 0 {
				t.Errorf("want no more wait, got %s", wait)
			}
			b.wantOpen(0)
			if current := b.ledger(); current.Entries.Used != nil || current.Entries.Counted["pods"] != "77" || current.Entries.Generation != 4 {
				t.Errorf("want nothing used until a count for generation 4 includes version 77, got %+v", current.Entries)
			}
			for _, how := range []outcomes.Loss{outcomes.Deleted, outcomes.Edited, outcomes.Restored} {
				if got := b.lost(how); got != test.lost[how] {
					t.Errorf("got %d losses that are %s, want %d", got, how, test.lost[how])
				}
			}
		})
	}
}

// The leader that named it died before it opened it.
func TestALedgerThatIsNamedIsOpened(t *testing.T) {
	b := newRecoveryBench(t)
	if _, err := b.Recovery.create(t.Context(), b.quota); err != nil {
		t.Fatal(err)
	}
	if err := b.Recovery.name(t.Context(), found{quota: b.stored(), ledger: b.ledger()}); err != nil {
		t.Fatal(err)
	}
	b.restart(b.Client)
	if wait := b.recovers(); wait != 0 {
		t.Errorf("want no wait, got %s", wait)
	}
	b.wantOpen(0)
}

// A machine may have read a ledger that was deleted before the cache first listed ledgers.
func TestALedgerThatOnlyTheMachineKnowsIsLookedFor(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	if err := b.Client.Delete(t.Context(), b.ledger()); err != nil {
		t.Fatal(err)
	}
	if wait := b.recovers(); wait <= lookSoon {
		t.Errorf("want a ledger that is sealed for the life of a reservation, got a wait of %s", wait)
	}
	b.wantSealed()
}

// A limit that was imposed on a sealed ledger holds once it is open.
func TestLimitsImposedDuringTheRecoveryHold(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	b.deletes()
	fence := ledger.Fence{Generation: 9, Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}, Until: time.Unix(1_800_000_060, 0)}
	if err := b.Group.Impose(t.Context(), "team", "q", func(draft *ledger.Draft) { draft.SetFence(fence) }); err != nil {
		t.Fatal(err)
	}
	b.recovers()
	b.clock.Step(life)
	b.recovers()
	b.wantOpen(0)
	if current := b.Group.Current("team").Fence; current.Generation != 9 {
		t.Errorf("want the fence kept, got %+v", current)
	}
}

// Between this process's look and its naming, another leader has opened a ledger,
// which admitted something, and a user has deleted that.
func TestALedgerIsNotOpenedWhereAnotherOneCameInBetween(t *testing.T) {
	b := newRecoveryBench(t)
	b.beforeNaming = func() {
		quota := b.stored()
		quota.Status.Ledger = "another"
		if err := b.Client.Status().Update(t.Context(), quota); err != nil {
			t.Fatal(err)
		}
	}
	if wait := b.recovers(); wait <= lookSoon {
		t.Errorf("want to wait: what the other one admitted isn't known, got %s", wait)
	}
	b.wantSealed()
}

// A new leader's watches, or late ones, are behind a ledger that was not taken
// back.
func TestALedgerThatIsOnlyAheadOfTheCountIsKept(t *testing.T) {
	b := newRecoveryBench(t)
	b.serves()
	b.counted = 54
	for range 4 {
		if wait := b.recovers(); wait != 0 {
			t.Errorf("want no wait, got %s", wait)
		}
		b.clock.Step(behindFor)
	}
	b.wantOpen(1)
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

func TestAQuotaThatIsGoneGetsNoOpenLedger(t *testing.T) {
	b := newRecoveryBench(t)
	shown := b.stored()
	if err := b.Client.Delete(t.Context(), b.quota.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ensure(t.Context(), shown, nil); !apierrors.IsNotFound(err) {
		t.Errorf("want not found, got %v", err)
	}
	made := &quotav1.QuotaLedger{}
	if err := b.Client.Get(t.Context(), client.ObjectKey{Name: "team"}, made); err == nil && made.Entries.Sealed == nil {
		t.Error("want none open")
	}
}

// A sealed ledger that a write of another kind has made is known before the cache shows it.
func TestASealedFirstLedgerIsOpenedAtOnce(t *testing.T) {
	b := newRecoveryBench(t)
	if err := b.Group.Impose(t.Context(), "team", "q", func(draft *ledger.Draft) { draft.Forget(7) }); err != nil {
		t.Fatal(err)
	}
	shown := b.stored()
	b.Live = nil
	if wait, err := b.Ensure(t.Context(), shown, nil); wait != 0 || err != nil {
		t.Errorf("want it open at once, got a wait of %s, error %v", wait, err)
	}
	b.wantOpen(0)
	if state := b.Group.Current("team"); state.Forgotten != 7 {
		t.Errorf("want what was imposed kept, got %+v", state)
	}
}

// Another replica has written since the memory's version.
func TestAFirstLedgerIsOpenedAsItIsStored(t *testing.T) {
	b := newRecoveryBench(t)
	if err := b.Group.Impose(t.Context(), "team", "q", func(draft *ledger.Draft) { draft.Forget(7) }); err != nil {
		t.Fatal(err)
	}
	known := b.Group.Known("team")
	written := known.State
	written.Fence = ledger.Fence{Generation: 9}
	if _, err := b.store.Swap(t.Context(), "team", known.Version, written); err != nil {
		t.Fatal(err)
	}
	b.recovers()
	b.wantOpen(0)
	if state := b.Group.Current("team"); state.Fence.Generation != 9 || state.Forgotten != 7 {
		t.Errorf("want the fence kept, got %+v", state)
	}
}

// Until it is deleted, requests are admitted by the ledger that the quota names. Here that is while another one is being made.
func TestASealLastsFromWhenItsPredecessorWent(t *testing.T) {
	b := newRecoveryBench(t)
	behind := b.stored()
	b.serves()
	b.restart(b.Client)
	b.beforeCreating = func() {
		b.clock.Step(20 * time.Second)
		b.deletes()
	}
	if wait, err := b.Ensure(t.Context(), behind, nil); err != nil || wait != life {
		t.Errorf("want the life of a reservation, got a wait of %s, error %v", wait, err)
	}
}

// A leader whose cache is behind opens no ledger beside the one that the quota names.
func TestAnOutdatedCacheOpensNoLedger(t *testing.T) {
	for name, lose := range map[string]func(*recoveryBench){
		"the ledger is there":    func(*recoveryBench) {},
		"the ledger was deleted": func(b *recoveryBench) { b.deletes() },
	} {
		t.Run(name, func(t *testing.T) {
			b := newRecoveryBench(t)
			behind := b.stored()
			b.serves()
			opened := b.ledger().UID
			lose(b)
			b.restart(b.Client)
			for range 3 {
				if _, err := b.Ensure(t.Context(), behind, nil); err != nil {
					t.Fatal(err)
				}
			}
			if current := b.ledger(); b.named() != opened || current.UID != opened && current.Entries.Sealed == nil {
				t.Errorf("want ledger %s or a sealed one, and that named, got %+v, named %q", opened, current, b.named())
			}
		})
	}
}
