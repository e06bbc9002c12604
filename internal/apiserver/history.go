// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

const (
	// renewalsAnnotation is on the Lease. It has the times of its renewals, in microseconds, up to the last.
	renewalsAnnotation = "quota.sharedquota.dev/renewals"
	// maxRenewals is how many of them stay: those of two minutes.
	maxRenewals = 64
)

var (
	errBack  = errors.New("went back")
	errOther = errors.New("has another history")
)

// History reports whether etcd was restored from a backup while this process lived. Nothing that was seen before is
// true then, and nothing else reveals it: a watch goes on, and resourceVersions are given again.
//
// Two witnesses are read live:
//
//   - the resourceVersion of a list of quotas never decreases. A restore shows if more was lost than was written since,
//     and if the API server was started again, as Kubernetes asks: an API server that lives on lists from memory;
//   - the leader renews the Lease every two seconds, and names the renewals before. A restore shows if a
//     renewal was lost that this process saw, however much was written since.
//
// The second needs leader election. Of a Lease that an older release renewed, or that was deleted and made again, only
// the resourceVersion counts.
type History struct {
	clock clock.PassiveClock
	// ended is called when the history has changed.
	ended func(error)
	// lease reads the Lease live. Without leader election it does nothing.
	lease func(ctx context.Context) error

	mu     sync.Mutex // guards the fields below
	listed uint64
	seen   sight
}

// sight is the Lease as this process saw it last.
type sight struct {
	uid     types.UID
	version uint64
	// renewal is empty if the Lease doesn't name its last one: later ones don't either.
	renewal string
	// holder renewed the Lease at the time renewed, by its clock.
	holder  string
	renewed int64
	// first is when this process saw that renewal first, and last when it last read the Lease.
	first, last time.Time
}

// NewHistory makes a History. If the history has changed, it calls ended, which must end the process.
func NewHistory(clock clock.PassiveClock, ended func(error)) *History {
	return &History{clock: clock, ended: ended, lease: func(context.Context) error { return nil }}
}

// Check reads the witnesses. The function lists returns the resourceVersion of a live list of quotas.
func (h *History) Check(ctx context.Context, lists func(ctx context.Context) (uint64, error)) error {
	h.mu.Lock()
	before := h.listed
	h.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.lease(ctx) })
	group.Go(func() error {
		version, err := lists(ctx)
		if err == nil && version < before {
			return h.End(fmt.Errorf("the list of quotas %w from resourceVersion %d to %d", errBack, before, version))
		}
		h.Saw(version)
		return err
	})
	return group.Wait() //nolint:wrapcheck // each error names its read
}

// Saw notes a resourceVersion of a quota, of a ledger or of their lists.
func (h *History) Saw(version uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed = max(h.listed, version)
}

// End ends the process, because of a finding in the API server.
func (h *History) End(found error) error {
	err := fmt.Errorf("etcd was restored from a backup, or this process was stopped for minutes: %w: "+
		"it ends, to begin again without what it remembers", found)
	h.ended(err)
	return err
}

// Follow returns the client of a lock by a Lease, by which the History sees each version of the Lease.
func (h *History) Follow(leases coordinationclient.LeasesGetter, namespace, name string) coordinationclient.LeasesGetter {
	followed := leaseGetter{leases, h}
	h.lease = func(ctx context.Context) error {
		_, err := followed.Leases(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // its resourceVersion is compared once it has been made again
		}
		return err //nolint:wrapcheck // the error names its read
	}
	return followed
}

type leaseGetter struct {
	coordinationclient.LeasesGetter
	history *History
}

// Leases implements LeasesGetter.
func (l leaseGetter) Leases(namespace string) coordinationclient.LeaseInterface {
	return leases{l.LeasesGetter.Leases(namespace), l.history}
}

type leases struct {
	coordinationclient.LeaseInterface
	history *History
}

// Get implements LeaseInterface.
func (l leases) Get(ctx context.Context, name string, options metav1.GetOptions) (*coordinationv1.Lease, error) {
	before := l.history.sight()
	lease, err := l.LeaseInterface.Get(ctx, name, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is as if this weren't there
	}
	if err := before.precedes(lease); err != nil {
		return nil, l.history.End(fmt.Errorf("the Lease %s/%s %w", lease.Namespace, lease.Name, err))
	}
	l.history.see(lease)
	return lease, nil
}

// Create implements LeaseInterface.
func (l leases) Create(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	addRenewal(lease)
	return l.wrote(l.LeaseInterface.Create(ctx, lease, options))
}

// Update implements LeaseInterface. It succeeds only if the Lease is still at the version that was seen.
func (l leases) Update(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	addRenewal(lease)
	return l.wrote(l.LeaseInterface.Update(ctx, lease, options))
}

func (l leases) wrote(lease *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		l.history.see(lease)
	}
	return lease, err
}

// Lease returns the holder of the Lease by the last renewal that this process saw, for how long it has known that, and for how
// long it hasn't read the Lease.
func (h *History) Lease() (holder string, known, unread time.Duration) {
	seen := h.sight()
	return seen.holder, h.clock.Since(seen.first), h.clock.Since(seen.last)
}

func (h *History) sight() sight {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen
}

func (h *History) see(lease *coordinationv1.Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := sightOf(lease)
	now.last = h.clock.Now()
	now.first = now.last
	switch {
	case now.version > h.seen.version:
		if now.holder == h.seen.holder && now.renewed == h.seen.renewed {
			now.first = h.seen.first // only the metadata has changed
		}
		h.seen = now
	case now.version == h.seen.version:
		h.seen.last = now.last
	}
}

// precedes returns an error unless the Lease, read since the sight, is a later version in the same history.
func (s sight) precedes(lease *coordinationv1.Lease) error {
	now := sightOf(lease)
	switch {
	case now.version < s.version:
		return fmt.Errorf("%w from resourceVersion %d to %d", errBack, s.version, now.version)
	case s.uid != now.uid, s.renewal == "", now.renewal == "", slices.Contains(renewalsOf(lease), s.renewal):
		return nil
	default:
		return fmt.Errorf("%w: it doesn't know at resourceVersion %d what it was at %d", errOther, now.version, s.version)
	}
}

func sightOf(lease *coordinationv1.Lease) sight {
	now := sight{
		uid: lease.UID, version: ledger.ParseVersion(lease.ResourceVersion), holder: ptr.Deref(lease.Spec.HolderIdentity, ""),
		renewed: ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).UnixMicro(),
	}
	if renewals, last := renewalsOf(lease), lastOf(lease); len(renewals) > 0 && renewals[len(renewals)-1] == last {
		now.renewal = last
	}
	return now
}

func renewalsOf(lease *coordinationv1.Lease) []string {
	return strings.Fields(lease.Annotations[renewalsAnnotation])
}

func lastOf(lease *coordinationv1.Lease) string {
	return strconv.FormatInt(ptr.Deref(lease.Spec.RenewTime, metav1.MicroTime{}).UnixMicro(), 10)
}

// addRenewal notes in a Lease that is about to be written which renewal it is.
func addRenewal(lease *coordinationv1.Lease) {
	renewals, last := renewalsOf(lease), lastOf(lease)
	if !slices.Contains(renewals, last) {
		renewals = append(renewals, last)
	}
	renewals = renewals[max(0, len(renewals)-maxRenewals):]
	metav1.SetMetaDataAnnotation(&lease.ObjectMeta, renewalsAnnotation, strings.Join(renewals, " "))
}
