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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
)

const (
	leaseName = "shared-quota-operator"
	// leaseDuration is how long after the last renewal another replica takes the Lease of a leader that was killed, and
	// renewDeadline when a leader that can't renew it ends. It is renewed every two seconds. An etcd that elects a leader of
	// its own takes less than half of that.
	leaseDuration, renewDeadline = 10 * time.Second, 7 * time.Second
	// lockTimeout is for one call, of which several must be possible before a leader gives up.
	lockTimeout = 3 * time.Second
)

var (
	errDeposed  = errors.New("another replica was elected while this one, the leader, stood still: it ends, to begin again as a follower")
	errNoLeader = errors.New("the Lease has no holder")
	errEnding   = errors.New("this replica ends: it doesn't lead any more")
)

// lease is the Lease by which one replica leads. A leader that stood still, as on a virtual machine that is paused, goes on for seven
// seconds after another one was elected. With lease it ends as soon as it reads the Lease.
type lease struct {
	resourcelock.Interface
	namespace string
	// deposed is closed once another process holds the Lease that this one held.
	deposed chan struct{}
	once    sync.Once

	// mu guards the fields below, and the lock, of which one call at a time may be made: the elector and yield make them.
	mu sync.Mutex
	// holder held the Lease when it was last read or written.
	holder string
	// held: this process has led.
	held bool
	// ending: this process takes and renews the Lease no more.
	ending bool
}

var _ manager.LeaderElectionRunnable = &lease{}

// newLease makes the Lease by which leaders are elected. The history follows it.
func newLease(config *rest.Config, namespace, replica string, history *apiserver.History) (*lease, error) {
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
	}, namespace), nil
}

func leaseBy(lock resourcelock.Interface, namespace string) *lease {
	return &lease{Interface: lock, namespace: namespace, deposed: make(chan struct{})}
}

// Get implements resourcelock.Interface.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.holder = record.HolderIdentity
		l.judge(l.holder, l.held)
	}
	return record, raw, err //nolint:wrapcheck // it is as if this weren't there
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return errEnding
	}
	return l.wrote(record, l.Interface.Create(ctx, record))
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
		return l.wrote(record, l.Interface.Update(ctx, record))
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
	now := metav1.Now()
	record := resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now, LeaderTransitions: current.LeaderTransitions,
	}
	return l.wrote(record, l.Interface.Update(ctx, record))
}

func (l *lease) wrote(record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.holder = record.HolderIdentity
		l.held = l.held || l.holder == l.Identity()
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
