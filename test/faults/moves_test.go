// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sharedquota/shared-quota-operator/test/builders"
	"github.com/sharedquota/shared-quota-operator/test/faults/load"
	"github.com/sharedquota/shared-quota-operator/test/suite"
)

const mergePatch = types.MergePatchType

type resourceName = corev1.ResourceName

// What moves in a storm while clients are at the limit. FAULTS_MOVES chooses among the
// names, with commas between them, or "all"; by default none: with namespaces that move
// while every watch is late, commits above the limit are still seen.
const (
	briefQuotas    = "brief quotas"     // created, lowered and deleted
	changedLimits  = "changed limits"   // lowered and raised
	movedSpaces    = "moved namespaces" // relabelled between quotas
	servedVersions = "served versions"  // of a CRD
	lastPlaces     = "last places"      // fought over by clients that never rest
	silentWatches  = "silent watches"   // of one replica: nothing is delivered
	behindWatches  = "watches behind"   // of one replica: late
	quotaModes     = "modes"            // of quotas of their own, which don't always refuse
)

func allMoves() []string {
	return []string{briefQuotas, changedLimits, movedSpaces, servedVersions, lastPlaces, silentWatches, behindWatches, quotaModes}
}

// chosenMoves are those that this run makes.
func chosenMoves() []string {
	GinkgoHelper()
	given := os.Getenv("FAULTS_MOVES")
	if given == "all" {
		return allMoves()
	}
	var chosen []string
	for name := range strings.SplitSeq(given, ",") {
		if name = strings.TrimSpace(name); name != "" {
			Expect(allMoves()).To(ContainElement(name), "FAULTS_MOVES")
			chosen = append(chosen, name)
		}
	}
	return chosen
}

func moves(name string) bool { return slices.Contains(chosenMoves(), name) }

// movers are at work on one world, each in a goroutine of its own, until stop.
type movers struct {
	world   *world
	stopped chan struct{}
	running sync.WaitGroup

	// mu guards counts.
	mu     sync.Mutex
	counts map[string]int // what was done -> how often
}

// startMovers sets those to work that were chosen. The world is prepared for them.
func startMovers(ctx context.Context, w *world, round uint64) *movers {
	m := &movers{world: w, stopped: make(chan struct{}), counts: map[string]int{}}
	for i, mover := range []struct {
		name string
		turn func(context.Context, *rand.Rand)
	}{
		{briefQuotas, m.briefQuota},
		{changedLimits, m.changeLimits},
		{movedSpaces, m.moveNamespace},
		{servedVersions, m.switchVersion},
	} {
		if moves(mover.name) {
			random := random(2000 + round*10 + uint64(i))
			m.running.Go(func() {
				defer GinkgoRecover()
				for m.rest(random, 2*time.Second) {
					mover.turn(ctx, random)
				}
			})
		}
	}
	return m
}

// stop lets each mover finish its turn, and returns when all have.
func (m *movers) stop() {
	close(m.stopped)
	m.running.Wait()
}

// rest waits for up to so long; false once the movers are to stop.
func (m *movers) rest(random *rand.Rand, longest time.Duration) bool {
	select {
	case <-m.stopped:
		return false
	case <-time.After(time.Duration(random.Int64N(int64(longest)))):
		return true
	}
}

func (m *movers) did(move string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[move]++
}

// insist makes a change until it is answered. Replicas and API servers end meanwhile.
func insist(ctx context.Context, change func(context.Context) error) {
	GinkgoHelper()
	Eventually(ctx, change).WithTimeout(2 * suite.Deadline).Should(Succeed())
}

// limit changes what a quota allows; hard is the inside of an object of JSON.
func (m *movers) limit(ctx context.Context, name, hard string) {
	GinkgoHelper()
	quota := builders.Quota(name).Obj()
	insist(ctx, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(quota), quota) })
	before := quota.ResourceVersion
	insist(ctx, func(ctx context.Context) error {
		return api.Patch(ctx, quota, client.RawPatch(mergePatch, fmt.Appendf(nil, `{"spec":{"quota":{"hard":{%s}}}}`, hard)))
	})
	evidence.edited(before, quota)
}

