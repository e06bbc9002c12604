// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

const (
	churnTimes = 10
	// churnSettle is a pause before the memory of a round is measured.
	churnSettle = 10 * time.Second
	// mostGrowth is the target for memory after the last round against the first.
	mostGrowth target = "≤ 1.10"
)

// measureChurn lets namespaces and quotas come and go, each round under new names, and measures whether the operator's memory
// grows. kube-controller-manager empties the namespaces.
func (w *scaleWorld) measureChurn(ctx context.Context) error {
	_, err := w.cluster.StartControllerManager(ctx, "--controllers", "namespace-controller",
		"--concurrent-namespace-syncs", "50", "--kube-api-qps", "5000", "--kube-api-burst", "5000")
	if err != nil {
		return err
	}
	r, err := w.startReplica(ctx)
	if err != nil {
		return err
	}
	var rounds []memory
	for i := range churnTimes {
		if err := w.churn(ctx, i); err != nil {
			return fmt.Errorf("round %d: %w", i+1, err)
		}
		if err := pause(ctx, churnSettle); err != nil {
			return err
		}
		held, err := r.memory(ctx)
		if err != nil {
			return err
		}
		sayf("%s: round %d: %.1f MB resident, %.1f MB of live heap", w.title, i+1, held.resident/1e6, held.live/1e6)
		rounds = append(rounds, held)
		if err := w.profiler.start(ctx, w.title, ofHeap)(); err != nil {
			return err
		}
	}
	first, last := rounds[0], rounds[len(rounds)-1]
	w.report.churn = rounds
	w.report.add(w.title+": resident after the tenth time against the first", last.resident/first.resident, mostGrowth)
	w.report.add(w.title+": live heap after the tenth time against the first", last.live/first.live, mostGrowth)
	return w.stop(ctx)
}

// churn is one round: everything comes, is counted, and goes.
func (w *scaleWorld) churn(ctx context.Context, round int) error {
	sayf("%s: round %d of %d", w.title, round+1, churnTimes)
	quotaOf := func(i int) string { return quotaName(round*w.size.quotas + i%w.size.quotas) }
	namespace := func(i int) string { return namespaceName(round*w.namespaces + i) }
	want := map[string]usage{}
	for i := range w.namespaces {
		want[quotaOf(i)] = want[quotaOf(i)].plus(0, 1)
	}
	statuses, err := w.followStatuses(ctx)
	if err != nil {
		return err
	}
	defer statuses.stop()
	create := func(ctx context.Context, i int) error { return w.createNamespace(ctx, namespace(i), quotaOf(i)) }
	if err := inParallel(ctx, w.namespaces, create); err != nil {
		return err
	}
	limit := func(ctx context.Context, i int) error { return w.quotas.Create(ctx, quotaOver(quotaOf(i)).Obj()) }
	if err := inParallel(ctx, w.size.quotas, limit); err != nil {
		return fmt.Errorf("creating quotas: %w", err)
	}
	empty := map[string]usage{}
	for quota := range want {
		empty[quota] = usage{}
	}
	if err := statuses.await(ctx, w.shownAs(empty)); err != nil {
		return err
	}
	load := func(ctx context.Context, i int) error { return w.createPod(ctx, namespace(i), "app", 0) }
	if err := inParallel(ctx, w.namespaces, load); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	if err := statuses.await(ctx, w.shownAs(want)); err != nil {
		return err
	}
	return w.clear(ctx, namespace)
}

// clear deletes the namespaces and all quotas, and returns once they are gone.
func (w *scaleWorld) clear(ctx context.Context, namespace func(int) string) error {
	err := inParallel(ctx, w.namespaces, func(ctx context.Context, i int) error {
		return w.objects.CoreV1().Namespaces().Delete(ctx, namespace(i), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	})
	if err != nil {
		return fmt.Errorf("deleting namespaces: %w", err)
	}
	if err := w.quotas.DeleteAllOf(ctx, &quotav1.ClusterResourceQuota{}); err != nil {
		return fmt.Errorf("deleting quotas: %w", err)
	}
	if err := w.untilGone(ctx); err != nil {
		return err
	}
	return poll(ctx, "the namespaces to go", func(ctx context.Context) (bool, error) {
		list := &corev1.NamespaceList{}
		err := w.quotas.List(ctx, list, client.HasLabels{team})
		return len(list.Items) == 0, err
	})
}
