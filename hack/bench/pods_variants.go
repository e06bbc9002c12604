// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// setup is what a turn limits.
type setup struct {
	namespaces int
	// pods is the limit on pods, a quantity.
	pods string
	// fresh: over namespaces that no turn has used.
	fresh bool
}

// running is a variant during its turn.
type running struct {
	// processes are what it runs besides the control plane.
	processes []*harness.Process
	// metrics are the ports of the operator's metrics.
	metrics []int
	stops   []func(context.Context) error
}

// stop undoes what start did, the latest first.
func (r *running) stop(ctx context.Context) error {
	var errs []error
	for _, stop := range slices.Backward(r.stops) {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

func (r *running) onStop(stop func(context.Context) error) { r.stops = append(r.stops, stop) }

// process adds a process that stops with the variant.
func (r *running) process(process *harness.Process) {
	r.processes = append(r.processes, process)
	r.onStop(func(context.Context) error { return process.Stop() })
}

// variant is one way to limit, or not to.
type variant struct {
	name  string
	start func(context.Context, *podsWorld, setup) (*running, error)
}

// The names of the variants. All replicas are reached through a Service, as in a cluster.
const (
	nothing       = "no quota"
	allowing      = "allowing webhook, 2 replicas"
	refusing      = "refusing webhook, 2 replicas"
	native        = "native ResourceQuota"
	single        = "operator, 1 replica"
	double        = "operator, 2 replicas"
	tried         = "operator, 2 replicas, a second quota in the mode Audit"
	another       = "another build, 2 replicas"
	preflightOff  = "preflight Off"
	preflightWarn = "preflight Warn"
)

var (
	variantNothing = variant{nothing, func(context.Context, *podsWorld, setup) (*running, error) { return &running{}, nil }}
	variantAllow   = variant{allowing, ask("/allow")}
	variantRefuse  = variant{refusing, ask("/refuse")}
	variantNative  = variant{native, limitNatively}
	variantSingle  = variant{single, limitBy(1, "")}
	variantDouble  = variant{double, limitBy(2, "")}
	variantTried   = variant{tried, limitTwice}
	variantOff     = variant{preflightOff, limitBy(2, quotav1.PreflightOff)}
	variantWarn    = variant{preflightWarn, limitBy(2, quotav1.PreflightWarn)}
	// variantOther takes part in all turns that variantDouble does, where there is another build.
	variantOther = variant{another, func(ctx context.Context, w *podsWorld, s setup) (*running, error) {
		current := w.manager
		w.manager = w.compare
		defer func() { w.manager = current }()
		return limitBy(2, "")(ctx, w, s)
	}}
)

// ask has the API server ask the webhook that always answers the same.
func ask(path string) func(context.Context, *podsWorld, setup) (*running, error) {
	return func(ctx context.Context, w *podsWorld, _ setup) (*running, error) { return w.askFloor(ctx, path) }
}

// limitNatively makes a ResourceQuota in each namespace, and runs the controller
// that counts for them.
func limitNatively(ctx context.Context, w *podsWorld, s setup) (*running, error) {
	r := &running{}
	controllers, err := w.cluster.StartControllerManager(ctx, "--controllers", "resourcequota-controller")
	if err != nil {
		return r, err
	}
	r.process(controllers)
	r.onStop(func(ctx context.Context) error {
		return inParallel(ctx, s.namespaces, func(ctx context.Context, i int) error {
			return client.IgnoreNotFound(w.api.Delete(ctx, nativeQuota(w.namespaces[i], s.pods)))
		})
	})
	err = inParallel(ctx, s.namespaces, func(ctx context.Context, i int) error {
		return w.api.Create(ctx, nativeQuota(w.namespaces[i], s.pods))
	})
	if err != nil {
		return r, err
	}
	return r, until(ctx, "native quotas to be counted", func(ctx context.Context) (bool, error) {
		list := &corev1.ResourceQuotaList{}
		err := w.api.List(ctx, list)
		for _, quota := range list.Items {
			if len(quota.Status.Used) < len(quota.Spec.Hard) {
				return false, err
			}
		}
		return true, err
	})
}

func nativeQuota(namespace, pods string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bench"},
		Spec:       corev1.ResourceQuotaSpec{Hard: limits(pods)},
	}
}

// limitBy runs so many replicas of the operator, with one quota over all namespaces. An empty mode of preflight is the default.
func limitBy(replicas int, preflight quotav1.PreflightMode) func(context.Context, *podsWorld, setup) (*running, error) {
	return func(ctx context.Context, w *podsWorld, s setup) (*running, error) {
		r := &running{}
		if err := w.startOperator(ctx, r, replicas); err != nil {
			return r, err
		}
		if err := w.selectNamespaces(ctx, s.namespaces); err != nil {
			return r, err
		}
		quota := w.sharedQuota(s.pods)
		quota.Spec.Preflight = preflight
		if err := w.api.Create(ctx, quota); err != nil {
			return r, err
		}
		r.onStop(func(ctx context.Context) error { return w.removeQuota(ctx, quota) })
		return r, until(ctx, "the quota to be enforced", w.enforced(quota.Name))
	}
}

// limitTwice has a second quota over the same namespaces try a limit that is exceeded at once.
func limitTwice(ctx context.Context, w *podsWorld, s setup) (*running, error) {
	r, err := limitBy(2, "")(ctx, w, s)
	if err != nil {
		return r, err
	}
	quota := w.sharedQuota("1")
	quota.Name, quota.Spec.Enforcement.Mode = "bench-tried", quotav1.EnforcementAudit
	if err := w.api.Create(ctx, quota); err != nil {
		return r, err
	}
	r.onStop(func(ctx context.Context) error { return w.removeQuota(ctx, quota) })
	return r, until(ctx, "the second quota to be enforced", w.enforced(quota.Name))
}

func (w *podsWorld) sharedQuota(pods string) *quotav1.ClusterResourceQuota {
	quota := &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	quota.Spec.Selector.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{selectLabel: w.series}}
	quota.Spec.Quota.Hard = limits(pods)
	return quota
}

func (w *podsWorld) removeQuota(ctx context.Context, quota *quotav1.ClusterResourceQuota) error {
	if err := w.api.Delete(ctx, quota); err != nil {
		return err
	}
	ledger := &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: quota.Name}}
	return until(ctx, "the ledger to go", w.gone(ledger))
}

// removeConfiguration deletes what the operator registered with the API server,
// and waits until that no longer asks it.
func (w *podsWorld) removeConfiguration(ctx context.Context) error {
	if err := disarm(ctx, w.api); err != nil {
		return err
	}
	return until(ctx, "the API server to ask no webhook", func(ctx context.Context) (bool, error) {
		err := w.api.Create(ctx, pod(w.namespaces[0], "probe"), client.DryRunAll)
		return err == nil, err
	})
}
