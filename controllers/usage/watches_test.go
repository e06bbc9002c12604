// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

const countGadgets = corev1.ResourceName("count/gadgets.example.com")

// watchesBench runs Watches on a cluster for quota red, which limits gadgets in
// the namespaces of team red. It works in a synctest bubble.
type watchesBench struct {
	*Watches
	t       *testing.T
	cluster *cluster

	mu sync.Mutex
	// told are the quotas that OnChange was called with.
	told []string
}

func newWatchesBench(t *testing.T, cluster *cluster) *watchesBench {
	t.Helper()
	klog.SetLogger(logr.Discard())
	b := &watchesBench{t: t, cluster: cluster}
	b.Watches = NewWatches(&Parts{
		Clock: clock.RealClock{}, Discovery: NewSteadyDiscovery(clock.RealClock{}, cluster), Events: cluster.events(),
		Count: counting.New(evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), func([]string) {}, func([]string) {}),
		OnChange: func(quotas []string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.told = append(b.told, quotas...)
		},
	})
	b.Count.Define(redTarget(t, countGadgets, gadgets), time.Time{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.Start(ctx) }()
	synctest.Wait()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

// redTarget is of a quota that limits one name, counted from one resource, in the namespaces of team red.
func redTarget(t *testing.T, name corev1.ResourceName, from schema.GroupResource) counting.Target {
	t.Helper()
	selector, err := definition.CompileSelector(quotav1.ClusterResourceQuotaSelector{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return counting.Target{
		Quota:    evaluation.Quota{Name: "red", Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse("10")}}},
		Selector: selector, Sources: map[corev1.ResourceName][]schema.GroupResource{name: {from}},
	}
}

func (b *watchesBench) want(quota string, resources ...schema.GroupResource) {
	b.t.Helper()
	if err := b.Want(quota, resources); err != nil {
		b.t.Fatal(err)
	}
}

// is describes the state of gadgets: how many are counted, whether that is all,
// and the problem.
func (b *watchesBench) is() string {
	var text string
	b.Count.Read("red", func(view counting.View) {
		used := view.Total()[countGadgets]
		text = "counted " + used.String()
		if !view.Complete(countGadgets) {
			text += ", incomplete"
		}
	})
	if !b.Served(gadgets) {
		text += ", not served"
	}
	for _, problem := range b.Problems("red") {
		text += ", " + problem.Reason
	}
	return text
}

func (b *watchesBench) expect(want string) {
	b.t.Helper()
	synctest.Wait()
	if got := b.is(); got != want {
		b.t.Errorf("want %q, got %q", want, got)
	}
}

// expectTold checks that quota red was told of something since the last call, or
// that it wasn't.
func (b *watchesBench) expectTold(want bool) {
	b.t.Helper()
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if got := slices.Contains(b.told, "red"); got != want {
		b.t.Errorf("want told=%t, got %v", want, b.told)
	}
	b.told = nil
}

// pass lets time pass.
func (b *watchesBench) pass(d time.Duration) {
	clock.RealClock{}.Sleep(d)
	synctest.Wait()
}

func TestAResourceIsWatchedFromTheFirstQuotaToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.create("g1")
		b.want("red", gadgets)
		b.want("blue", gadgets)
		b.expect("counted 1")
		b.cluster.create("g2")
		b.expect("counted 2")
		b.Forget("red")
		b.cluster.create("g3")
		b.expect("counted 3")
		if discoveries, lists := b.cluster.asked(); discoveries != 1 || lists["v1"] != 1 {
			t.Errorf("want one look-up and one list for both quotas, got %d and %v", discoveries, lists)
		}
		b.want("blue")
		b.cluster.create("g4")
		b.expect("counted 0, incomplete")
		b.want("red", gadgets)
		b.expect("counted 4")
	})
}

func TestNothingIsWantedUnlessWatchesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newCluster("v1")
		w := NewWatches(&Parts{
			Clock: clock.RealClock{}, Discovery: NewSteadyDiscovery(clock.RealClock{}, world), Events: world.events(),
		})
		if err := w.Want("red", nil); !errors.Is(err, errNotRunning) {
			t.Errorf("before the start: got %v", err)
		}
		w = newWatchesBench(t, world).Watches
		w.mu.Lock()
		w.ctx = nil // as Start leaves it
		w.mu.Unlock()
		if err := w.Want("red", nil); !errors.Is(err, errNotRunning) {
			t.Errorf("after the end: got %v", err)
		}
	})
}

// A reconcile must not wait for discovery, and nor must any other quota's.
func TestNobodyWaitsForDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := newCluster("v1")
		world.hanging = true
		b := newWatchesBench(t, world)
		begin := clock.RealClock{}.Now()
		b.want("red", gadgets)
		b.want("blue", pods)
		b.expect("counted 0, incomplete") // served as far as anybody knows, so it must be waited for
		if waited := (clock.RealClock{}).Since(begin); waited != 0 {
			t.Errorf("waited for %s", waited)
		}
		b.expectTold(false)
	})
}

func TestAnUnservedResourceIsLookedUpAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster())
		b.want("red", gadgets)
		b.expect("counted 0, incomplete, not served, NotServed")
		b.expectTold(true)

		// Not at each settle, and less and less often.
		for range 100 {
			b.want("red", gadgets)
		}
		b.pass(100 * time.Second)
		if discoveries, _ := b.cluster.asked(); discoveries < 10 || discoveries > 15 {
			t.Errorf("want it to be looked up every 10 s in the end, got %d times in 100 s", discoveries)
		}
		b.expectTold(false)

		b.cluster.create("g1")
		b.cluster.serve("v1")
		b.pass(lookUpLatest)
		b.expect("counted 1")
		b.expectTold(true)
	})
}

func TestADefinitionIsNoticedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster())
		b.want("red", gadgets)
		b.pass(time.Minute)
		b.Redefined(schema.GroupResource{Resource: "others"}, false)
		_, _ = b.cluster.asked()
		b.cluster.serve("v1")
		b.Redefined(gadgets, false)
		b.expect("counted 0")

		// However often it changes, it is looked up once a second.
		_, _ = b.cluster.asked()
		for range 100 {
			b.Redefined(gadgets, false)
			b.pass(50 * time.Millisecond)
		}
		if discoveries, lists := b.cluster.asked(); discoveries > 6 || len(lists) > 0 {
			t.Errorf("got %d look-ups in 5 s, and lists %v", discoveries, lists)
		}
	})
}

// The use of an object may change without it, as with the device class of a
// claim.
func TestARemeasuredResourceIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.create("g1")
		b.Remeasure(gadgets) // it isn't counted yet
		b.want("red", gadgets)
		b.expect("counted 1")
		_, _ = b.cluster.asked()
		for range 100 {
			b.Remeasure(gadgets)
		}
		b.pass(time.Second)
		if _, lists := b.cluster.asked(); lists["v1"] != 1 {
			t.Errorf("want one list, got %v", lists)
		}
		b.cluster.create("g2")
		b.expect("counted 2")
	})
}

// A CustomResourceDefinition comes a moment before its resource is served.
func TestAResourceServedSoonAfterItsDefinitionIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster())
		b.want("red", gadgets)
		b.pass(time.Minute)
		b.Redefined(gadgets, false)
		b.pass(500 * time.Millisecond)
		b.cluster.serve("v1")
		b.pass(time.Second)
		b.expect("counted 0")
	})
}

func TestADeadVersionGivesWayToTheOneThatIsServed(t *testing.T) {
	for name, tell := range map[string]func(*watchesBench){
		"as the watch ends":                   func(*watchesBench) {},
		"as its definition is seen to change": func(b *watchesBench) { b.Redefined(gadgets, false) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newWatchesBench(t, newCluster("v1alpha1"))
				b.cluster.create("g1")
				b.want("red", gadgets)
				b.expect("counted 1")
				b.pass(time.Hour)
				b.cluster.serve("v1")
				tell(b)
				b.cluster.create("g2")
				b.pass(15 * time.Second)
				b.expect("counted 2")
				b.cluster.create("g3")
				b.expect("counted 3")
			})
		})
	}
}

// A watch may stay open in a version that no request can use any more.
func TestAChangedDefinitionMovesAWatchThatStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1alpha1"))
		b.want("red", gadgets)
		b.expect("counted 0")
		b.cluster.set(func() { b.cluster.versions = []string{"v1"} })
		b.Redefined(gadgets, false)
		b.pass(time.Second)
		_, lists := b.cluster.asked()
		if diff := cmp.Diff(map[string]int{"v1alpha1": 1, "v1": 1}, lists); diff != "" {
			t.Errorf("lists (-want,+got):\n%s", diff)
		}
		// Both watches are open, and the old one is behind: its events must not
		// count.
		b.cluster.create("g1")
		b.expect("counted 1")
	})
}

// The count stays until the other version's list has come, and the dead version
// is left alone meanwhile.
func TestADeadVersionIsNotListedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1alpha1"))
		b.cluster.create("g1")
		b.want("red", gadgets)
		b.expect("counted 1")
		b.expectTold(false)
		b.pass(time.Hour)
		_, _ = b.cluster.asked()

		b.cluster.serve()
		b.cluster.set(func() { b.cluster.failing = errors.New("it is down") })
		b.pass(time.Hour)
		b.expect("counted 1, NotWatchable")
		b.expectTold(true)
		discoveries, lists := b.cluster.asked()
		if lists["v1alpha1"] > 5 || discoveries < 350 || discoveries > 370 {
			t.Errorf("got %v lists and %d look-ups in an hour", lists, discoveries)
		}

		b.cluster.set(func() { b.cluster.failing = nil })
		b.pass(unservedFor)
		b.expect("counted 1, NotWatchable")
		b.pass(lookUpLatest)
		b.expect("counted 0, incomplete, not served, NotServed")
		b.expectTold(true)
		if _, lists := b.cluster.asked(); len(lists) > 0 {
			t.Errorf("what isn't served was listed: %v", lists)
		}

		b.cluster.serve("v1")
		b.pass(lookUpLatest)
		b.expect("counted 1")
		b.expectTold(true)
	})
}

