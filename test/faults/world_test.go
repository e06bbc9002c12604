// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const (
	worldLabel = "world"
	tierLabel  = "tier"
	partLabel  = "part"
	// resizeSince is the version of Kubernetes that brought the subresource by which pods are resized.
	resizeSince = "1.33"
)

// world is one spec's own part of the cluster. All its namespaces are under the
// quota of the whole; every third is under a tighter one of its tier too; two
// parts of three are under one on services and config maps.
type world struct {
	name       string
	namespaces []string
	// spare are namespaces for the end, key as in coveredBy -> name.
	spare map[string]string
	// used is how often all that was free has been used there.
	used int
	// resizes: the API server resizes pods in place.
	resizes bool
}

func (w *world) whole() string  { return w.name + "-a-whole" }
func (w *world) tier() string   { return w.name + "-b-tier" }
func (w *world) things() string { return w.name + "-c-things" }

func (w *world) quotas() []string {
	return []string{w.whole(), w.tier(), w.things()}
}

// newWorld makes a world of so many namespaces, and returns it once its quotas
// are enforced.
func newWorld(ctx context.Context, size int) *world {
	GinkgoHelper()
	return newWorldWithSurge(ctx, size, 0)
}

// newWorldWithSurge does so, and each limit has so much surge, in percent. No client of plan may take any.
func newWorldWithSurge(ctx context.Context, size, percent int) *world {
	GinkgoHelper()
	worldsMade++
	w := &world{name: fmt.Sprintf("world-%d", worldsMade), spare: map[string]string{}, resizes: suite.IsSince(ctx, resizeSince)}
	worlds = append(worlds, w)
	for i := range size {
		name := fmt.Sprintf("%s-n%d", w.name, i)
		w.namespaces = append(w.namespaces, name)
		w.namespace(ctx, name, i%3 == 0, []string{"a", "b", "c"}[i*3/size])
	}
	for key, tier := range map[string]bool{w.whole(): false, w.tier(): true} {
		w.spare[key] = key + "-spare"
		w.namespace(ctx, w.spare[key], tier, "c")
	}
	w.spare[w.things()] = w.things() + "-spare"
	w.namespace(ctx, w.spare[w.things()], false, "a")
	w.limit(ctx, size, percent)
	return w
}

func (w *world) namespace(ctx context.Context, name string, tier bool, part string) {
	GinkgoHelper()
	namespace := builders.Namespace(name).Label(worldLabel, w.name).Label(partLabel, part)
	if tier {
		namespace.Label(tierLabel, "tight")
	}
	Expect(api.Create(ctx, namespace.Obj())).To(Succeed())
}

// limit creates the quotas: less than the clients of plan want.
func (w *world) limit(ctx context.Context, size, surge int) {
	GinkgoHelper()
	milli := func(n int) string { return resource.NewMilliQuantity(int64(n), resource.DecimalSI).String() }
	for _, quota := range []*builders.QuotaBuilder{
		builders.Quota(w.whole()).Label(worldLabel, w.name).
			Hard("pods", strconv.Itoa(3*size)).Hard("requests.cpu", milli(400*size)),
		builders.Quota(w.tier()).Label(worldLabel, w.name).Label(tierLabel, "tight").
			Hard("pods", strconv.Itoa(size)).Hard("requests.cpu", milli(125*size)),
		builders.Quota(w.things()).Label(worldLabel, w.name).LabelIn(partLabel, "a", "b").
			Hard("services.loadbalancers", strconv.Itoa(size/2)).Hard("count/configmaps", strconv.Itoa(2*size)),
	} {
		for name, limit := range quota.Obj().Spec.Quota.Hard {
			if share := resource.NewMilliQuantity(limit.MilliValue()*int64(surge)/100, resource.DecimalSI); surge > 0 {
				if name != corev1.ResourceRequestsCPU {
					share.RoundUp(0)
				}
				quota.Surge(name, share.String())
			}
		}
		Expect(api.Create(ctx, quota.Obj())).To(Succeed())
	}
	for _, name := range w.quotas() {
		suite.WaitUntilEnforced(ctx, api, name)
	}
}

// abolish deletes the quotas, so that what is left of the world is of no concern.
func (w *world) abolish(ctx context.Context) {
	GinkgoHelper()
	for _, name := range w.quotas() {
		Expect(api.Delete(ctx, builders.Quota(name).Obj())).To(Succeed())
	}
	worlds = slices.DeleteFunc(worlds, func(one *world) bool { return one == w })
}

// plan has a client for pods in every namespace, and for services and config
// maps in every second one of those where they are limited.
func (w *world) plan(purpose uint64) load.Plan {
	things := w.namespaces[:len(w.namespaces)*2/3]
	plan := load.Plan{Pods: w.namespaces, Resizes: w.resizes, Rest: 150 * time.Millisecond, Seed: seed()<<8 + purpose}
	for i, namespace := range things {
		if i%2 == 0 {
			plan.Services = append(plan.Services, namespace)
		}
		plan.ConfigMaps = append(plan.ConfigMaps, namespace)
	}
	return plan
}
