// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

const (
	leaseName = "shared-quota-operator"
	// leaseDuration is how long after it saw the last renewal another replica takes the Lease of a leader that was killed. The
	// Lease is renewed every retryPeriod, and a leader that can't renew it for renewDeadline from then on ends. An etcd that
	// elects a leader of its own takes less than half of that.
	leaseDuration, renewDeadline, retryPeriod = 10 * time.Second, 7 * time.Second, 2 * time.Second
	// lookEvery is how often a follower reads the Lease. If a process makes no other calls, its apiserver.Monitor reads the Lease
	// once a second. Its elector makes no read then.
	lookEvery = 1200 * time.Millisecond
	// lockTimeout is for one call, of which several must be possible before a leader gives up.
	lockTimeout = 3 * time.Second
)

var (
	errDeposed  = errors.New("another replica was elected while this one, the leader, stood still: it ends, to begin again as a follower")
	errNoLeader = errors.New("the Lease has no holder")
	errEnding   = errors.New("this replica ends: it doesn't lead any more")
)

// lease is the Lease by which one replica leads. It differs from client-go's:
//
//   - a leader that stood still, as on a virtual machine that is paused, ends as soon as it reads the Lease. It would go on for
//     seven seconds after another one was elected;
//   - a follower takes the Lease as soon as it sees that it was given up or has expired. The elector would look every 2 to 4.4 s,
//     and would count from when it saw a renewal, which may be that much later. After an error, it still waits for 2 to 4.4 s.
type lease struct {
	resourcelock.Interface
	namespace string
	clock     clock.Clock
	// seen is apiserver.History.Lease.
	seen func() (holder string, known, unread time.Duration)
	// deposed is closed once another process holds the Lease that this one held.
	deposed chan struct{}
	once    sync.Once

	// mu guards the fields below, and the lock, of which one call at a time may be made: the elector and yield make them.
	mu sync.Mutex
	// holder held the Lease when it was last read or written by the elector or by yield.
	holder string
	// held: this process has led, the last time since acquired.
	held     bool
	acquired metav1.Time
	// ending: this process takes and renews the Lease no more.
	ending bool
}

var _ manager.LeaderElectionRunnable = &lease{}

// newLease makes the Lease by which leaders are elected. The history follows it.
func newLease(
	config *rest.Config, clock clock.Clock, namespace, replica string, history *apiserver.History,
) (*lease, error) {
	if namespace == "" {
		return nil, errors.New("leader election needs a namespace: set --namespace, or the variable POD_NAMESPACE")
	}
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election")
	config.Timeout = lockTimeout
	leases, err := coordinationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the leader's Lease: %w", err)
	}
	return leaseBy(&resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: leaseName},
		Client:     history.Follow(leases, namespace, leaseName),
		LockConfig: resourcelock.ResourceLockConfig{Identity: replica + "_" + string(uuid.NewUUID())},
	}, clock, namespace, history.Lease), nil
}

func leaseBy(
	lock resourcelock.Interface, clock clock.Clock, namespace string, seen func() (holder string, known, unread time.Duration),
) *lease {
	return &lease{Interface: lock, clock: clock, namespace: namespace, seen: seen, deposed: make(chan struct{})}
}

// Get implements resourcelock.Interface. A follower gets the Lease of another process once that has given it up, or hasn't renewed
// it for as long as it lasts: then without a holder, so that the elector takes it. If ctx ends before, it gets the Lease as it is.
// If the Lease was deleted, Get first leaves the leader the time to make it again.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	for isMissed := false; ; {
		record, raw, follows, err := l.read(ctx)
		if apierrors.IsNotFound(err) && !isMissed && l.isAnothers() {
			isMissed = true
			if l.sleep(ctx, retryPeriod+lookEvery) {
				continue
			}
		}
		if err != nil || !follows {
			return record, raw, err
		}
		isMissed = false
		lasts := time.Duration(record.LeaseDurationSeconds) * time.Second
		if _, known, _ := l.seen(); known >= lasts {
			vacant := *record
			vacant.HolderIdentity = ""
			return &vacant, raw, nil
		}
		if !l.follow(ctx, record.HolderIdentity, lasts) {
			return record, raw, nil
		}
	}
}

