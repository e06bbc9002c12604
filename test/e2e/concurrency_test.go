// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// creation is one attempt to create a pod.
type creation struct {
	pod *corev1.Pod
	err error
}

// createAtOnce creates one pod in a goroutine each and returns how each went.
func createAtOnce(ctx SpecContext, pods []*corev1.Pod) []creation {
	results := make([]creation, len(pods))
	start := make(chan struct{})
	var group sync.WaitGroup
	for i, pod := range pods {
		group.Go(func() {
			<-start
			results[i] = creation{pod: pod, err: api.Create(ctx, pod)}
		})
	}
	close(start)
	group.Wait()
	return results
}

// podsOf returns the pods of a team that there are.
func podsOf(ctx context.Context, namespaces []string) []corev1.Pod {
	GinkgoHelper()
	var pods []corev1.Pod
	for _, namespace := range namespaces {
		list := &corev1.PodList{}
		Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		pods = append(pods, list.Items...)
	}
	return pods
}

var _ = Describe("Many requests at once", Serial, func() {
	It("lets exactly as many in as the limit allows, from wherever they come", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "10"))
		var namespaces []string
		var pods []*corev1.Pod
		for range 10 {
			namespace := team.namespace(ctx)
			namespaces = append(namespaces, namespace)
			for i := range 10 {
				pods = append(pods, builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj())
			}
		}

		var admitted []*corev1.Pod
		for _, result := range createAtOnce(ctx, pods) {
			if result.err == nil {
				admitted = append(admitted, result.pod)
				continue
			}
			Expect(result.err).To(BeRefused(exceeded(quota.Name, "pods", "1", "10", "10")))
		}
		Expect(admitted).To(HaveLen(10))
		Expect(podsOf(ctx, namespaces)).To(HaveLen(10))
		eventuallyUses(ctx, quota, "pods=10")

		By("freeing capacity, which lets as many others in")
		for _, pod := range admitted[:3] {
			mustDelete(ctx, pod)
		}
		eventuallyUses(ctx, quota, "pods=7")
		for i := range 3 {
			mustCreate(ctx, builders.Pod(namespaces[i], "late").Obj())
		}
		Expect(api.Create(ctx, builders.Pod(namespaces[3], "late").Obj())).To(
			BeRefused(exceeded(quota.Name, "pods", "1", "10", "10")))
		Expect(podsOf(ctx, namespaces)).To(HaveLen(10))
	})

	It("that change objects are held to the limit too", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("services.loadbalancers", "3"))
		namespace := team.namespace(ctx)
		var services []*corev1.Service
		for i := range 20 {
			services = append(services, mustCreate(ctx,
				builders.Service(namespace, fmt.Sprintf("s%d", i)).Type(corev1.ServiceTypeClusterIP, 80).Obj()))
		}
		errs := make([]error, len(services))
		var group sync.WaitGroup
		for i, service := range services {
			group.Go(func() { errs[i] = becomes(ctx, service, corev1.ServiceTypeLoadBalancer) })
		}
		group.Wait()
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
				continue
			}
			Expect(err).To(BeRefused(exceeded(quota.Name, "services.loadbalancers", "1", "3", "3")))
		}
		Expect(admitted).To(Equal(3))
		eventuallyUses(ctx, quota, "services.loadbalancers=3")
	})

	It("that create and delete never hold more than the limit between them", func(ctx SpecContext) {
		const limit, clients, rounds = 5, 12, 15
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", "5"))
		namespaces := []string{team.namespace(ctx), team.namespace(ctx), team.namespace(ctx)}
		since := latestVersion(ctx)

		var admitted, denied atomic.Int32
		var group sync.WaitGroup
		for i := range clients {
			group.Go(func() {
				defer GinkgoRecover()
				for range rounds {
					pod := builders.Pod(namespaces[i%len(namespaces)], fmt.Sprintf("client%d", i)).Generated().Obj()
					if err := api.Create(ctx, pod); err != nil {
						Expect(err).To(BeRefused(exceeded(quota.Name, "pods", "1", "5", "5")))
						denied.Add(1)
						continue
					}
					admitted.Add(1)
					mustDelete(ctx, pod)
				}
			})
		}
		group.Wait()
		Expect(mostAtOnce(ctx, namespaces, since, admitted.Load())).To(BeNumerically("<=", limit))
		AddReportEntry("admitted and denied", fmt.Sprintf("%d and %d", admitted.Load(), denied.Load()))
		eventuallyUses(ctx, quota, "pods=0")
		for i := range limit {
			mustCreate(ctx, builders.Pod(namespaces[0], fmt.Sprintf("p%d", i)).Obj())
		}
	})
})

// latestVersion returns the resourceVersion that the pods are at.
func latestVersion(ctx context.Context) string {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list)).To(Succeed())
	return list.ResourceVersion
}

// mostAtOnce replays what happened to the pods of the namespaces since a
// resourceVersion, and returns how many there were at most at any moment. It
// ends once as many have been deleted as are said to have been created.
//
// A pod is there until its grace period has passed, as for ResourceQuota. A pod without one
// is first marked as deleted, and stays stored for a moment.
func mostAtOnce(ctx context.Context, namespaces []string, since string, created int32) int {
	GinkgoHelper()
	events, err := watcher.Watch(ctx, &corev1.PodList{}, &client.ListOptions{
		Raw: &metav1.ListOptions{ResourceVersion: since},
	})
	Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	timeout := time.After(deadline)
	alive, most, deleted := sets.New[types.UID](), 0, int32(0)
	for deleted < created {
		select {
		case event := <-events.ResultChan():
			pod, isPod := event.Object.(*corev1.Pod)
			Expect(isPod).To(BeTrue(), "%v", event.Object)
			if !slices.Contains(namespaces, pod.Namespace) {
				continue
			}
			switch {
			case event.Type == watch.Deleted:
				deleted++
				alive.Delete(pod.UID)
			case pod.DeletionTimestamp != nil && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0:
				alive.Delete(pod.UID)
			default:
				alive.Insert(pod.UID)
			}
			most = max(most, alive.Len())
		case <-timeout:
			Fail(fmt.Sprintf("%d pods were created, and %d seen to be deleted", created, deleted))
		}
	}
	return most
}
