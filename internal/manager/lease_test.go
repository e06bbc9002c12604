// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
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

func (*stored) Identity() string { return "own" }

func (s *stored) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: s.holder}, nil, s.broken
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
		_, _, err := l.Get(t.Context())
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
			l := leaseBy(lock, "operator")
			if test.held {
				if err := hold(l, "own"); err != nil {
					t.Fatal(err)
				}
			}
			lock.holder = test.holder
			ctx, cancel := context.WithCancel(t.Context())
			if _, _, err := l.Get(ctx); err != nil {
				t.Fatal(err)
			}
			if !test.ends {
				cancel()
			}
			defer cancel()
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
			l := leaseBy(lock, "operator")
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
		l := leaseBy(&stored{}, "operator")
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
	if err := leaseBy(&stored{}, "operator").leads(fake.NewFakeClient())(t.Context()); err == nil {
		t.Error("want an error if there is no Lease")
	}
}

// A replica takes over within 12 seconds from a leader that was killed, and one slow answer of the API server ends no leader.
func TestTheLeaseOutlastsASlowAnswer(t *testing.T) {
	const retryPeriod = 2 * time.Second // the default of the manager
	if leaseDuration+retryPeriod > 12*time.Second {
		t.Errorf("another replica takes over after up to %s", leaseDuration+retryPeriod)
	}
	if slow := lockTimeout + retryPeriod; slow >= renewDeadline || renewDeadline >= leaseDuration {
		t.Errorf("want less than %s for a slow answer and another try, and that less than %s", renewDeadline, leaseDuration)
	}
}
