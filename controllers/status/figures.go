// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"time"

	quota "k8s.io/apiserver/pkg/quota/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
)

// readTimeout bounds the wait for a cache that is only being filled.
const readTimeout = time.Second

// FiguresReader reads the figures of all quotas.
type FiguresReader struct{ Parts }

// NewFiguresReader makes a FiguresReader.
func NewFiguresReader(parts Parts) *FiguresReader { return &FiguresReader{Parts: parts} }

// Read returns the figures of every quota there is.
func (r *FiguresReader) Read() []metrics.Figures {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	list := &quotav1.ClusterResourceQuotaList{}
	if err := r.Client.List(ctx, list); err != nil {
		return nil // the cache has not been filled: nothing is known of any quota
	}
	all := make([]metrics.Figures, 0, len(list.Items))
	for i := range list.Items {
		all = append(all, r.of(ctx, &list.Items[i]))
	}
	return all
}

func (r *FiguresReader) of(ctx context.Context, object *quotav1.ClusterResourceQuota) metrics.Figures {
	figures := metrics.Figures{
		Quota: object.Name, Hard: object.Spec.Quota.Hard, Conditions: object.Status.Conditions,
		Lag: map[metrics.Projection]time.Duration{},
	}
	state := r.Group.Current(object.Name)
	if state.Quota == object.UID {
		figures.Reservations = len(state.Reservations)
	}
	current := counting.BalanceOf(r.Count, object.Name, object.UID, state)
	figures.Used, figures.Reserved = quota.Mask(current.Used, current.Complete), current.Reserved
	figures.Surge = object.Spec.Surge.Hard
	if surge := surgeOf(object.Spec, state, figures.Used, figures.Reserved); surge.active {
		figures.Surging = surge.status.Workloads
	}
	if len(current.Doubtful) > 0 {
		figures.Doubtful = map[string]int{}
	}
	for namespace, doubts := range current.Doubtful {
		figures.Doubtful[namespace] = doubts.Number
	}
	if r.Namespaces {
		figures.Namespaces = current.Slices
		for namespace, used := range current.Slices {
			figures.Namespaces[namespace] = quota.Mask(used, current.Complete)
		}
	}
	figures.Waiting, _ = r.Waiting.Summary(object.Name)
	figures.LedgerBytes = r.ledgerBytes(ctx, object.Name)
	for projection, lag := range map[metrics.Projection]*Lag{metrics.Status: r.StatusLag, metrics.Views: r.ViewsLag} {
		figures.Lag[projection] = lag.Of(object.Name)
	}
	return figures
}

// ledgerBytes is how large the quota's ledger is; zero if there is none.
func (r *FiguresReader) ledgerBytes(ctx context.Context, quota string) int {
	stored := &quotav1.QuotaLedger{}
	if r.Client.Get(ctx, client.ObjectKey{Name: quota}, stored) != nil {
		return 0 // it is being made, or the cache is being filled
	}
	return r.Ledgers.Size(stored)
}
