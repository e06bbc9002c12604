// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// enough is a limit that nothing here reaches.
	enough = "1000000000"
	team   = "team"
)

// scaleWorld is the cluster and what it should come to.
type scaleWorld struct {
	options scaleOptions
	cluster *harness.Cluster
	quotas  client.WithWatch
	objects kubernetes.Interface
	// loaded is how many pods there are.
	loaded int
	// operator is the one that runs, if any.
	operator *harness.Operator
	// metricsPort is where it serves its metrics.
	metricsPort int
}

func newScaleWorld(cluster *harness.Cluster, o scaleOptions) (*scaleWorld, error) {
	quotas, err := connect(cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("making the client of quotas: %w", err)
	}
	objects, err := connectAlone(cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("making the client of objects: %w", err)
	}
	return &scaleWorld{options: o, cluster: cluster, quotas: quotas, objects: objects}, nil
}

func namespaceName(index int) string { return fmt.Sprintf("ns-%04d", index) }

// quotaOf is the quota that a namespace belongs to.
func (o scaleOptions) quotaOf(namespace int) string {
	return fmt.Sprintf("team-%03d", namespace%o.quotas)
}

// prepare creates the namespaces and the quotas.
func (w *scaleWorld) prepare(ctx context.Context) error {
	sayf("creating %d namespaces and %d quotas", w.options.namespaces, w.options.quotas)
	err := inParallel(ctx, w.options.namespaces, func(ctx context.Context, i int) error {
		namespace := builders.Namespace(namespaceName(i)).Label(team, w.options.quotaOf(i)).Obj()
		_, err := w.objects.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("creating namespaces: %w", err)
	}
	if err := w.prepareCustom(ctx); err != nil {
		return err
	}
	for i := range w.options.quotas {
		name := w.options.quotaOf(i)
		quota := builders.Quota(name).Label(team, name).
			Hard("pods", enough).Hard("requests.cpu", enough).Hard("requests.memory", enough+"Mi").
			Hard("limits.cpu", enough).Hard("limits.memory", enough+"Mi")
		for custom := i; custom < w.options.custom; custom += w.options.quotas {
			quota.Hard(customLimit(custom), enough)
		}
		if err := w.quotas.Create(ctx, quota.Obj()); err != nil {
			return fmt.Errorf("creating quota %s: %w", name, err)
		}
	}
	return nil
}

// share is how many of so many pods a namespace holds: the first one a tenth, the others the same
// each, or one more. It is never less for more pods.
func (o scaleOptions) share(namespace, pods int) int {
	many := pods / 10
	if namespace == 0 {
		return many
	}
	each, left := (pods-many)/(o.namespaces-1), (pods-many)%(o.namespaces-1)
	if namespace <= left {
		return each + 1
	}
	return each
}

// load creates pods until there are so many. No operator may run.
func (w *scaleWorld) load(ctx context.Context, pods int) error {
	sayf("loading %d pods", pods-w.loaded)
	err := inParallel(ctx, w.options.namespaces, func(ctx context.Context, namespace int) error {
		for i := w.options.share(namespace, w.loaded); i < w.options.share(namespace, pods); i++ {
			pod := aPod(namespaceName(namespace), fmt.Sprintf("app-%05d", i), i)
			if _, err := w.objects.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("loading pods: %w", err)
	}
	w.loaded = pods
	return nil
}
