// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sharedquota/shared-quota-operator/test/builders"
)

// Serial, because it keeps both cores busy: beside other specs, a call may take the ten seconds that the API server gives a
// webhook.
var _ = Describe("Large objects", Serial, func() {
	It("are all answered by the quota, and small ones meanwhile", func(ctx SpecContext) {
		const size, room, requests = 1_300_000, 10, 16
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", fmt.Sprint(room)).Hard("configmaps", "100k"))
		namespace := team.namespace(ctx)
		errs := make([]error, requests)
		var tenants sync.WaitGroup
		for i := range requests {
			tenants.Go(func() {
				pod := builders.Pod(namespace, fmt.Sprintf("large-%d", i)).Obj()
				pod.Spec.Containers[0].Args = []string{strings.Repeat("a", size)}
				errs[i] = api.Create(ctx, pod)
			})
		}
		done := make(chan struct{})
		go func() { tenants.Wait(); close(done) }()
		var slowest time.Duration
		created := 0
		for ended := false; !ended; created++ {
			select {
			case <-done:
				ended = true
			default:
			}
			began := time.Now()
			Expect(api.Create(ctx, builders.ConfigMap(namespace, fmt.Sprintf("small-%d", created)))).To(Succeed())
			slowest = max(slowest, time.Since(began))
		}
		AddReportEntry("small requests", fmt.Sprintf("%d, at most %s", created, slowest))
		admitted := 0
		for _, err := range errs {
			if err == nil {
				admitted++
				continue
			}
			Expect(err).To(MatchError(ContainSubstring("exceeded quota: " + quota.Name)))
		}
		Expect(admitted).To(Equal(room))
	})
})

var _ = Describe("A request that fails by itself after it was admitted", func() {
	It("is told what is held for it", func(ctx SpecContext) {
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("requests.cpu", "10"))
		namespace := team.namespace(ctx)
		large := builders.Pod(namespace, "large").Generated().Request("cpu", "9900m").Obj()
		large.Spec.Containers[0].Args = []string{strings.Repeat("a", 1_600_000)} // etcd takes less, and the API server asks twice
		refused := exceeded(quota.Name, "requests.cpu", "9900m", "9900m", "10") + " (of used, requests.cpu=9900m is held until about "
		Expect(api.Create(ctx, large)).To(BeRefused(refused))
		Expect(api.Create(ctx, builders.Pod(namespace, "another").Request("cpu", "9900m").Obj())).To(BeRefused(refused))
	})

	It("holds at most a tenth of what is free, if it asks for names that exist", func(ctx SpecContext) {
		const there, free = 10, 8
		team := newTeam()
		quota := enforce(ctx, team.quota().Hard("pods", fmt.Sprint(there+free)))
		namespace := team.namespace(ctx)
		pod := func(i int) *corev1.Pod { return builders.Pod(namespace, fmt.Sprintf("p%d", i)).Obj() }
		for i := range there {
			mustCreate(ctx, pod(i))
		}
		eventuallyUses(ctx, quota, fmt.Sprintf("pods=%d", there))
		Eventually(ctx, reservations).WithArguments(quota).Should(BeEmpty())
		var again sync.WaitGroup
		for i := range there {
			again.Go(func() {
				defer GinkgoRecover()
				Expect(apierrors.IsAlreadyExists(api.Create(ctx, pod(i)))).To(BeTrue())
			})
		}
		again.Wait()
		Expect(reservations(ctx, quota)).To(BeEmpty(), "a tenth of what is free is less than one")
	})
})
