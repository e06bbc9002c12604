// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	// enough is a limit that nothing here reaches.
	enough = "1000000000"
	team   = "team"
)

// size is how much there is in a world.
type size struct {
	namespaces, quotas, pods int
	// custom is how many custom resources are defined, of which one can't be listed. The quotas limit them, each its share.
	custom int
	// crowded: the first namespace has a tenth of the pods.
	crowded bool
}

// divided is a smaller world, in which each quota still has two namespaces, and each namespace a pod.
func (s size) divided(by int) size {
	s.quotas = max(s.quotas/by, 1)
	s.namespaces = max(s.namespaces/by, 2*s.quotas)
	s.pods = max(s.pods/by, s.namespaces)
	if s.custom > 0 {
		s.custom = max(s.custom/by, 2)
	}
	return s
}

// scaleWorld is the cluster and what it should come to.
type scaleWorld struct {
	size

	options scaleOptions
	cluster *harness.Cluster
	quotas  client.WithWatch
	objects kubernetes.Interface
	// operator is the Service of those replicas that run.
	operator *harness.Production
	replicas []*replica
	// loaded is how many pods there are, and extra how many more in the first namespace of each quota.
	loaded, extra int
	// limited: the quotas were created.
	limited bool
	// excess is not nil if a replica took more memory than it may.
	excess   error
	profiler profiler
	title    string
	report   *report
}

// newScaleWorld makes a world that has only its namespaces, and custom resources if any.
func newScaleWorld(ctx context.Context, cluster *harness.Cluster, o scaleOptions, s size) (*scaleWorld, error) {
	quotas, err := connect(cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("making the client of quotas: %w", err)
	}
	objects, err := connectAlone(cluster.Config())
	if err != nil {
		return nil, fmt.Errorf("making the client of objects: %w", err)
	}
	w := &scaleWorld{size: s, options: o, cluster: cluster, quotas: quotas, objects: objects}
	if w.profiler, err = newProfiler(o.profiles, cluster); err != nil {
		return nil, err
	}
	w.operator, err = installOperator(ctx, cluster, o.config)
	return w, err
}

func namespaceName(index int) string { return fmt.Sprintf("ns-%05d", index) }

// quotaOf is the quota that a namespace belongs to.
func (s size) quotaOf(namespace int) string { return quotaName(namespace % s.quotas) }

func quotaName(index int) string { return fmt.Sprintf("team-%04d", index) }

// prepare creates the namespaces and custom resources.
func (w *scaleWorld) prepare(ctx context.Context) error {
	sayf("creating %d namespaces", w.namespaces)
	err := inParallel(ctx, w.namespaces, func(ctx context.Context, i int) error {
		return w.createNamespace(ctx, namespaceName(i), w.quotaOf(i))
	})
	if err != nil {
		return err
	}
	return w.prepareCustom(ctx)
}

// createNamespace creates a namespace that a quota covers.
func (w *scaleWorld) createNamespace(ctx context.Context, name, quota string) error {
	_, err := w.objects.CoreV1().Namespaces().Create(ctx, builders.Namespace(name).Label(team, quota).Obj(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// limit creates the quotas.
func (w *scaleWorld) limit(ctx context.Context) error {
	sayf("creating %d quotas", w.size.quotas)
	w.limited = true
	return inParallel(ctx, w.size.quotas, func(ctx context.Context, i int) error {
		quota := quotaOver(quotaName(i))
		for custom := i; custom < w.custom; custom += w.size.quotas {
			quota.Hard(customLimit(custom), enough)
		}
		return w.quotas.Create(ctx, quota.Obj())
	})
}

// quotaOver makes a quota over the namespaces that are labelled with its name.
func quotaOver(name string) *builders.QuotaBuilder {
	return builders.Quota(name).Label(team, name).
		Hard("pods", enough).Hard("requests.cpu", enough).Hard("requests.memory", enough+"Mi").
		Hard("limits.cpu", enough).Hard("limits.memory", enough+"Mi")
}

// unlimit deletes the quotas, and returns once the operator has deleted their ledgers.
func (w *scaleWorld) unlimit(ctx context.Context) error {
	w.limited = false
	if err := w.quotas.DeleteAllOf(ctx, &quotav1.ClusterResourceQuota{}); err != nil {
		return fmt.Errorf("deleting quotas: %w", err)
	}
	return w.untilGone(ctx)
}

// untilGone returns once there is no ledger, and no quota that is being deleted.
func (w *scaleWorld) untilGone(ctx context.Context) error {
	return poll(ctx, "the ledgers to go", func(ctx context.Context) (bool, error) {
		ledgers, quotas := &quotav1.QuotaLedgerList{}, &quotav1.ClusterResourceQuotaList{}
		err := errors.Join(w.quotas.List(ctx, ledgers), w.quotas.List(ctx, quotas))
		return len(ledgers.Items)+len(quotas.Items) == 0, err
	})
}

// fill creates everything that isn't there yet. No operator runs before the first time.
func (w *scaleWorld) fill(ctx context.Context) error {
	if w.loaded == 0 {
		if err := w.prepare(ctx); err != nil {
			return err
		}
		if err := w.load(ctx); err != nil {
			return err
		}
	}
	if w.limited {
		return nil
	}
	return w.limit(ctx)
}

// share is how many pods a namespace has: where it is crowded, the first one has a tenth; the others have the same each, or
// one more.
func (s size) share(namespace int) int {
	many, others := 0, s.namespaces
	if s.crowded {
		if many = s.pods / 10; namespace == 0 {
			return many
		}
		namespace, others = namespace-1, others-1
	}
	each, left := (s.pods-many)/others, (s.pods-many)%others
	if namespace < left {
		return each + 1
	}
	return each
}

// load creates the pods. No operator may run.
func (w *scaleWorld) load(ctx context.Context) error {
	sayf("loading %d pods", w.pods)
	err := inParallel(ctx, w.namespaces, func(ctx context.Context, namespace int) error {
		for i := range w.share(namespace) {
			if err := w.createPod(ctx, namespaceName(namespace), fmt.Sprintf("app-%05d", i), i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("loading pods: %w", err)
	}
	w.loaded = w.pods
	return nil
}

func (w *scaleWorld) createPod(ctx context.Context, namespace, name string, index int) error {
	_, err := w.objects.CoreV1().Pods(namespace).Create(ctx, aPod(namespace, name, index), metav1.CreateOptions{})
	return err
}
