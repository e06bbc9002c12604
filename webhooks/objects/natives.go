// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubeadmission "k8s.io/apiserver/pkg/admission"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
)

// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=list;watch

// Natives are the ResourceQuotas of namespaces.
type Natives struct {
	cached client.Reader
	synced func() bool
	live   *apiserver.Reads[[]corev1.ResourceQuota]

	// flights are of ResourceQuotas.
	flights flights
}

// nativePatience is how long a request waits for others of its namespace. If nothing refuses, a reservation in
// vain does no harm.
func nativePatience(covered namespaces.Covered) time.Duration {
	if slices.ContainsFunc(covered.Definitions, func(d definition.Definition) bool { return d.Enforcement.Refuses() }) {
		return nativeWait
	}
	return 0
}

// nativeWait is how long a request waits for others: a little longer than they count as under way.
const nativeWait = flightLife + 500*time.Millisecond

// nativePoll is how often it looks.
const nativePoll = 50 * time.Millisecond

// NewNatives has the ResourceQuotas watched.
func NewNatives(ctx context.Context, caches cache.Cache, live client.Reader) (*Natives, error) {
	informer, err := caches.GetInformer(ctx, &corev1.ResourceQuota{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("following ResourceQuotas: %w", err)
	}
	return newNatives(caches, informer.HasSynced, live), nil
}

func newNatives(cached client.Reader, synced func() bool, live client.Reader) *Natives {
	read := func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
		return listNatives(ctx, live, namespace)
	}
	return &Natives{cached: cached, synced: synced, live: apiserver.NewReads("the ResourceQuotas of namespace", read)}
}

func listNatives(ctx context.Context, from client.Reader, namespace string) ([]corev1.ResourceQuota, error) {
	list := &corev1.ResourceQuotaList{}
	if err := from.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the ResourceQuotas of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

// admit returns an *evaluation.NativeRefusal if a ResourceQuota of the request's namespace is going to refuse
// the request. Room that was reserved for it would be held in vain. If none will, the request is under way:
// fail must be called if nothing is reserved for it.
//
// A refusal rests on a live read, because a cached quota may be full no more. If it isn't known, nothing is
// refused: the API server judges by the same quotas in a moment. Of requests that fit one by one and not
// together, as many as fit are let through, and the others wait until these have come to be, or for so long
// at most. Other replicas do the same: together they let through as many as fit, once for each replica.
func (n *Natives) admit(
	ctx context.Context, clock clock.Clock, evaluators *evaluation.Evaluators, a kubeadmission.Attributes, wait time.Duration,
) (fail func(), err error) {
	if n == nil || !n.synced() {
		return func() {}, nil
	}
	for until := clock.Now().Add(wait); ; {
		current, err := n.current(ctx, evaluators, a)
		switch {
		case evaluation.IsNativeRefusal(err):
			return nil, err
		case err != nil || a.IsDryRun():
			return func() {}, nil //nolint:nilerr // without knowledge of them, none refuses
		}
		now := clock.Now()
		if begun, fits := n.begin(now, evaluators, a, current, !now.Before(until)); fits || ctx.Err() != nil {
			return func() { n.flights.end(begun) }, nil //nolint:nilerr // a caller that has gone is answered elsewhere
		}
		select {
		case <-clock.After(nativePoll):
		case <-ctx.Done():
		}
	}
}

// current returns the ResourceQuotas of a request's namespace, and a refusal by one of them.
func (n *Natives) current(
	ctx context.Context, evaluators *evaluation.Evaluators, a kubeadmission.Attributes,
) (quotas []corev1.ResourceQuota, err error) {
	fromCache := func(ctx context.Context, namespace string) ([]corev1.ResourceQuota, error) {
		return listNatives(ctx, n.cached, namespace)
	}
	for _, read := range []func(context.Context, string) ([]corev1.ResourceQuota, error){fromCache, n.live.Get} {
		if quotas, err = read(ctx, a.GetNamespace()); err != nil {
			continue
		}
		if _, err = evaluators.CheckNative(a, quotas); !evaluation.IsNativeRefusal(err) {
			break
		}
	}
	return quotas, err
}

// begin lets a request through, if it fits beside those that are under way, or in any case.
func (n *Natives) begin(
	now time.Time, evaluators *evaluation.Evaluators, a kubeadmission.Attributes, quotas []corev1.ResourceQuota, anyway bool,
) (begun []*flight, fits bool) {
	if len(quotas) == 0 {
		return nil, true
	}
	n.flights.mu.Lock()
	defer n.flights.mu.Unlock()
	before := make([]corev1.ResourceQuota, len(quotas))
	for i := range quotas {
		quotas[i].DeepCopyInto(&before[i])
		// The use that was read may be older than the use that other requests have seen.
		used := n.flights.land(keyOf(&quotas[i]), ledger.ParseVersion(quotas[i].ResourceVersion), quotas[i].Status.Used)
		before[i].Status.Used = quota.Add(used, n.flights.under(now, keyOf(&quotas[i])))
	}
	with, err := evaluators.CheckNative(a, before)
	if evaluation.IsNativeRefusal(err) && !anyway {
		return nil, false
	}
	if evaluation.IsNativeRefusal(err) {
		before = quotas
		with, err = evaluators.CheckNative(a, before)
	}
	if err != nil {
		return nil, true
	}
	for i := range with {
		if added := quota.RemoveZeros(quota.Subtract(with[i].Status.Used, before[i].Status.Used)); len(added) > 0 {
			key := keyOf(&quotas[i])
			begun = append(begun, n.flights.add(now, key, added))
			n.flights.land(key, ledger.ParseVersion(quotas[i].ResourceVersion), quotas[i].Status.Used)
		}
	}
	return begun, true
}

func keyOf(native *corev1.ResourceQuota) string { return native.Namespace + "/" + native.Name }
