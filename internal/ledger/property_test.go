// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"
)

const (
	// patience is when the API server gives up on a request.
	patience = time.Minute
	// lifetime is the life of a reservation.
	lifetime = 90 * time.Second
)

func hardOfModel() corev1.ResourceList {
	return figures{podCount: 3, claimCount: 2, devices: 5}.list()
}

func surgeOfModel() corev1.ResourceList { return figures{podCount: 1, devices: 2}.list() }

// Only objects that replace others bring what is charged above hard, and nothing brings it above hard and surge. The living
// objects are always covered by used and reserved, in any order of requests, writes, counts and failures.
func TestNoInterleavingExceedsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { t.Repeat(rapid.StateMachineActions(newModel())) })
}

// request is a request that was admitted and that the API server is working on.
type request struct {
	place
	// wanted is the object after the request.
	wanted thing
	// held is the reservation made for it; an update that adds nothing has none.
	held  *Reservation
	since time.Time
	// replaces: it is known to replace another object.
	replaces bool
}

// model is a cluster with a ledger and requests on their way.
type model struct {
	*cluster
	now      time.Time
	state    State
	limits   Limits
	flying   []request
	attempts int
	// looked are the expired reservations that a live look didn't find.
	looked []Reservation
}

func newModel() *model {
	return &model{
		cluster: newCluster(), now: time.Unix(1000, 0),
		limits: Limits{Name: "team", Hard: hardOfModel(), Surge: surgeOfModel(), Basis: Basis{Quota: "quota", Generation: 1, Digest: "1"}},
	}
}

// Create asks for an object, often at a place that another attempt asked for.
func (m *model) Create(t *rapid.T) {
	at := m.anyPlace(t)
	wanted := thing{uid: m.newUID(), devices: rapid.Int64Range(0, 3).Draw(t, "devices")}
	held := Reservation{Object: object(at, wanted), Amounts: at.usage(wanted).list()}
	m.admit(t, request{place: at, wanted: wanted, held: &held, replaces: rapid.IntRange(0, 2).Draw(t, "replaces") == 0})
}

// Update asks to change an object, often starting from an older version of it,
// as a cache may show it.
func (m *model) Update(t *rapid.T) {
	at := m.anyPlace(t)
	versions := m.versionsOf(at)
	if len(versions) == 0 {
		t.Skip("nothing has lived there")
	}
	previous := rapid.SampledFrom(versions).Draw(t, "from")
	wanted := previous
	wanted.devices = rapid.Int64Range(0, 4).Draw(t, "devices")
	rise := figures{devices: max(wanted.devices-previous.devices, 0)}.list()
	if len(rise) == 0 {
		m.flying = append(m.flying, request{place: at, wanted: wanted, since: m.now})
		return
	}
	m.attempts++
	held := Reservation{
		Object: object(at, wanted), From: fmt.Sprint(previous.version), Attempt: fmt.Sprint(m.attempts), Amounts: rise,
	}
	m.admit(t, request{place: at, wanted: wanted, held: &held})
}

func (m *model) admit(t *rapid.T, asked request) {
	asked.since, asked.held.Expiry = m.now, m.now.Add(lifetime)
	limits := m.anyLimits(t)
	draft := Edit(m.state)
	charge := asking(limits, *asked.held)
	if asked.replaces {
		charge.Replaces = surgerOf(types.UID(asked.name))
	}
	decision := draft.Reserve(charge)
	if want := m.mayBeGranted(charge); want != IsGranted(decision) {
		t.Fatalf("reserving %+v: got %#v, want granted: %v", *asked.held, decision, want)
	}
	if !IsGranted(decision) {
		return
	}
	m.state = draft.State()
	m.checkGranted(t, charge)
	if rapid.Bool().Draw(t, "the reply was lost") {
		m.reserveAgain(t, charge)
	}
	m.flying = append(m.flying, asked)
}

// checkGranted: nobody else takes surge, and nobody more than there is.
func (m *model) checkGranted(t *rapid.T, charge Charge) {
	charged, hard, surge := figuresOf(Edit(m.state).Charged()), figuresOf(charge.Limits.Hard), figuresOf(charge.Limits.Surge)
	for name := range charge.Reservation.Amounts {
		most := hard[name]
		if charge.replaces() {
			most += surge[name]
		}
		if charged[name] > most {
			t.Fatalf("a charge that replaces: %v brought %s to %d, above %d", charge.replaces(), name, charged[name], most)
		}
	}
}

func (m *model) reserveAgain(t *rapid.T, charge Charge) {
	draft := Edit(m.state)
	if decision := draft.Reserve(charge); !IsGranted(decision) {
		t.Fatalf("what is reserved was judged again: %#v", decision)
	}
	if diff := gocmp.Diff(m.state, draft.State(), cmpopts.IgnoreUnexported(State{})); diff != "" {
		t.Fatalf("reserving twice changed the ledger (-once,+twice):\n%s", diff)
	}
	m.state = draft.State()
}

