// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// stored is a lock whose holder others may be. This process is "own".
type stored struct {
	resourcelock.Interface
	holder string
	// broken: nothing can be read.
	broken error
}

// renewedNow is the sight of a Lease that another process has renewed just now: a follower would wait for ever.
func renewedNow() (holder string, known, unread time.Duration) { return "other", 0, 0 }

func (*stored) Identity() string { return "own" }

func (s *stored) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: s.holder, LeaseDurationSeconds: 10}, nil, s.broken
}

func (s *stored) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return s.Update(ctx, record)
}

func (s *stored) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	s.holder = record.HolderIdentity
	return nil
}

func TestALeaderEndsOnceAnotherLeads(t *testing.T) {
	hold := func(l *lease, holder string) error {
		ended, cancel := context.WithCancel(t.Context())
		cancel() // a follower doesn't wait
		_, _, err := l.Get(ended)
		return errors.Join(err, l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}))
	}
	for name, test := range map[string]struct {
		// held: this process has led. holder is the process that leads now.
		held   bool
		holder string
		ends   bool
		// released is the process that leads after this process has given up the Lease.
		released string
	}{
		"it leads":                       {held: true, holder: "own"},
		"another was elected":            {held: true, holder: "other", ends: true, released: "other"},
		"another gave it up since":       {held: true},
		"another leads, as before":       {holder: "other", released: "other"},
		"no process has ever led so far": {},
	} {
		t.Run(name, func(t *testing.T) {
			lock := &stored{}
			l := leaseBy(lock, clock.RealClock{}, "operator", renewedNow)
			if test.held {
				if err := hold(l, "own"); err != nil {
					t.Fatal(err)
				}
			}
			lock.holder = test.holder
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if !test.ends {
				cancel()
			}
			if _, _, err := l.Get(ctx); err != nil {
				t.Fatal(err)
			}
			if err := l.Start(ctx); errors.Is(err, errDeposed) != test.ends {
				t.Errorf("it ends with %v", err)
			}
			if err := hold(l, ""); err != nil || lock.holder != test.released {
				t.Errorf("the Lease was given up to %q, error %v", lock.holder, err)
			}
		})
	}
}

// While a process that ends still answers requests, it gives up the Lease, and its elector doesn't take it again.
func TestAReplicaThatEndsYieldsTheLease(t *testing.T) {
	own := resourcelock.LeaderElectionRecord{HolderIdentity: "own"}
	for name, test := range map[string]struct {
		// held: this process has led. holder is the process that leads when it ends.
		held   bool
		holder string
		broken error
		// yielded and released are the processes that lead after yield, and after the manager has given up the Lease, too.
		yielded, released string
		// renews is the error of an elector that renews the Lease, or takes it once it is free.
		renews error
	}{
		"it leads":                                     {held: true, holder: "own"},
		"it leads, and can't read that":                {held: true, holder: "own", broken: errors.New("broken"), yielded: "own"},
		"another was elected":                          {held: true, holder: "other", yielded: "other", released: "other"},
		"another leads, as before":                     {holder: "other", yielded: "other", released: "other", renews: errEnding},
		"no process leads, and it won't now":           {renews: errEnding},
		"it was elected, and its write lost its reply": {holder: "own", renews: errEnding},
	} {
		t.Run(name, func(t *testing.T) {
			lock := &stored{}
			l := leaseBy(lock, clock.RealClock{}, "operator", renewedNow)
			if test.held {
				if err := l.Create(t.Context(), own); err != nil {
					t.Fatal(err)
				}
			}
			lock.holder, lock.broken = test.holder, test.broken
			l.yield(t.Context())
			for range 2 {
				if err := l.Update(t.Context(), own); !errors.Is(err, test.renews) {
					t.Errorf("renewed: %v, want %v", err, test.renews)
				}
				if lock.holder != test.yielded {
					t.Errorf("the Lease was given up to %q, want %q", lock.holder, test.yielded)
				}
			}
			if err := l.Create(t.Context(), own); !errors.Is(err, errEnding) {
				t.Errorf("made anew: %v", err)
			}
			lock.broken = nil
			_, _, err := l.Get(t.Context())
			err = errors.Join(err, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
			if err != nil || lock.holder != test.released {
				t.Errorf("the Lease was given up at last to %q, error %v", lock.holder, err)
			}
		})
	}
}

func TestALeaderAsksWhetherItLeads(t *testing.T) {
	var none *lease
	if err := none.leads(nil)(t.Context()); err != nil {
		t.Errorf("without leader election: %v", err)
	}
	for holder, want := range map[string]error{"own": nil, "other": errDeposed, "": errNoLeader} {
		live := fake.NewClientBuilder().WithObjects(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: leaseName}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)},
		}).Build()
		l := leaseBy(&stored{}, clock.RealClock{}, "operator", renewedNow)
		if err := l.leads(live)(t.Context()); !errors.Is(err, want) {
			t.Errorf("%q leads: got %v, want %v", holder, err, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		if want == nil {
			cancel()
			if err := l.Start(ctx); err != nil {
				t.Errorf("%q leads: it ends with %v", holder, err)
			}
		}
		cancel()
	}
	if err := leaseBy(&stored{}, clock.RealClock{}, "operator", renewedNow).leads(fake.NewFakeClient())(t.Context()); err == nil {
		t.Error("want an error if there is no Lease")
	}
}

