// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/test/harness"
)

const (
	selectLabel = "bench"
	// clientsPerConnection keeps HTTP/2 streams from being what is measured.
	clientsPerConnection = 50
)

// podsWorld is the control plane and what the variants share.
type podsWorld struct {
	cluster *harness.Cluster
	manager string
	// compare is another build of the operator; empty for none.
	compare string
	// certDir has the certificate of the floor.
	certDir  string
	profiler profiler
	// variants are those that take turns.
	variants *regexp.Regexp
	api      client.Client
	// asOperator is a client with the operator's rights: nobody else may write ledgers.
	asOperator client.Client
	// operator and floor are the Services of the operator and of the webhooks that are the floor.
	operator *harness.Production
	floor    *harness.Endpoints
	// clients are kept from one turn to the next, with their connections.
	clients []kubernetes.Interface
	// series is what the names of namespaces begin with, and the label of those that a quota selects.
	series string
	// namespaces of the series that exist, in the order of their names.
	namespaces []string
	// renewed counts the other series.
	renewed int
}

func newPodsWorld(cluster *harness.Cluster, manager string) (*podsWorld, error) {
	api, err := connect(cluster.Config())
	if err != nil {
		return nil, err
	}
	w := &podsWorld{cluster: cluster, manager: manager, api: api, series: "bench"}
	w.certDir, err = w.makeCertificate()
	return w, err
}

// ensure makes as many namespaces and connections as a scenario needs.
func (w *podsWorld) ensure(ctx context.Context, namespaces, clients int) error {
	for len(w.namespaces) < namespaces {
		name := fmt.Sprintf("%s-%04d", w.series, len(w.namespaces))
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := w.api.Create(ctx, namespace); err != nil {
			return err
		}
		w.namespaces = append(w.namespaces, name)
	}
	for len(w.clients)*clientsPerConnection < clients {
		made, err := connectAlone(w.cluster.Config())
		if err != nil {
			return err
		}
		w.clients = append(w.clients, made)
	}
	return nil
}

// renew begins another series, without namespaces, until back is called.
func (w *podsWorld) renew() (back func()) {
	series, namespaces := w.series, w.namespaces
	w.renewed++
	w.series, w.namespaces = fmt.Sprintf("new-%d", w.renewed), nil
	return func() { w.series, w.namespaces = series, namespaces }
}

func (w *podsWorld) client(i int) kubernetes.Interface {
	return w.clients[i%len(w.clients)]
}

// selectNamespaces labels the first n namespaces, and no others.
func (w *podsWorld) selectNamespaces(ctx context.Context, n int) error {
	return inParallel(ctx, len(w.namespaces), func(ctx context.Context, i int) error {
		value := "null"
		if i < n {
			value = strconv.Quote(w.series)
		}
		patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, selectLabel, value))
		return w.api.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespaces[i]}}, patch)
	})
}

// clear deletes all pods.
func (w *podsWorld) clear(ctx context.Context) error {
	return inParallel(ctx, len(w.namespaces), func(ctx context.Context, i int) error {
		return w.clients[0].CoreV1().Pods(w.namespaces[i]).DeleteCollection(ctx,
			metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{})
	})
}

// limits are what each quota of a turn allows.
func limits(pods string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourcePods:           resource.MustParse(pods),
		corev1.ResourceRequestsCPU:    resource.MustParse("1M"),
		corev1.ResourceRequestsMemory: resource.MustParse("1Pi"),
	}
}

func pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "bench"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/main:1",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"),
			}},
		}}},
	}
}

// enforced tells whether the quota's condition Enforced is true.
func (w *podsWorld) enforced(name string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		quota := &quotav1.ClusterResourceQuota{}
		err := w.api.Get(ctx, client.ObjectKey{Name: name}, quota)
		return meta.IsStatusConditionTrue(quota.Status.Conditions, quotav1.ConditionEnforced), err
	}
}

// gone tells whether an object is no longer there.
func (w *podsWorld) gone(object client.Object) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := w.api.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
}
