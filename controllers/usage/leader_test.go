// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// expiryBench is a leader that counts gadgets for quota red. It works in a synctest bubble.
type expiryBench struct {
	*Controller
	t        *testing.T
	watching *watchesBench
	store    *ledgerstore.Store
	// found is the result of a live look. resource/name -> metadata
	found map[string]metav1.ObjectMeta
	// before is called before the API server answers. If it fails, so does the call.
	// name that a live look is for, or "delete" for a ledger -> function
	before map[string]func() error
}

func newExpiryBench(t *testing.T) *expiryBench {
	t.Helper()
	world := newCluster("v1alpha1")
	world.create("g1") // in version 11
	b := &expiryBench{
		t: t, watching: newWatchesBench(t, world), before: map[string]func() error{},
		found: map[string]metav1.ObjectMeta{"namespaces/a": {Labels: map[string]string{"team": "red"}}},
	}
	b.watching.Count.Forget("red") // as the other bench defines it
	red, numbers := limiting(countGadgets), newRecoveryBench(t)
	server := numbers.numbering(fake.NewClientBuilder().WithScheme(numbers.Client.Scheme()).WithObjects(red).
		WithInterceptorFuncs(interceptor.Funcs{Delete: b.remove}).Build())
	b.store = ledgerstore.New(server)
	evaluators, figures := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), metrics.New(prometheus.NewRegistry())
	options := driver.Options{Options: machine.Options{MaxWaiting: 10}, CallTimeout: time.Second, EditTimeout: time.Second}
	group := driver.New(t.Context(), clock.RealClock{}, b.store, figures, options)
	b.Controller = NewController(t.Context(), Parts{
		Clock: clock.RealClock{}, Client: server, Evaluators: evaluators, Define: definition.Salvage,
		Events: EventSource{Metadata: liveLooks{bench: b}}, Discovery: b.watching.Discovery,
		Count: b.watching.Count, Group: group, Outcomes: told{figures}, Life: time.Minute, MaxDoubtful: 5,
	})
	b.Watches = b.watching.Watches
	b.Joins = NewJoins(t.Context(), &b.Parts, b.watching.Version, newNewest(t, world))
	if err := b.defines(red); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *expiryBench) remove(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
	return b.call("delete", func() error { return c.Delete(ctx, object, options...) })
}

func (b *expiryBench) call(name string, call func() error) error {
	if before := b.before[name]; before != nil {
		if err := before(); err != nil {
			return err
		}
	}
	return call()
}

// limiting is quota red, with a limit of 10 for each name.
func limiting(names ...corev1.ResourceName) *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "red", UID: "q", Generation: 1}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	quota.Spec.Quota.Hard = corev1.ResourceList{}
	for _, name := range names {
		quota.Spec.Quota.Hard[name] = resource.MustParse("10")
	}
	return quota
}

func (b *expiryBench) defines(quota *quotav1.ClusterResourceQuota) error {
	defer synctest.Wait()
	defined, err := definition.Compile(quota)
	return errors.Join(err, b.follow(defined))
}

// sees makes the leader notice the ledger's content, which is so old when the
// test goes on.
func (b *expiryBench) sees(age time.Duration) {
	b.sight("red")
	clock.RealClock{}.Sleep(age)
}

// holds stores the ledger of quota red, which has counted for generation 1.
func (b *expiryBench) holds(fence ledger.Fence, reservations ...ledger.Reservation) {
	b.t.Helper()
	state := ledger.State{Basis: ledger.Basis{Quota: "q", Generation: 1}, Fence: fence, Reservations: map[ledger.Key]ledger.Reservation{}}
	for _, reservation := range reservations {
		state.Reservations[reservation.Key()] = reservation
	}
	if _, err := b.Group.Replace(b.t.Context(), "red", machine.Version{}, state); err != nil {
		b.t.Fatal(err)
	}
}

// settles makes the ledger of quota red settle by the count, but for
// reservations.
func (b *expiryBench) settles() {
	b.t.Helper()
	var observed ledger.Observation
	b.Count.Read("red", func(view counting.View) { observed = counting.ObservationOf(view) })
	observed.Seen = func(ledger.Reservation) bool { return false }
	if err := b.Group.Edit(b.t.Context(), "red", func(draft *ledger.Draft) { draft.Settle(observed) }); err != nil {
		b.t.Fatal(err)
	}
}

// rewrites is another replica, whose write this one hasn't seen.
func (b *expiryBench) rewrites(change func(*ledger.State)) error {
	stored, err := b.store.Load(b.t.Context(), "red", machine.Load{})
	if err == nil {
		change(&stored.State)
		_, err = b.store.Swap(b.t.Context(), "red", stored.Version, stored.State)
	}
	return err
}

// deletes removes the ledger, as a user would.
func (b *expiryBench) deletes() error {
	delete(b.before, "delete")
	return b.Client.Delete(b.t.Context(), &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "red"}})
}

// replaces makes the ledger of a new quota, in another version than that of the old one.
func (b *expiryBench) replaces() error {
	err := b.deletes()
	if err == nil {
		_, err = b.store.Swap(b.t.Context(), "red", machine.Version{}, ledger.State{Basis: ledger.Basis{Quota: "new"}})
	}
	return errors.Join(err, b.rewrites(func(*ledger.State) {}))
}

// wantStored wants a ledger of a quota's UID with these reservations, and perhaps a fence.
func (b *expiryBench) wantStored(want string) {
	b.t.Helper()
	stored, err := b.store.Load(b.t.Context(), "red", machine.Load{})
	got := []string{string(stored.State.Quota)}
	for _, reservation := range stored.State.Reservations {
		got = append(got, reservation.Name)
	}
	for _, escrow := range stored.State.Escrows {
		got = append(got, fmt.Sprint(escrow.Holder, " ", escrow.Renewal))
	}
	slices.Sort(got[1:])
	if fence := stored.State.Fence; fence.Generation != 0 {
		got = append(got, fmt.Sprint("fence ", fence.Generation))
	}
	if got := strings.Join(got, ", "); got != want || err != nil {
		b.t.Errorf("want the ledger %q, got %q, error %v", want, got, err)
	}
}

// held is a reservation for a creation, or for an update from a version. Its writer's clock is hours behind, or ahead.
func held(name, from string) ledger.Reservation {
	reservation := reservationOf(name, types.UID("uid-"+name), from)
	reservation.Amounts = corev1.ResourceList{countGadgets: resource.MustParse("1")}
	reservation.Expiry = clock.RealClock{}.Now().Add(time.Duration(len(name)-3) * time.Hour)
	return reservation
}

// liveLooks are at one resource. The other methods are never called.
type liveLooks struct {
	metadata.Getter
	bench    *expiryBench
	resource schema.GroupVersionResource
}

func (l liveLooks) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return liveLooks{Getter: metadataOf{l.bench.watching.cluster}.Resource(resource), bench: l.bench, resource: resource}
}

func (l liveLooks) Namespace(string) metadata.ResourceInterface { return l }

func (l liveLooks) List(ctx context.Context, options metav1.ListOptions) (list *metav1.PartialObjectMetadataList, err error) {
	_, name, _ := strings.Cut(options.FieldSelector, "=")
	err = l.bench.call(name, func() (err error) { list, err = l.Getter.List(ctx, options); return err })
	return list, err
}

func (l liveLooks) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	found, isThere := l.bench.found[l.resource.Resource+"/"+name]
	return &metav1.PartialObjectMetadata{ObjectMeta: found}, l.bench.call(name, func() error {
		if !isThere {
			return apierrors.NewNotFound(l.resource.GroupResource(), name)
		}
		return nil
	})
}