// Discovery may name a version for a while that is no longer served.
func TestDiscoveryThatIsBehindIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1alpha1"))
		behind := &lagging{cluster: b.cluster}
		b.Discovery = NewSteadyDiscovery(clock.RealClock{}, behind)
		b.want("red", gadgets)
		b.expect("counted 0")
		b.pass(time.Hour)
		behind.say("v1alpha1")
		b.cluster.serve("v1")
		b.cluster.create("g1")
		_, _ = b.cluster.asked()
		b.pass(time.Minute)
		b.expect("counted 0, NotWatchable")
		if _, lists := b.cluster.asked(); lists["v1alpha1"] > 15 {
			t.Errorf("the dead version was listed %d times in a minute", lists["v1alpha1"])
		}
		behind.say("v1")
		b.pass(lookUpLatest)
		b.expect("counted 1")
	})
}

// lagging is a Discovery with given answers.
type lagging struct {
	*cluster
	mu       sync.Mutex
	versions []string
}

func (l *lagging) say(versions ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions = versions
}

func (l *lagging) Find(ctx context.Context, resource schema.GroupResource) (Served, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.versions == nil {
		return l.cluster.Find(ctx, resource)
	}
	return Served{Versions: l.versions, Namespaced: true}, nil
}

// Discovery that fails, or says that nothing is served, doesn't end a watch that
// works.
func TestAWatchThatWorksGoesOn(t *testing.T) {
	for name, spoil := range map[string]func(*cluster){
		"while discovery fails":              func(c *cluster) { c.failing = errors.New("it is down") },
		"while discovery hangs":              func(c *cluster) { c.hanging = true },
		"while discovery forgets the API":    func(c *cluster) { c.versions = nil },
		"while another version is preferred": func(c *cluster) { c.versions = []string{"v2", "v1"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newWatchesBench(t, newCluster("v1"))
				b.want("red", gadgets)
				b.expect("counted 0")
				_, _ = b.cluster.asked()
				b.cluster.set(func() { spoil(b.cluster) })
				b.Redefined(gadgets, false)
				b.pass(time.Minute)
				b.cluster.create("g1")
				b.expect("counted 1")
				b.expectTold(false)
				if _, lists := b.cluster.asked(); len(lists) > 0 {
					t.Errorf("it was listed again: %v", lists)
				}
			})
		})
	}
}

func TestAnUnknownResourceIsNeitherServedNorCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.failing = errors.New("it is down")
		b.want("red", gadgets)
		b.expect("counted 0, incomplete, NotWatchable")
		b.expectTold(true)
		b.cluster.set(func() { b.cluster.failing = nil })
		b.pass(lookUpLatest)
		b.expect("counted 0")
		b.expectTold(true)
	})
}

// A resource that is known not to be served stays so while discovery fails: a
// definition that goes back and forth would be counted again each time.
func TestAFailureOfDiscoverySaysNothingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster())
		b.want("red", gadgets)
		b.expectTold(true)
		b.cluster.set(func() { b.cluster.failing = errors.New("it is down") })
		b.pass(time.Minute)
		b.expect("counted 0, incomplete, not served, NotServed")
		b.expectTold(false)
	})
}

func TestClusterScopedResourcesAreNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.scope = meta.RESTScopeNameRoot
		b.want("red", gadgets)
		b.expect("counted 0, incomplete, not served, NotLimitable")
		b.pass(time.Minute)
		if _, lists := b.cluster.asked(); len(lists) > 0 {
			t.Errorf("it was listed: %v", lists)
		}
	})
}

// A quota may be forgotten, and another come, while a look-up is under way.
func TestALookUpThatIsNoLongerWantedChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newWatchesBench(t, newCluster("v1"))
		b.cluster.hanging = true
		b.want("red", gadgets)
		synctest.Wait()
		b.Forget("red")
		b.cluster.set(func() { b.cluster.hanging = false })
		b.want("red", gadgets)
		b.expect("counted 0")
		b.pass(time.Minute)
		if discoveries, lists := b.cluster.asked(); discoveries != 2 || lists["v1"] != 1 {
			t.Errorf("got %d look-ups and lists %v", discoveries, lists)
		}
	})
}

func TestPausesGrowUpToALimit(t *testing.T) {
	for attempts, want := range []string{"1s", "1s", "2s", "4s", "8s", "10s", "10s"} {
		if got := pause(attempts).String(); got != want {
			t.Errorf("after %d attempts: got %s, want %s", attempts, got, want)
		}
	}
}