// briefQuota creates a quota, lowers it and deletes it. It always has the same name.
func (m *movers) briefQuota(ctx context.Context, random *rand.Rand) {
	size := len(m.world.namespaces)
	quota := builders.Quota(m.world.brief()).Label(worldLabel, m.world.name).Label(partLabel, "a").
		Hard("count/configmaps", strconv.Itoa(size/2)).Hard("pods", strconv.Itoa(size/2)).Obj()
	end := disruptions.Begin("quota "+quota.Name+" is new", load.Unknown)
	insist(ctx, func(ctx context.Context) error {
		err := api.Create(ctx, quota)
		if apierrors.IsAlreadyExists(err) { // An earlier call's answer was lost.
			return api.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		}
		return err
	})
	inForce := evidence.edited("", quota)
	suite.WaitUntilEnforced(ctx, api, quota.Name)
	inForce()
	time.AfterFunc(settled, end)
	m.did("quotas created")
	m.rest(random, 3*time.Second)
	m.limit(ctx, quota.Name, fmt.Sprintf(`"count/configmaps":"%d","pods":"%d"`, size/4, size/4))
	m.did("new quotas lowered")
	m.rest(random, 3*time.Second)
	insist(ctx, func(ctx context.Context) error {
		return client.IgnoreNotFound(api.Delete(ctx, builders.Quota(quota.Name).Obj()))
	})
	insist(ctx, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKeyFromObject(quota), quota.DeepCopy()); !apierrors.IsNotFound(err) {
			return fmt.Errorf("quota %s is not gone: %w", quota.Name, err)
		}
		return nil
	})
	m.did("quotas deleted")
}

// changeLimits lowers the limits that the world's clients are at, and raises them again.
func (m *movers) changeLimits(ctx context.Context, random *rand.Rand) {
	size := len(m.world.namespaces)
	whole := func(part int) string {
		return fmt.Sprintf(`"pods":"%d","requests.cpu":"%dm"`, 3*size/part, 400*size/part)
	}
	things := func(part int) string {
		return fmt.Sprintf(`"services.loadbalancers":"%d","count/configmaps":"%d"`, size/2/part, 2*size/part)
	}
	for _, part := range []int{2, 1} {
		m.limit(ctx, m.world.whole(), whole(part))
		m.limit(ctx, m.world.things(), things(part))
		m.did(map[int]string{2: "limits lowered", 1: "limits raised"}[part])
		m.rest(random, 4*time.Second)
	}
}

// moveNamespace lets a namespace join a quota that it isn't under, or leave one.
func (m *movers) moveNamespace(ctx context.Context, random *rand.Rand) {
	namespace := builders.Namespace(m.world.namespaces[random.IntN(len(m.world.namespaces))]).Obj()
	insist(ctx, func(ctx context.Context) error { return api.Get(ctx, client.ObjectKeyFromObject(namespace), namespace) })
	before := namespace.ResourceVersion
	label, value := tierLabel, `"tight"`
	if namespace.Labels[tierLabel] != "" {
		value = "null"
	}
	if random.IntN(2) == 0 {
		parts := slices.DeleteFunc([]string{"a", "b", "c"}, func(part string) bool { return part == namespace.Labels[partLabel] })
		label, value = partLabel, strconv.Quote(parts[random.IntN(len(parts))])
	}
	insist(ctx, func(ctx context.Context) error {
		return api.Patch(ctx, namespace, client.RawPatch(mergePatch, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)))
	})
	evidence.edited(before, namespace)
	m.did("namespaces relabelled")
}