// renewed is the lock of a follower. Other reads of the Lease count as the follower's, too.
type renewed struct {
	stored
	// mu guards the fields of stored, too.
	mu sync.Mutex
	// renewals is the number of the last renewal.
	renewals int
	deleted  bool
	// reads is how often the elector has read the Lease.
	reads int
	// seen is the last renewal that was read, by holderThen: first and last are when.
	seen        int
	holderThen  string
	first, last time.Time
	// taken is the Lease as this process wrote it.
	taken resourcelock.LeaderElectionRecord
}

func (*renewed) RecordEvent(string) {}

func (*renewed) Describe() string { return "the Lease" }

func (r *renewed) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	r.reads++
	r.note()
	record, _, err := r.stored.Get(ctx)
	return record, fmt.Append(nil, r.holder, r.seen), err
}

func (r *renewed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = record
	return r.stored.Update(ctx, record)
}

func (r *renewed) remove() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deleted = true
}

// look is another read of the Lease.
func (r *renewed) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note()
}

func (r *renewed) note() {
	r.last, r.holderThen = clock.RealClock{}.Now(), r.holder
	if r.seen != r.renewals {
		r.seen, r.first = r.renewals, r.last
	}
}

// renew stores a renewal. Without a holder the leader gives the Lease up.
func (r *renewed) renew(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder, r.deleted = holder, false
	r.renewals++
}

func (r *renewed) sight() (holder string, known, unread time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.holderThen, clock.RealClock{}.Since(r.first), clock.RealClock{}.Since(r.last)
}

