// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package crowd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// atOnce is how many objects are created at the same time.
const atOnce = 8

// CPU is what each pod requests.
const CPU = "100m"

// Crowd is many workloads.
type Crowd struct {
	// API must read from the API server.
	API client.WithWatch
	// Name begins the names of the namespaces, and is the value of their label "team".
	Name string
	// Owners is how many workloads there are, in how many Namespaces: as many ReplicaSets as StatefulSets and Jobs.
	Owners, Namespaces int
}

// Namespace is the name of one of the namespaces.
func (c Crowd) Namespace(i int) string { return fmt.Sprintf("%s-%d", c.Name, i%c.Namespaces) }

// Prepare makes the namespaces.
func (c Crowd) Prepare(ctx context.Context) error {
	return each(c.Namespaces, func(i int) error {
		return c.API.Create(ctx, builders.Namespace(c.Namespace(i)).Label("team", c.Name).Obj())
	})
}

// Start makes the workloads.
func (c Crowd) Start(ctx context.Context) error {
	return each(c.Owners, func(i int) error { return c.API.Create(ctx, workload(i, c.Namespace(i))) })
}

func workload(i int, namespace string) client.Object {
	name := fmt.Sprintf("owner-%d", i)
	labels := map[string]string{"app": name}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: builders.Pod(namespace, name).Request("cpu", CPU).Obj().Spec,
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch i % 3 {
	case 0:
		set := builders.ReplicaSet(namespace, name)
		set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = ptr.To[int32](1), selector, template
		return set
	case 1:
		set := builders.StatefulSet(namespace, name)
		set.Spec.Replicas, set.Spec.Selector, set.Spec.Template = ptr.To[int32](1), selector, template
		return set
	default:
		job := builders.Job(namespace, name)
		job.Spec.Suspend = nil
		job.Spec.Template = template
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return job
	}
}

// each does something so many times.
func each(number int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range number {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// Arrivals notes when pods come.
type Arrivals struct {
	stop context.CancelFunc
	done chan struct{}

	// mu guards what follows.
	mu    sync.Mutex
	times []time.Time
	// err is why the watch ended before it was stopped.
	err error
}

var errEnded = errors.New("the watch of pods ended")

// Watch notes when pods with names of the crowd's workloads come, from now on, until it is stopped.
func (c Crowd) Watch(ctx context.Context) (*Arrivals, error) {
	pods := &corev1.PodList{}
	if err := c.API.List(ctx, pods, client.Limit(1)); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	since := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: pods.ResourceVersion}}
	watching, err := c.API.Watch(ctx, &corev1.PodList{}, since)
	if err != nil {
		stop()
		return nil, err
	}
	arrivals := &Arrivals{stop: stop, done: make(chan struct{})}
	mine := map[string]bool{}
	for i := range c.Namespaces {
		mine[c.Namespace(i)] = true
	}
	go func() {
		defer close(arrivals.done)
		for event := range watching.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Added && mine[pod.Namespace] {
				arrivals.add()
			}
		}
		if ctx.Err() == nil {
			arrivals.fail()
		}
	}()
	return arrivals, nil
}

func (a *Arrivals) add() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Now())
}

func (a *Arrivals) fail() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = errEnded
}

// Stop ends the watch.
func (a *Arrivals) Stop() {
	a.stop()
	<-a.done
}

// Since returns how long after a moment each pod came, sorted.
func (a *Arrivals) Since(moment time.Time) ([]time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	after := make([]time.Duration, 0, len(a.times))
	for _, at := range a.times {
		after = append(after, at.Sub(moment))
	}
	slices.Sort(after)
	return after, a.err
}

// Percentile returns the value that so many percent of the sorted durations don't exceed.
func Percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, (len(sorted)*percent+99)/100-1)]
}

// Free deletes pods that hold room.
func Free(ctx context.Context, api client.Client, namespace string, names ...string) error {
	for _, name := range names {
		pod := builders.Pod(namespace, name).Obj()
		if err := api.Delete(ctx, pod, client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