// Persist lets the API server finish a request, or meet a conflict.
func (m *model) Persist(t *rapid.T) {
	done := m.takeFlying(t)
	current, lives := m.living[done.place]
	switch {
	case done.isCreate() && !lives:
		m.put(done.place, done.wanted)
	case !done.isCreate() && lives && current.uid == done.wanted.uid && current.version == done.wanted.version:
		m.put(done.place, done.wanted)
	}
}

// Lose ends a request without a trace.
func (m *model) Lose(t *rapid.T) { m.takeFlying(t) }

// GiveUp ends a request before its webhook has answered: the charge is released.
func (m *model) GiveUp(t *rapid.T) {
	if ended := m.takeFlying(t); ended.held != nil {
		draft := Edit(m.state)
		draft.Release(ended.held.Key())
		m.state = draft.State()
	}
}

// Delete removes an object.
func (m *model) Delete(t *rapid.T) {
	if len(m.living) == 0 {
		t.Skip("nothing lives")
	}
	m.remove(rapid.SampledFrom(sorted(slices.Collect(maps.Keys(m.living)))).Draw(t, "gone"))
}

// Wait lets time pass. Requests that took too long have ended.
func (m *model) Wait(t *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 50).Draw(t, "seconds")) * time.Second)
	m.flying = slices.DeleteFunc(m.flying, func(r request) bool { return m.now.Sub(r.since) > patience })
}

// Settle takes a count that has seen everything.
func (m *model) Settle(t *rapid.T) { m.settle(t, m.complete(), m.limits.Basis) }

// SettleOld takes a count of any age, such as a new leader's.
func (m *model) SettleOld(t *rapid.T) { m.settle(t, m.anyView(t), m.limits.Basis) }

// SettleOutdated takes a count for an earlier generation, or for the quota that
// had the name before.
func (m *model) SettleOutdated(t *rapid.T) {
	basis := m.limits.Basis
	basis.Generation--
	if rapid.Bool().Draw(t, "of the quota before") {
		basis = Basis{Quota: "the quota before", Generation: 7, Digest: "7"}
	}
	m.settle(t, m.anyView(t), basis)
}

func (m *model) settle(t *rapid.T, v view, basis Basis) {
	draft := Edit(m.state)
	draft.Settle(m.see(v).observation(basis))
	previous, current := m.state.Basis, draft.State().Basis
	if previous.Quota == current.Quota && current.Generation < previous.Generation {
		t.Fatalf("a settle went back from %+v to %+v", previous, current)
	}
	m.state = draft.State()
}

// Look reads the objects of expired reservations.
func (m *model) Look(*rapid.T) {
	m.looked = slices.DeleteFunc(slices.Collect(maps.Values(m.state.Reservations)), func(r Reservation) bool {
		return !r.Expiry.Before(m.now) || m.there(r)
	})
}

// Drop removes reservations that the last look, which may be long ago, didn't
// find.
func (m *model) Drop(*rapid.T) {
	draft := Edit(m.state)
	for _, expired := range m.looked {
		draft.Drop(expired.Key())
	}
	m.state = draft.State()
}

// Respecify changes the quota's spec, which may ask for a new count.
func (m *model) Respecify(t *rapid.T) {
	m.limits.Generation++
	if rapid.Bool().Draw(t, "counts differently") {
		m.limits.Digest = fmt.Sprint(m.limits.Generation)
	}
}

// CreateNamespace adds a namespace that the quota selects.
func (m *model) CreateNamespace(t *rapid.T) {
	if len(m.namespaces) > 1 {
		t.Skip("there are enough")
	}
	m.namespaces["new"] = m.next()
}

// Check is the invariant.
func (m *model) Check(t *rapid.T) {
	m.checkIndex(t)
	if named := len(m.state.Surgers); named > 0 && sizeAnew(m.state) != Edit(m.state).Size() {
		t.Fatalf("%d workloads are named, and not in the size", named)
	}
	lives, charged := m.uses(), figuresOf(Edit(m.state).Charged())
	for name, most := range figuresOf(m.limits.Most()) {
		if lives[name] > most {
			t.Fatalf("%d %s live, %d are allowed", lives[name], name, most)
		}
		_, counted := m.state.Used[name]
		if counted && m.state.Quota == m.limits.Quota && charged[name] < lives[name] {
			t.Fatalf("%d %s live, %d are used or reserved: %+v", lives[name], name, charged[name], m.state)
		}
	}
	m.checkQuiet(t)
}

