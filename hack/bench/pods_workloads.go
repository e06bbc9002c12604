// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// applyWorkloads creates a Deployment, scales it by an update, and deletes it, again and again. It returns
// the latencies of creations and updates.
func applyWorkloads(ctx context.Context, w *podsWorld, i int, measuring, done *atomic.Bool) ([]time.Duration, error) {
	var latency []time.Duration
	namespace := w.namespaces[i%len(w.namespaces)]
	deployments := w.client(i).AppsV1().Deployments(namespace)
	timed := func(apply func() error) error {
		start := time.Now()
		if err := apply(); err != nil {
			return fmt.Errorf("applying a Deployment: %w", err)
		}
		if measuring.Load() {
			latency = append(latency, time.Since(start))
		}
		return nil
	}
	for n := 0; !done.Load(); n++ {
		applied := deployment(namespace, fmt.Sprintf("web-%d-%d", i, n))
		err := timed(func() (err error) {
			applied, err = deployments.Create(ctx, applied, metav1.CreateOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		err = timed(func() error {
			applied.Spec.Replicas = ptr.To[int32](9)
			_, err := deployments.Update(ctx, applied, metav1.UpdateOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := deployments.Delete(ctx, applied.Name, metav1.DeleteOptions{}); err != nil {
			return nil, err
		}
	}
	return latency, nil
}

// deployment is one of eight pods.
func deployment(namespace, name string) *appsv1.Deployment {
	of := pod(namespace, name)
	made := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	made.Spec.Replicas = ptr.To[int32](8)
	made.Spec.Selector = &metav1.LabelSelector{MatchLabels: of.Labels}
	made.Spec.Template.Labels, made.Spec.Template.Spec = of.Labels, of.Spec
	return made
}
