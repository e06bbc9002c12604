// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// served is a Handler with all that it works on, within a bubble.
type served struct {
	handler *Handler
	group   *driver.Group
	store   *ledgers
	told    *told
	// live has the API server's objects; the index has those that it had at first.
	live  client.Client
	index *namespaces.Index
}

// inContact is a contact that is never lost.
type inContact struct{}

func (inContact) Await(context.Context) error { return nil }

func (inContact) While(ctx context.Context) (while context.Context, stop func()) {
	return ctx, func() {}
}

// show makes the watches show the API server's present objects.
func show(ctx context.Context, tb testing.TB, index *namespaces.Index, live client.Client) {
	tb.Helper()
	quotas := &quotav1.ClusterResourceQuotaList{}
	namespaces := &metav1.PartialObjectMetadataList{}
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	for _, list := range []client.ObjectList{quotas, namespaces} {
		if err := live.List(ctx, list); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range quotas.Items {
		index.Quotas().Set(&quotas.Items[i])
	}
	for i := range namespaces.Items {
		index.Namespaces().Set(&namespaces.Items[i])
	}
}

// quotaOf limits the namespaces of the team "shop".
func quotaOf(name string, hard ...string) *quotav1.ClusterResourceQuota {
	return &quotav1.ClusterResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid of " + name), Generation: 1},
		Spec: quotav1.ClusterResourceQuotaSpec{
			Selector: quotav1.ClusterResourceQuotaSelector{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}},
			},
			Quota: quotav1.ResourceQuotaSpec{Hard: list(hard...)},
		},
	}
}

func namespaceOf(name, team string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"team": team}}}
}

// serve runs a test in a bubble. Everything of the quotas is counted, and none
// of it used.
func serve(t *testing.T, quotas []*quotav1.ClusterResourceQuota, test func(t *testing.T, served *served)) {
	t.Helper()
	serveFrom(t, func(live client.WithWatch) client.Client { return live }, quotas, test)
}

// serveFrom changes the API server's answers to live reads of quotas and namespaces by the function.
func serveFrom(
	t *testing.T, answers func(client.WithWatch) client.Client, quotas []*quotav1.ClusterResourceQuota, test func(t *testing.T, served *served),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		served := newServedFrom(ctx, t, answers, quotas...)
		test(t, served)
		stop()
		served.group.Wait()
	})
}

func newServed(ctx context.Context, tb testing.TB, quotas ...*quotav1.ClusterResourceQuota) *served {
	tb.Helper()
	return newServedFrom(ctx, tb, func(live client.WithWatch) client.Client { return live }, quotas...)
}

func newServedFrom(
	ctx context.Context, tb testing.TB, answers func(client.WithWatch) client.Client, quotas ...*quotav1.ClusterResourceQuota,
) *served {
	tb.Helper()
	objects := []client.Object{namespaceOf("shop", "shop"), namespaceOf("office", "office")}
	store := &ledgers{stored: map[string]machine.Snapshot{}}
	for _, quota := range quotas {
		objects = append(objects, quota)
		store.count(tb, quota)
	}
	live := clientWith(tb, objects...)
	store.live = live
	index := namespaces.NewIndex(clock.RealClock{}, answers(live))
	index.Quotas().List(nil, 1)
	index.Namespaces().List(nil, 1)
	show(ctx, tb, index, live)
	told := &told{answered: map[outcomes.Outcome]int{}}
	group := driver.New(ctx, clock.RealClock{}, store, unobserved{}, driver.Options{Options: machine.Options{Pace: time.Millisecond, MaxWaiting: 3}, CallTimeout: time.Minute, EditTimeout: time.Second})
	evaluators := evaluation.New(clock.RealClock{}, evaluation.ClaimSources{})
	return &served{
		handler: NewHandler(Parts{
			Clock: clock.RealClock{}, Evaluators: evaluators, Coverage: index, Charger: group, Outcomes: told,
			Contact: inContact{}, ReservationTTL: 90 * time.Second,
		}),
		group: group, store: store, told: told, live: live, index: index,
	}
}