// checkQuiet: once everything has been observed and objects that never came have
// been dropped, nothing is reserved and the living objects are used.
func (m *model) checkQuiet(t *rapid.T) {
	draft := Edit(m.state)
	draft.Settle(m.see(m.complete()).observation(m.limits.Basis))
	for _, reservation := range draft.State().Reservations {
		if !m.there(reservation) {
			draft.Drop(reservation.Key())
		}
	}
	quiet := draft.State()
	if len(quiet.Reservations) > 0 || len(quiet.Reserved()) > 0 {
		t.Fatalf("still reserved when all is quiet: %+v", quiet.Reservations)
	}
	if diff := gocmp.Diff(m.uses(), figuresOf(quiet.Used)); diff != "" {
		t.Fatalf("used when all is quiet (-want,+got):\n%s", diff)
	}
}

// mayBeGranted judges by counting everything from scratch.
func (m *model) mayBeGranted(charge Charge) bool {
	limits, asked, most := charge.Limits, charge.Reservation, charge.Limits.Hard
	if charge.replaces() {
		most = limits.Most()
	}
	if m.state.Quota != limits.Quota || m.state.Generation > limits.Generation || m.state.Digest != limits.Digest {
		return false
	}
	reservations := append(slices.Collect(maps.Values(m.state.Reservations)), asked)
	total := figuresOf(m.state.Used)
	total.add(largestOfEachSlot(reservations))
	for name := range asked.Amounts {
		limit := most[name]
		if _, counted := m.state.Used[name]; !counted || total[name] > limit.Value() {
			return false
		}
	}
	return true
}

func largestOfEachSlot(reservations []Reservation) figures {
	slots := map[string]figures{}
	for _, held := range reservations {
		slot := fmt.Sprint(held.Resource, held.Namespace, held.Name, held.From)
		slots[slot] = figuresOf(quota.Max(slots[slot].list(), held.Amounts))
	}
	total := figures{}
	for _, largest := range slots {
		total.add(largest)
	}
	return total
}

func (r request) isCreate() bool { return r.wanted.version == 0 }

func (m *model) takeFlying(t *rapid.T) request {
	if len(m.flying) == 0 {
		t.Skip("no request is on its way")
	}
	index := rapid.IntRange(0, len(m.flying)-1).Draw(t, "request")
	taken := m.flying[index]
	m.flying = slices.Delete(m.flying, index, index+1)
	return taken
}

func (m *model) anyPlace(t *rapid.T) place {
	return place{
		resource:  rapid.SampledFrom([]schema.GroupVersionResource{podResource, claimResource}).Draw(t, "resource"),
		namespace: rapid.SampledFrom(slices.Sorted(maps.Keys(m.namespaces))).Draw(t, "namespace"),
		name:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"),
	}
}

// anyLimits are the newest limits, or older ones that a replica still knows.
func (m *model) anyLimits(t *rapid.T) Limits {
	limits := m.limits
	if limits.Generation > 1 && rapid.IntRange(0, 3).Draw(t, "limits are outdated") == 0 {
		limits.Generation--
	}
	return limits
}

func (m *model) anyView(t *rapid.T) view {
	anyVersion := rapid.Uint64Range(1, m.version)
	v := view{upTo: map[schema.GroupResource]uint64{}, since: anyVersion.Draw(t, "since")}
	for _, source := range []schema.GroupResource{namespaceResource, podResource.GroupResource(), claimResource.GroupResource()} {
		if rapid.IntRange(0, 3).Draw(t, source.Resource+" listed") > 0 {
			v.upTo[source] = anyVersion.Draw(t, source.Resource)
		}
	}
	return v
}

func sorted(places []place) []place {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return places
}

func object(at place, current thing) Object {
	return Object{Resource: at.resource, Namespace: at.namespace, Name: at.name, UID: current.uid}
}

// checkIndex compares the index that is carried from draft to draft with a new
// one of the reservations alone.
func (m *model) checkIndex(t *rapid.T) {
	if m.state.index == nil {
		return
	}
	bare := m.state
	bare.index = nil
	want := Edit(bare).index
	inOrder := func(slots map[slot][]Key) map[slot][]Key {
		sorted := map[slot][]Key{}
		for slot, keys := range slots {
			sorted[slot] = slices.SortedFunc(slices.Values(keys), func(a, b Key) int {
				return cmp.Or(cmp.Compare(a.UID, b.UID), cmp.Compare(a.Attempt, b.Attempt))
			})
		}
		return sorted
	}
	if diff := gocmp.Diff(inOrder(want.slots), inOrder(m.state.index.slots), gocmp.AllowUnexported(slot{})); diff != "" {
		t.Fatalf("slots (-made anew,+carried):\n%s", diff)
	}
	if diff := gocmp.Diff(want.reserved, m.state.index.reserved); diff != "" {
		t.Fatalf("reserved (-made anew,+carried):\n%s", diff)
	}
}
