// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

// etcd has a Lease.
type etcd struct {
	coordinationclient.LeaseInterface

	revision int
	lease    *coordinationv1.Lease
}

func (e *etcd) Leases(string) coordinationclient.LeaseInterface { return e }

func (e *etcd) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	if e.lease == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "lock")
	}
	return e.lease.DeepCopy(), nil
}

func (e *etcd) Create(_ context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease.UID = types.UID(strconv.Itoa(e.revision))
	return e.store(lease), nil
}

func (e *etcd) Update(_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if lease.ResourceVersion != e.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{}, "lock", errors.New("it has changed"))
	}
	return e.store(lease), nil
}

func (e *etcd) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	e.revision++
	e.lease = lease.DeepCopy()
	e.lease.ResourceVersion = strconv.Itoa(e.revision)
	return e.lease.DeepCopy()
}

// renewAsBefore renews the Lease as a release does that knows nothing of this.
func (e *etcd) renewAsBefore() {
	e.lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(time.Unix(int64(10000+e.revision), 0)))
	e.store(e.lease)
}

// nothing lists nothing.
func nothing(context.Context) (uint64, error) { return 1, nil }

// process has a lock by the Lease, and a History.
type process struct {
	*History
	*resourcelock.LeaseLock

	t        *testing.T
	ended    error
	follower *process
}

func newProcess(t *testing.T, store *etcd) *process {
	p := &process{t: t}
	p.History = NewHistory(clock.RealClock{}, func(err error) { p.ended = err })
	p.LeaseLock = &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: "system", Name: "lock"}, Client: p.Follow(store, "system", "lock"),
	}
	return p
}

// renew renews the Lease in so many minutes of the hour, as an elector does.
func (p *process) renew(minutes ...int) {
	p.t.Helper()
	for _, minute := range minutes {
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "leader", RenewTime: metav1.NewTime(time.Unix(int64(60*minute), 0))}
		_, _, err := p.Get(p.t.Context())
		switch {
		case apierrors.IsNotFound(err):
			err = p.Create(p.t.Context(), record)
		case err == nil:
			err = p.Update(p.t.Context(), record)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func minutes(from, to int) (all []int) {
	for minute := from; minute <= to; minute++ {
		all = append(all, minute)
	}
	return all
}

// A process has seen the renewals of minutes 1 to 5.
func TestALeaseTellsWhetherTheHistoryIsTheSame(t *testing.T) {
	for name, test := range map[string]struct {
		then func(*etcd, *process)
		want string
	}{
		"nothing has happened":                         {then: func(*etcd, *process) {}},
		"it was renewed often":                         {then: func(_ *etcd, leader *process) { leader.renew(minutes(6, 60)...) }},
		"it was renewed while the process didn't look": {then: func(_ *etcd, leader *process) { leader.renew(minutes(6, 80)...) }, want: "at 5"},
		"a client annotated it, and it was renewed": {then: func(store *etcd, leader *process) {
			store.lease.Annotations["note"] = "hello"
			store.store(store.lease)
			leader.renew(6, 7)
		}},
		"an older release renewed it": {then: func(store *etcd, _ *process) { store.renewAsBefore() }},
		"an older release renewed it, and this one goes on": {then: func(store *etcd, leader *process) {
			store.renewAsBefore()
			_ = leader.follower.Check(leader.t.Context(), nothing)
			store.renewAsBefore()
			leader.renew(6, 7)
		}},
		"a client deleted it": {then: func(store *etcd, leader *process) {
			store.lease = nil
			leader.renew(6, 7)
		}},
		"it is gone": {then: func(store *etcd, _ *process) { store.lease = nil }},
		"a restore took renewals back": {
			then: func(store *etcd, _ *process) { *store = *restored(store) }, want: "went back from resourceVersion 5 to 3",
		},
		"a restore took renewals back, and it was renewed since": {then: func(store *etcd, _ *process) {
			*store = *restored(store)
			newProcess(t, store).renew(6, 7, 8, 9)
		}, want: "it doesn't know at resourceVersion 7 what it was at 5"},
		"a restore took renewals back, and its version is the same again": {then: func(store *etcd, _ *process) {
			*store = *restored(store)
			newProcess(t, store).renew(6, 7)
		}, want: "it doesn't know at resourceVersion 5 what it was at 5"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &etcd{}
			leader, follower := newProcess(t, store), newProcess(t, store)
			leader.follower = follower
			leader.renew(minutes(1, 5)...)
			if err := follower.Check(t.Context(), nothing); err != nil {
				t.Fatal(err)
			}
			test.then(store, leader)
			err := follower.Check(t.Context(), nothing)
			if test.want == "" && (err != nil || follower.ended != nil) {
				t.Errorf("got %v, %v, want the same history", err, follower.ended)
			}
			if test.want != "" && (follower.ended == nil || !strings.Contains(follower.ended.Error(), test.want)) {
				t.Errorf("got %v, want an end with %q", follower.ended, test.want)
			}
		})
	}
}

// A follower knows by all reads of the Lease since when it wasn't renewed.
func TestAProcessKnowsWhenTheLeaseWasRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &etcd{}
		leader, follower := newProcess(t, store), newProcess(t, store)
		for minute, step := range []struct {
			renews, annotates, checks bool
			known, unread             time.Duration
		}{
			{renews: true, checks: true},
			{known: time.Second, unread: time.Second},
			{checks: true, known: 2 * time.Second},
			{annotates: true, checks: true, known: 3 * time.Second},
			{renews: true, known: 4 * time.Second, unread: time.Second},
			{checks: true},
		} {
			if step.renews {
				leader.renew(1 + minute)
			}
			if step.annotates {
				store.lease.Annotations["note"] = "hello"
				store.store(store.lease)
			}
			if step.checks {
				if err := follower.Check(t.Context(), nothing); err != nil {
					t.Fatal(err)
				}
			}
			if holder, known, unread := follower.Lease(); holder != "leader" || known != step.known || unread != step.unread {
				t.Errorf("%+v: %q, known for %s, not read for %s", step, holder, known, unread)
			}
			sleep(time.Second)
		}
	})
}

