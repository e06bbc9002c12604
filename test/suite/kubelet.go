// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/harness"
)

// Node makes a node, if it isn't there, on which no kubelet runs, and takes its taints away: the API server makes a node not
// ready, and there is no kubelet that could make it ready.
func Node(ctx context.Context, api client.Client, name string) {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, node.DeepCopy()))).To(Succeed())
	Expect(api.Patch(ctx, node, Merge(`{"spec":{"taints":null}}`))).To(Succeed())
}

// Kubelet makes the namespace's pods ready until the spec ends, or the specs of a BeforeAll, as
// a kubelet and a scheduler would. Nothing is made ready any more once it is told to stop.
func Kubelet(ctx context.Context, cluster *harness.Cluster, namespace string) (end func()) {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // A BeforeAll's ends with it.
	api := Client(cluster.Config(), 0)                          // A timeout would end the watch.
	pods, err := api.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	end = func() { stop(); <-done }
	DeferCleanup(end)
	go func() {
		defer close(done)
		defer pods.Stop()
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || pod.Status.Phase == corev1.PodRunning || pod.DeletionTimestamp != nil {
				continue
			}
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
			}}
			_ = api.Status().Update(ctx, pod) // Another event follows where this one was outdated.
		}
	}()
	return end
}