func clientWith(tb testing.TB, objects ...client.Object) client.WithWatch {
	tb.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{quotav1.AddToScheme, corev1.AddToScheme} {
		if err := add(known); err != nil {
			tb.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(known).WithObjects(objects...).Build()
}

// ledgers are a store in memory.
type ledgers struct {
	// stuck: no call ends before its context does.
	stuck bool
	// live has the quotas' specs.
	live client.Client

	mu      sync.Mutex // guards the fields below
	version uint64
	stored  map[string]machine.Snapshot
}

func (l *ledgers) Load(ctx context.Context, quota string, load machine.Load) (machine.Snapshot, error) {
	if l.stuck {
		<-ctx.Done()
		return machine.Snapshot{}, ctx.Err()
	}
	object := &quotav1.ClusterResourceQuota{}
	err := l.live.Get(ctx, client.ObjectKey{Name: quota}, object)
	if client.IgnoreNotFound(err) != nil {
		return machine.Snapshot{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	snapshot := l.stored[quota]
	if snapshot.State.Counted, err = l.counted(ctx); err != nil {
		return machine.Snapshot{}, err
	}
	if load.Spec {
		snapshot.Spec = &machine.Spec{Quota: object.UID, Generation: object.Generation}
	}
	return snapshot, nil
}

func (l *ledgers) Swap(_ context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stored[quota].Version != previous {
		return machine.Version{}, machine.ErrConflict
	}
	return l.lockedPut(quota, next), nil
}

// counted is how far a leader has come that sees every namespace at once.
func (l *ledgers) counted(ctx context.Context) (map[schema.GroupResource]uint64, error) {
	namespaces := &corev1.NamespaceList{}
	if err := l.live.List(ctx, namespaces); err != nil {
		return nil, err
	}
	newest := uint64(0)
	for i := range namespaces.Items {
		newest = max(newest, ledger.ParseVersion(namespaces.Items[i].ResourceVersion))
	}
	return map[schema.GroupResource]uint64{ledger.Namespaces: newest}, nil
}

func (l *ledgers) lockedPut(quota string, next ledger.State) machine.Version {
	l.version++
	version := machine.Version{ResourceVersion: l.version}
	l.stored[quota] = machine.Snapshot{Version: version, State: next}
	return version
}

// count stores a ledger in which nothing is used.
func (l *ledgers) count(tb testing.TB, quota *quotav1.ClusterResourceQuota) {
	tb.Helper()
	compiled, err := definition.Compile(quota)
	if err != nil {
		tb.Fatal(err)
	}
	used := corev1.ResourceList{}
	for name := range quota.Spec.Quota.Hard {
		used[name] = list("zero", "0")["zero"]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lockedPut(quota.Name, ledger.State{Basis: compiled.Limits.Basis, Used: used})
}

func (l *ledgers) reserved(quota string) []ledger.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	var reservations []ledger.Reservation
	for _, reservation := range l.stored[quota].State.Reservations {
		reservations = append(reservations, reservation)
	}
	return reservations
}

func (l *ledgers) forget(quota string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.stored, quota)
}

// told has the outcomes that a Handler told of.
type told struct {
	outcomes.Observer // a Handler reports nothing else
	// list is told of decisions; nil for none.
	list *waiting.List

	mu       sync.Mutex // guards the fields below
	answered map[outcomes.Outcome]int
	refusals []outcomes.Refusal
}

func (t *told) Answered(outcome outcomes.Outcome, _ time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answered[outcome]++
}

func (t *told) Refused(refusal outcomes.Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusals = append(t.refusals, refusal)
}

func (t *told) Decided(decision outcomes.Decision) {
	if t.list != nil {
		t.list.Decided(decision)
	}
}

// wait makes owners wait for room.
func (s *served) wait() *waiting.List {
	s.told.list, s.handler.Waits = waiting.NewList(), waiting.Waits
	return s.told.list
}

// answers returns how many requests had each outcome.
func (t *told) answers() map[outcomes.Outcome]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.answered)
}

// unobserved observes no ledger.
type unobserved struct{}

func (unobserved) Committed(string, int, time.Duration) {}
func (unobserved) Ended(string, ledger.Ends)            {}
func (unobserved) Conflicted(string)                    {}
func (unobserved) Failed(string, error)                 {}
func (unobserved) Impossible(string, error)             {}