// restored returns etcd as it was after three of five renewals.
func restored(store *etcd) *etcd {
	lease := store.lease.DeepCopy()
	renewals := renewalsOf(lease)
	lease.ResourceVersion, lease.Spec.RenewTime = "3", ptr.To(metav1.NewMicroTime(time.Unix(180, 0)))
	lease.Annotations[renewalsAnnotation] = strings.Join(renewals[:3], " ")
	return &etcd{revision: 3, lease: lease}
}

func TestAListThatGoesBackEndsTheProcess(t *testing.T) {
	var ended error
	history := NewHistory(clock.RealClock{}, func(err error) { ended = err })
	for _, version := range []uint64{3325, 3325, 4000} {
		if err := history.Check(t.Context(), func(context.Context) (uint64, error) { return version, nil }); err != nil || ended != nil {
			t.Fatalf("got %v, %v", err, ended)
		}
	}
	// A write of this process, since the list was asked for, is no reason.
	err := history.Check(t.Context(), func(context.Context) (uint64, error) { history.Saw(4500); return 4400, nil })
	if err != nil || ended != nil {
		t.Fatalf("got %v, %v", err, ended)
	}
	const words = "etcd was restored from a backup, or this process was stopped for minutes: " +
		"the list of quotas went back from resourceVersion 4500 to 282: it ends, to begin again without what it remembers"
	_ = history.Check(t.Context(), func(context.Context) (uint64, error) { return 282, nil })
	if ended == nil || ended.Error() != words {
		t.Errorf("got  %v\nwant %s", ended, words)
	}
}

func TestNothingIsTrustedAfterABreakUntilTheHistoryIsProved(t *testing.T) {
	monitored(t, func(t *testing.T, contact *Contact, server *server) {
		await := func(limit time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			return contact.Await(ctx)
		}
		if err := await(0); err != nil {
			t.Errorf("got %v, want nothing doubted", err)
		}
		server.answer(http.StatusBadGateway)
		_ = server.ask(t.Context())
		if err := await(500 * time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want no proof while the API server fails", err)
		}
		server.answer(http.StatusOK)
		_ = server.ask(t.Context())
		if err := await(askAgain + time.Millisecond); err != nil {
			t.Errorf("got %v, want proof as soon as it answers", err)
		}
		server.answer(-1)
		_ = server.ask(t.Context())
		sleep(lostAfter)
		lost := (*LostError)(nil)
		if err := await(time.Hour); !errors.As(err, &lost) {
			t.Errorf("got %v, want that the contact is lost", err)
		}
	})
}

// A failed call was once asked about no sooner than a second after the last question, and all admissions waited for that.
func TestABreakIsAskedAboutAtOnceIfNothingElseAnswers(t *testing.T) {
	monitored(t, func(t *testing.T, contact *Contact, _ *server) {
		failing := newServer(contact) // the Monitor's questions are answered
		failing.answer(http.StatusServiceUnavailable)
		fail := func() { _ = failing.ask(t.Context()) }
		await := func() {
			before := clock.RealClock{}.Now()
			err := contact.Await(t.Context())
			if took := (clock.RealClock{}).Since(before); err != nil || took > askAgain {
				t.Errorf("got %v after %s, want proof within %s", err, took, askAgain)
			}
		}
		for range 10 {
			fail()
			await()
		}
		sleep(100 * time.Millisecond)
		fail()
		synctest.Wait() // asked
		contact.broke() // while the answer is under way, or after
		await()
	})
}