// A leader renews the Lease for some time, and is killed, or gives it up.
func TestAFollowerTakesTheLeaseAsSoonAsItMay(t *testing.T) {
	const renewals = 20
	for name, test := range map[string]struct {
		givesUp, looks bool
		least, most    time.Duration
		// reads is how often the elector reads the Lease at most, while the leader renews it.
		reads int
	}{
		"a leader that is killed":                               {least: leaseDuration, most: leaseDuration + lookEvery, reads: 35},
		"a leader that is killed, and other reads every second": {looks: true, least: leaseDuration, most: leaseDuration + time.Second, reads: 1},
		"a leader that ends":                                    {givesUp: true, most: lookEvery, reads: 35},
		"a leader that ends, and other reads every second":      {givesUp: true, looks: true, most: lookEvery, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			for part := range 20 {
				synctest.Test(t, func(t *testing.T) {
					lock := &renewed{stored: stored{holder: "other"}, renewals: 1}
					ctx, cancel := context.WithCancel(t.Context())
					var group sync.WaitGroup
					defer func() {
						cancel()
						group.Wait()
					}()
					if test.looks {
						group.Go(func() {
							for ctx.Err() == nil {
								lock.look()
								clock.RealClock{}.Sleep(time.Second)
							}
						})
					}
					elected := make(chan struct{})
					elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
						Lock:          leaseBy(lock, clock.RealClock{}, "operator", lock.sight),
						LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
						Callbacks: leaderelection.LeaderCallbacks{
							OnStartedLeading: func(context.Context) { close(elected) }, OnStoppedLeading: func() {},
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					group.Go(func() { elector.Run(ctx) })
					// The last renewal is at any time between two looks.
					clock.RealClock{}.Sleep(time.Duration(part) * lookEvery / 20)
					for range renewals {
						lock.renew("other")
						clock.RealClock{}.Sleep(retryPeriod)
					}
					select {
					case <-elected:
						t.Fatal("it was elected while the leader renewed the Lease")
					default:
					}
					lock.mu.Lock()
					reads := lock.reads
					lock.mu.Unlock()
					if reads > test.reads {
						t.Errorf("the elector read the Lease %d times", reads)
					}
					if test.givesUp {
						lock.renew("")
					} else {
						lock.renew("other")
					}
					last := clock.RealClock{}.Now()
					<-elected
					if took := (clock.RealClock{}).Since(last); took < test.least || took > test.most {
						t.Errorf("it was elected %s after the last renewal", took)
					}
					electedAt := clock.RealClock{}.Now()
					clock.RealClock{}.Sleep(2*retryPeriod + time.Second)
					lock.mu.Lock()
					defer lock.mu.Unlock()
					acquired, renewed := lock.taken.AcquireTime.Time, lock.taken.RenewTime.Time
					if !acquired.Equal(electedAt) || !renewed.Equal(electedAt.Add(2*retryPeriod)) {
						t.Errorf("elected at %s, it wrote %+v", electedAt, lock.taken)
					}
				})
			}
		})
	}
}

// If the leader lives, it makes the Lease again within two seconds.
func TestADeletedLeaseIsForTheLeaderToMakeAgain(t *testing.T) {
	for _, isMade := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			lock := &renewed{stored: stored{holder: "other"}, renewals: 1}
			start := clock.RealClock{}.Now()
			clock.RealClock{}.AfterFunc(time.Second, lock.remove)
			if isMade {
				clock.RealClock{}.AfterFunc(time.Second+retryPeriod, func() { lock.renew("other") })
			}
			_, _, err := leaseBy(lock, clock.RealClock{}, "operator", lock.sight).Get(t.Context())
			took, want := (clock.RealClock{}).Since(start), 2*lookEvery+retryPeriod
			if isMade {
				want += leaseDuration
			}
			if apierrors.IsNotFound(err) == isMade || took != want {
				t.Errorf("the leader makes it: %t: got %v after %s, want %s", isMade, err, took, want)
			}
		})
	}
}

// A process that ends doesn't wait for the Lease.
func TestAWaitForTheLeaseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := &renewed{stored: stored{holder: "other"}, renewals: 1}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := clock.RealClock{}.Now()
		record, _, err := leaseBy(lock, clock.RealClock{}, "operator", lock.sight).Get(ctx)
		if err != nil || record.HolderIdentity != "other" || (clock.RealClock{}).Since(start) != time.Second {
			t.Errorf("got %v, %v after %s", record, err, clock.RealClock{}.Since(start))
		}
	})
}

// One slow answer of the API server ends no leader.
func TestTheLeaseOutlastsASlowAnswer(t *testing.T) {
	if retryPeriod+renewDeadline > leaseDuration {
		t.Errorf("a leader ends only %s after its last renewal", retryPeriod+renewDeadline)
	}
	if slow := lockTimeout + retryPeriod; slow >= renewDeadline || renewDeadline >= leaseDuration {
		t.Errorf("want less than %s for a slow answer and another try, and that less than %s", renewDeadline, leaseDuration)
	}
}
