// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// measureCommits writes a ledger with ever more reservations, one of which changes with each
// write, and measures what a write costs. Nobody else writes.
func measureCommits(ctx context.Context, w *podsWorld, rounds int, into *results) error {
	for range rounds {
		for _, held := range []int{1, 100, 1000, ledger.MaxReservations} {
			measured, err := w.commit(ctx, held)
			if err != nil {
				return fmt.Errorf("with %d reservations: %w", held, err)
			}
			into.add("commits of a ledger", fmt.Sprintf("%d reservations", held), measured)
		}
	}
	return nil
}

// commit returns what one write costs on average.
func (w *podsWorld) commit(ctx context.Context, held int) (measured turn, err error) {
	const name, writes = "commits", 100
	store, basis := ledgerstore.New(w.asOperator), ledger.Basis{Quota: "quota", Generation: 1, Digest: "digest"}
	quotaLedger := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: name}}
	defer func() {
		err = errors.Join(err, client.IgnoreNotFound(w.asOperator.Delete(context.WithoutCancel(ctx), quotaLedger)))
	}()
	limits := ledger.Limits{Basis: basis, Name: name, Hard: corev1.ResourceList{"pods": resource.MustParse(unlimited)}}
	state := ledger.State{Basis: basis, Used: corev1.ResourceList{"pods": resource.MustParse("0")}}
	draft := ledger.Edit(state)
	for n := range held {
		draft.Reserve(ledger.Charge{Limits: limits, Reservation: reservation(n)})
	}
	state = draft.State()
	version, err := store.Swap(ctx, name, machine.Version{}, state)
	if err != nil {
		return measured, err
	}
	m := &meter{world: w, running: &running{}, quick: true}
	if err := m.begin(ctx); err != nil {
		return measured, err
	}
	began := time.Now()
	for n := range writes {
		draft = ledger.Edit(state)
		draft.Release(reservation(n).Key())
		draft.Reserve(ledger.Charge{Limits: limits, Reservation: reservation(held + n)})
		state = draft.State()
		asked := time.Now()
		if version, err = store.Swap(ctx, name, version, state); err != nil {
			return measured, err
		}
		measured.latency = append(measured.latency, time.Since(asked))
	}
	measured.figures[rate] = writes / time.Since(began).Seconds()
	err = m.end(ctx)
	for _, cpu := range []figure{apiServerCPU, etcdCPU} {
		measured.figures[cpu] = (m.after.figures[cpu] - m.before.figures[cpu]) / writes
	}
	err = errors.Join(err, w.api.Get(ctx, client.ObjectKeyFromObject(quotaLedger), quotaLedger))
	measured.figures[ledgerBytes] = float64(ledgerstore.Size(quotaLedger))
	return measured, err
}

// reservation is that of a pod of a ReplicaSet.
func reservation(n int) ledger.Reservation {
	return ledger.Reservation{
		Object: ledger.Object{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespace: "bench-0000",
			Name: fmt.Sprintf("typical-workload-5d8f9c7b6d-%05d", n), UID: types.UID(fmt.Sprintf("0f9d2b1c-5a67-4c3e-8b2a-%012d", n)),
		},
		Attempt: fmt.Sprintf("a1b2c3d4-5a67-4c3e-8b2a-%012d", n),
		Amounts: corev1.ResourceList{"pods": resource.MustParse("1")},
		Expiry:  time.Unix(2_000_000_000, 0),
	}
}