// follow waits until the Lease must be read, and reports whether that is so: false if ctx has ended.
func (l *lease) follow(ctx context.Context, leader string, lasts time.Duration) bool {
	for {
		holder, known, unread := l.seen()
		pause := min(lasts-known, lookEvery-unread)
		if holder != leader || pause <= 0 {
			return true
		}
		if !l.sleep(ctx, pause) {
			return false
		}
	}
}

// sleep reports whether it has waited so long: false if ctx has ended.
func (l *lease) sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-l.clock.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// isAnothers reports whether another process held the Lease when it was seen last.
func (l *lease) isAnothers() bool {
	holder, _, _ := l.seen()
	return holder != "" && holder != l.Identity()
}

// read also reports whether another process holds the Lease, and this one waits for it.
func (l *lease) read(ctx context.Context) (record *resourcelock.LeaderElectionRecord, raw []byte, follows bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record, raw, err = l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
		l.judge(l.holder, l.held)
		follows = !l.held && !l.ending && l.holder != "" && l.holder != l.Identity()
	}
	return record, raw, follows, err //nolint:wrapcheck // it is as if this weren't there
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return errEnding
	}
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface. A process that ends gives the Lease up, but not another's. After yield, the
// elector of a leader goes on as if it renewed the Lease: it would report otherwise that the Lease was lost.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	releases := record.HolderIdentity == ""
	switch {
	case releases && l.holder != l.Identity(), !releases && l.ending && l.held:
		return nil
	case !releases && l.ending:
		return errEnding
	default:
		return l.write(ctx, record, l.Interface.Update)
	}
}

// yield gives the Lease up, if this process holds it. The caller has stopped everything that only a leader does. From then
// on this process takes the Lease no more, so that no follower that ends is elected. The manager gives the Lease up only
// when all requests are answered, and no replica counts until then. If yield fails, the manager tries again.
func (l *lease) yield(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A call of the elector may have had the lock until now.
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	l.ending = true
	if err := l.release(ctx); err != nil {
		log.FromContext(ctx).Error(err, "Failed to give up the leader's Lease")
	}
}

// release writes the Lease without its holder, if that is this process. The Lease is read, because a write that took it may have
// lost its reply. The elector writes a duration of one second, too: zero isn't valid.
func (l *lease) release(ctx context.Context) error {
	current, _, err := l.Interface.Get(ctx)
	if err != nil || current.HolderIdentity != l.Identity() {
		return client.IgnoreNotFound(err)
	}
	now := metav1.NewTime(l.clock.Now())
	record := resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now, LeaderTransitions: current.LeaderTransitions,
	}
	return l.write(ctx, record, l.Interface.Update)
}

// write dates a Lease of this process: the elector made the record before it waited in Get.
func (l *lease) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord, write func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	takes := record.HolderIdentity == l.Identity()
	if takes {
		record.RenewTime = metav1.NewTime(l.clock.Now())
		if l.holder != l.Identity() || l.acquired.IsZero() {
			l.acquired = record.RenewTime
		}
		record.AcquireTime = l.acquired
	}
	err := write(ctx, record)
	if err == nil {
		l.holder = record.HolderIdentity
		l.held = l.held || takes
	}
	return err
}

// judge ends this process if it has led, and another one holds the Lease.
func (l *lease) judge(holder string, held bool) {
	if held && holder != "" && holder != l.Identity() {
		l.once.Do(func() { close(l.deposed) })
	}
}

// leads returns the check that the leader makes before a write that another leader may have replaced. The check fails unless
// the Lease is the leader's own now. Without leader election, the only replica leads.
func (l *lease) leads(live client.Reader) func(context.Context) error {
	return func(ctx context.Context) error {
		if l == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, lockTimeout)
		defer cancel()
		current := &coordinationv1.Lease{}
		if err := live.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: leaseName}, current); err != nil {
			return fmt.Errorf("reading who leads: %w", err)
		}
		holder := ptr.Deref(current.Spec.HolderIdentity, "")
		l.judge(holder, true)
		switch holder {
		case l.Identity():
			return nil
		case "":
			return errNoLeader
		default:
			return errDeposed
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*lease) NeedLeaderElection() bool { return false }

// Start waits until ctx ends, or returns an error, which ends the process.
func (l *lease) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-l.deposed:
		return errDeposed
	}
}
