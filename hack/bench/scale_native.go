// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// counted is what native ResourceQuota took for the same objects.
type counted struct {
	// seconds is the time from the start until all are counted, cpu the CPU time of kube-controller-manager until then.
	seconds, cpu float64
	// peak is the most that was resident, in bytes.
	peak float64
}

// measureNative starts the controller of native ResourceQuota, with a quota in each namespace that limits the same as
// the operator's quotas. The controller has its default of five workers, but makes 500 requests a second and
// not 20.
func (w *scaleWorld) measureNative(ctx context.Context) error {
	if err := errors.Join(w.fill(ctx), w.stop(ctx)); err != nil {
		return err
	}
	sayf("%s: creating %d native quotas", w.title, w.namespaces)
	hard := quotaOver("").Obj().Spec.Quota.Hard
	want := map[string]bool{}
	for i := range w.namespaces {
		want[namespaceName(i)] = true
	}
	err := inParallel(ctx, w.namespaces, func(ctx context.Context, i int) error {
		quota := builders.ResourceQuota(namespaceName(i), "native")
		quota.Spec.Hard = hard
		return w.quotas.Create(ctx, quota)
	})
	if err != nil {
		return fmt.Errorf("creating native quotas: %w", err)
	}
	list := func() client.ObjectList { return &corev1.ResourceQuotaList{} }
	natives, err := follow(ctx, w.quotas, list, func(object runtime.Object) (string, bool) {
		quota, _ := object.(*corev1.ResourceQuota)
		return quota.Namespace, len(quota.Status.Used) == len(quota.Spec.Hard)
	})
	if err != nil {
		return err
	}
	defer natives.stop()
	sayf("%s: counting natively", w.title)
	var process *harness.Process
	begin, measured := time.Now(), &counted{}
	err = together(ctx, func(ctx context.Context) error {
		err := natives.await(ctx, want)
		measured.seconds = time.Since(begin).Seconds()
		return err
	}, func(ctx context.Context) (err error) {
		process, err = w.cluster.StartControllerManager(ctx, "--controllers", "resourcequota-controller")
		return err
	})
	if err != nil {
		return err
	}
	used, usedErr := process.Consumption()
	measured.cpu = used.CPU.Seconds()
	var peakErr error
	measured.peak, peakErr = peakOf(process.PID())
	w.report.column(w.title, w.size).native = measured
	sayf("%s: counted natively after %.1f s", w.title, measured.seconds)
	return errors.Join(usedErr, peakErr, process.Stop())
}