// widgets are a custom resource of two versions.
var (
	widgetsV1 = schema.GroupVersionKind{Group: "faults.example.com", Version: "v1", Kind: "Widget"}
	widgetsV2 = schema.GroupVersionKind{Group: "faults.example.com", Version: "v2", Kind: "Widget"}
	// servedWidgets is the version that clients use.
	servedWidgets atomic.Pointer[schema.GroupVersionKind]
)

const widgetsName = "widgets"

// defineWidgets makes the custom resource, once for the suite.
func defineWidgets(ctx context.Context) {
	GinkgoHelper()
	if servedWidgets.Load() != nil {
		return
	}
	definition := builders.CustomResource(widgetsV1, widgetsName)
	second := definition.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage = widgetsV2.Version, false
	definition.Spec.Versions = append(definition.Spec.Versions, *second)
	Expect(api.Create(ctx, definition)).To(Succeed())
	waitUntilServed(ctx, widgetsV1)
	waitUntilServed(ctx, widgetsV2)
	servedWidgets.Store(&widgetsV1)
}

func waitUntilServed(ctx context.Context, kind schema.GroupVersionKind) {
	GinkgoHelper()
	insist(ctx, func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return api.List(ctx, list, client.InNamespace("default"), client.Limit(1))
	})
}

// switchVersion serves the other version and then no longer the one that was served.
func (m *movers) switchVersion(ctx context.Context, random *rand.Rand) {
	next := widgetsV2
	if servedWidgets.Load().Version == next.Version {
		next = widgetsV1
	}
	serve(ctx, widgetsV1.Version, widgetsV2.Version)
	waitUntilServed(ctx, next)
	servedWidgets.Store(&next)
	m.rest(random, time.Second)
	serve(ctx, next.Version)
	m.did("served versions switched")
	m.rest(random, 6*time.Second)
}

// serve serves these versions of the widgets, and no others.
func serve(ctx context.Context, versions ...string) {
	GinkgoHelper()
	insist(ctx, func(ctx context.Context) error {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(ctx, client.ObjectKey{Name: widgetsName + "." + widgetsV1.Group}, definition); err != nil {
			return err
		}
		for i := range definition.Spec.Versions {
			definition.Spec.Versions[i].Served = slices.Contains(versions, definition.Spec.Versions[i].Name)
		}
		return api.Update(ctx, definition)
	})
}

// prepareMoves adds to a world what is moved there, and to the plan who uses it.
func (w *world) prepareMoves(ctx context.Context, plan *load.Plan) {
	GinkgoHelper()
	if moves(servedVersions) {
		defineWidgets(ctx)
		quota := builders.Quota(w.widgets()).Label(worldLabel, w.name).
			Hard(resourceName("count/"+widgetsName+"."+widgetsV1.Group), strconv.Itoa(len(w.namespaces)))
		Expect(api.Create(ctx, quota.Obj())).To(Succeed())
		w.more = append(w.more, w.widgets())
		plan.Widgets = w.namespaces[:len(w.namespaces)/2]
		plan.WidgetKind = func() schema.GroupVersionKind { return *servedWidgets.Load() }
	}
	if moves(lastPlaces) {
		const clients, places = 8, 3
		for i := range clients {
			name := fmt.Sprintf("%s-last-%d", w.name, i)
			Expect(api.Create(ctx, builders.Namespace(name).Label(lastLabel, w.name).Obj())).To(Succeed())
			plan.Last = append(plan.Last, name)
		}
		quota := builders.Quota(w.last()).Label(lastLabel, w.name).Hard("count/configmaps", strconv.Itoa(places))
		Expect(api.Create(ctx, quota.Obj())).To(Succeed())
		w.more = append(w.more, w.last())
	}
	for _, name := range w.more {
		suite.WaitUntilEnforced(ctx, api, name)
	}
}

// tellMoves tells how often what was done.
func (m *movers) tellMoves(also map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.Copy(m.counts, also)
	AddReportEntry("what was injected how often", counts(m.counts))
}
