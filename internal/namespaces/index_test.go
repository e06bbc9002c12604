// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// inCluster runs a test in a bubble, on a cluster where the quota "shop" selects
// the namespace "shop", and the quota "office" the namespace "office". The watches
// have shown all that.
func inCluster(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.quota("shop", "5", "team=shop")
		c.quota("office", "5", "team=office")
		c.label("shop", "team=shop")
		c.label("office", "team=office")
		c.label("free")
		c.watched()
		test(t, c)
	})
}

func now() time.Time { return clock.RealClock{}.Now() }

// A spec is compiled once, and the result is shared. A spec that the watch hasn't shown is compiled as it is.
func TestAKnownSpecIsNotCompiledAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for name, test := range map[string]struct {
			change func(*quotav1.ClusterResourceQuota)
			want   string
		}{
			"the known one":               {change: func(*quotav1.ClusterResourceQuota) {}, want: "team=shop"},
			"a generation to come":        {change: func(q *quotav1.ClusterResourceQuota) { q.Generation++ }, want: "team=other"},
			"another quota's of its name": {change: func(q *quotav1.ClusterResourceQuota) { q.UID = "another" }, want: "team=other"},
			"a quota's that isn't known":  {change: func(q *quotav1.ClusterResourceQuota) { q.Name = "new" }, want: "team=other"},
		} {
			object := c.quotas["shop"].DeepCopy()
			object.Spec.Selector.LabelSelector.MatchLabels["team"] = "other" // shows if it is looked at
			test.change(object)
			if got := c.index.Define(object).Selector.String(); got != test.want {
				t.Errorf("%s: got the selector %s, want %s", name, got, test.want)
			}
		}
	})
}

// mustCover fails unless these quotas cover the namespace, and these reads tell so.
func (c *cluster) mustCover(t *testing.T, question webhookconfig.Question, namespace string, want, reads []string) Covered {
	t.Helper()
	got, err := c.index.Covering(t.Context(), question, namespace, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("covering %s (-want,+got):\n%s", namespace, diff)
	}
	if diff := cmp.Diff(reads, c.whatWasRead()); diff != "" {
		t.Errorf("live reads (-want,+got):\n%s", diff)
	}
	return got
}

func names(covered Covered) []string {
	var names []string
	for i := range covered.Definitions {
		names = append(names, covered.Definitions[i].Limits.Name)
	}
	return names
}

func of(names ...string) []string { return names }

func TestNothingIsReadWhereTheEntryAgrees(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for range 3 {
			c.mustCover(t, c.asked("shop"), "shop", of("shop"), nil)
			c.mustCover(t, c.asked("office"), "office", of("office"), nil)
		}
		c.touch("shop", func(q *quotav1.ClusterResourceQuota) { q.Status.Summary = "pods: 1/5" })
		edition := c.index.quotas.edition.Load()
		c.watched()
		c.mustCover(t, c.asked("office"), "office", of("office"), nil)
		if c.index.quotas.edition.Load() != edition {
			t.Error("a new status has made all answers outdated")
		}
	})
}

// An entry that doesn't name its quotas can't show that a namespace was relabelled while this replica's watch is stuck.
func TestAnEntryThatNamesNoQuotasIsVerifiedEveryFewSeconds(t *testing.T) {
	for name, question := range map[string]webhookconfig.Question{
		"no question":  {},
		"no witness":   {Witness: webhookconfig.WitnessNone},
		"some witness": {Witness: webhookconfig.WitnessSome},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.mustCover(t, question, "shop", of("shop"), of("get namespace shop"))
				c.mustCover(t, question, "shop", of("shop"), nil)
				c.label("shop", "team=office") // the watch doesn't show it
				clock.RealClock{}.Sleep(verifiedFor)
				c.mustCover(t, question, "shop", of("office"), of("get namespace shop"))
				c.mustCover(t, question, "shop", of("office"), nil)
			})
		})
	}
}

func TestWhatIsKnownTakesNoRead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for namespace, want := range map[string][]string{"shop": {"shop"}, "free": nil} {
			covered, known := c.index.Known(namespace)
			if diff := cmp.Diff(want, names(covered)); diff != "" || !known {
				t.Errorf("%s: known %t, (-want,+got):\n%s", namespace, known, diff)
			}
		}
		if _, known := c.index.Known("nowhere"); known {
			t.Error("a namespace that doesn't exist is known")
		}
		if reads := c.whatWasRead(); reads != nil {
			t.Errorf("got live reads %v", reads)
		}
	})
}

func TestAQuestionOfNewerSpecsIsWaitedForThenLookedAt(t *testing.T) {
	for name, test := range map[string]struct {
		shows time.Duration // when the watch shows the new quota
		takes time.Duration
		reads []string
	}{
		"the watch shows them in time": {shows: 30 * time.Millisecond, takes: 30 * time.Millisecond},
		"the watch does not": {
			shows: time.Hour, takes: catchUpWait, reads: of("list quotas", "get whole quota new"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.quota("new", "3", "team=shop")
				clock.RealClock{}.AfterFunc(test.shows, c.watched)
				began := now()
				c.mustCover(t, c.asked("shop"), "shop", of("new", "shop"), test.reads)
				if took := now().Sub(began); took != test.takes {
					t.Errorf("took %s, want %s", took, test.takes)
				}
				began = now()
				c.mustCover(t, c.asked("shop"), "shop", of("new", "shop"), nil)
				c.mustCover(t, c.asked("office"), "office", of("office"), nil)
				if took := now().Sub(began); took != 0 {
					t.Errorf("the next requests took %s, want none to wait", took)
				}
			})
		})
	}
}

func TestALowerLimitIsKnownWhereTheWatchIsSilent(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quota("shop", "3", "team=shop")
		got := c.mustCover(t, c.asked("shop"), "shop", of("shop"), of("list quotas", "get whole quota shop"))
		if pods := got.Definitions[0].Limits.Hard["pods"]; pods.String() != "3" {
			t.Errorf("limit: got %s pods, want 3", pods.String())
		}
		if got.Definitions[0].Limits.Generation != 2 {
			t.Errorf("generation: got %d, want 2", got.Definitions[0].Limits.Generation)
		}
	})
}

func TestALookIsSharedByAllWhoNeedIt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.takes = 10 * time.Millisecond
		c.quota("new", "3", "team=shop")
		c.label("office", "team=shop")
		var callers sync.WaitGroup
		for i := range 100 {
			callers.Go(func() {
				namespace := []string{"shop", "office"}[i%2]
				got, err := c.index.Covering(t.Context(), c.asked(namespace), namespace, 0)
				if diff := cmp.Diff(of("new", "shop"), names(got)); diff != "" || err != nil {
					t.Errorf("covering %s (-want,+got):\n%s\nerror %v", namespace, diff, err)
				}
			})
		}
		callers.Wait()
		reads := c.whatWasRead()
		slices.Sort(reads)
		// Of the namespace one more: the first list ends before the second, which most share,
		// and these come to the namespace while the first's read of it ends.
		for what, most := range map[string]int{"list quotas": 2, "get whole quota new": 2, "get namespace office": 3, "get namespace shop": 0} {
			count := 0
			for _, read := range reads {
				if read == what {
					count++
				}
			}
			if count > most {
				t.Errorf("100 callers: %d times %q, want at most %d", count, what, most)
			}
		}
	})
}

// The API server knows that the namespace belongs to another quota, by the entry
// that it asks for.
func TestANamespaceThatMovedIsLookedAtOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.label("shop", "team=office")
		got := c.mustCover(t, c.asked("shop"), "shop", of("office"), of("get namespace shop"))
		if want := c.index.namespaces.upTo() + 1; got.Knowledge[0].Joined != want || got.Knowledge[0].Seen != want {
			t.Errorf("knowledge: got %+v, want version %d, and seen up to it", got.Knowledge, want)
		}
		c.mustCover(t, c.asked("shop"), "shop", of("office"), nil)
		c.label("shop", "team=shop", "stage=prod")
		c.namespaceWatch.next(1)
		c.mustCover(t, c.asked("shop"), "shop", of("shop"), of("get namespace shop"))
		c.watched()
		c.mustCover(t, c.asked("shop"), "shop", of("shop"), nil)
	})
}

func TestALateWatchDoesNotReplaceALiveRead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.label("shop", "team=nobody")
		c.label("shop", "team=office")
		c.mustCover(t, c.asked("shop"), "shop", of("office"), of("get namespace shop"))
		for range 2 {
			c.namespaceWatch.next(1)
			c.mustCover(t, c.asked("shop"), "shop", of("office"), nil)
		}
		c.label("shop", "team=shop")
		c.watched()
		c.mustCover(t, c.asked("shop"), "shop", of("shop"), nil)
	})
}

func TestAQuotaThatWasReadIsNotReplacedByALateWatch(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quota("shop", "3", "team=shop")
		c.quota("shop", "2", "team=shop")
		for range 3 {
			got, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, "shop", LookQuotas)
			if err != nil || got.Definitions[0].Limits.Generation != 3 {
				t.Fatalf("got %+v, error %v, want the third generation", got, err)
			}
			c.quotaWatch.next(1)
			c.whatWasRead()
			if got := c.mustCover(t, webhookconfig.Question{}, "shop", of("shop"), nil); got.Definitions[0].Limits.Generation != 3 {
				t.Errorf("after the watch: got generation %d, want the third", got.Definitions[0].Limits.Generation)
			}
		}
	})
}

func TestANamespaceThatWasMadeAgainIsNotForgotten(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.deleteNamespace("shop")
		c.label("shop", "team=office")
		c.mustCover(t, c.asked("shop"), "shop", of("office"), of("get namespace shop"))
		c.namespaceWatch.next(1)
		c.mustCover(t, c.asked("shop"), "shop", of("office"), nil)
	})
}

func TestAQuotaThatIsMissingIsNotBroughtBackByALateWatch(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quota("shop", "3", "team=shop")
		c.deleteQuota("shop")
		c.quota("new", "3", "team=shop")
		c.mustCover(t, c.asked("shop"), "shop", of("new"), of("list quotas", "get whole quota new"))
		for range 3 {
			c.quotaWatch.next(1)
			c.mustCover(t, c.asked("shop"), "shop", of("new"), nil)
		}
	})
}

func TestAQuotaThatWasMadeAgainIsAnother(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.deleteQuota("shop")
		c.quota("shop", "7", "team=shop")
		got := c.mustCover(t, c.asked("shop"), "shop", of("shop"), of("list quotas", "get whole quota shop"))
		c.quotaWatch.next(1)
		again := c.mustCover(t, c.asked("shop"), "shop", of("shop"), nil)
		if got.Definitions[0].Limits.Quota != again.Definitions[0].Limits.Quota {
			t.Error("the deletion of the quota before it has changed it")
		}
	})
}

// An entry disagrees for as long as the API server has an old configuration. The namespace
// is read for each request meanwhile, because it may have changed and be asked about alike.
func TestQuotasAreListedOnceForEachDisagreement(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		old := c.asked("shop")
		c.quota("new", "3", "team=shop")
		c.watched()
		c.mustCover(t, old, "shop", of("new", "shop"), of("get namespace shop", "list quotas"))
		c.mustCover(t, old, "shop", of("new", "shop"), of("get namespace shop"))
		c.mustCover(t, c.asked("shop"), "shop", of("new", "shop"), nil)
		another := old
		another.Specs = "others"
		c.mustCover(t, another, "shop", of("new", "shop"), of("get namespace shop", "list quotas"))
		c.mustCover(t, another, "shop", of("new", "shop"), of("get namespace shop"))
		c.mustCover(t, old, "shop", of("new", "shop"), of("get namespace shop"))
		c.label("shop", "team=shop", "stage=prod")
		c.watched()
		c.mustCover(t, old, "shop", of("new", "shop"), of("get namespace shop", "list quotas"))
		c.mustCover(t, old, "shop", of("new", "shop"), of("get namespace shop"))
	})
}

// Only the namespace can have changed: new quotas come with another question.
func TestTheNamespaceIsReadAgainIfTheEntryDisagrees(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		wide := webhookconfig.Question{Witness: webhookconfig.WitnessNone, Epoch: c.asked("shop").Epoch}
		c.mustCover(t, wide, "free", nil, of("get namespace free", "list quotas"))
		c.label("free", "team=shop")
		c.mustCover(t, wide, "free", nil, nil)
		clock.RealClock{}.Sleep(verifiedFor)
		c.mustCover(t, wide, "free", of("shop"), of("get namespace free"))
		c.mustCover(t, wide, "free", of("shop"), nil)
	})
}

func TestANewVersionOfANamespaceIsLookedAtForWhatWasSettled(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.mustCover(t, webhookconfig.Question{}, "free", nil, of("get namespace free", "list quotas"))
		c.quota("new", "3", "team=new")
		c.label("free", "team=new")
		clock.RealClock{}.Sleep(verifiedFor)
		c.mustCover(t, webhookconfig.Question{}, "free", of("new"), of("get namespace free", "list quotas", "get whole quota new"))
	})
}

func TestAnUncoveredNamespaceIsLookedAt(t *testing.T) {
	for name, question := range map[string]webhookconfig.Question{
		"no question":    {},
		"no witness":     {Witness: webhookconfig.WitnessNone},
		"some witness":   {Witness: webhookconfig.WitnessSome},
		"a late witness": {Witness: webhookconfig.WitnessExact, Quotas: "of other quotas"},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				c.mustCover(t, question, "free", nil, of("get namespace free", "list quotas"))
				var again []string
				if question.IsWitness() {
					again = of("get namespace free")
				}
				c.mustCover(t, question, "free", nil, again)
				c.label("another")
				c.quota("new", "3", "team=new")
				c.label("new", "team=new")
				c.mustCover(t, question, "new", of("new"), of("get namespace new", "list quotas", "get whole quota new"))
			})
		})
	}
}

func TestANamespaceVersionSeenElsewhereIsLookedAt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.label("shop", "team=office")
		c.label("another")
		members := c.index.namespaces.upTo() + 2
		for _, want := range [][]string{of("get namespace shop"), nil} {
			got, err := c.index.Covering(t.Context(), c.asked("shop"), "shop", members)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, c.whatWasRead()); diff != "" {
				t.Errorf("live reads (-want,+got):\n%s", diff)
			}
			if got.Knowledge[0].Seen != members || got.Knowledge[0].Joined != members-1 {
				t.Errorf("knowledge: got %+v, want version %d, seen up to %d", got.Knowledge, members-1, members)
			}
		}
		if got := c.mustCover(t, c.asked("shop"), "shop", of("office"), nil); got.Knowledge[0].Seen != members {
			t.Errorf("a request that needs no look: got %+v, want what the look before has seen", got.Knowledge)
		}
		if got := c.mustCover(t, c.asked("office"), "office", of("office"), nil); got.Knowledge[0].Seen >= members-1 {
			t.Errorf("another namespace: got %+v, want only what the watch has shown", got.Knowledge)
		}
		c.watched()
		if got := c.mustCover(t, c.asked("office"), "office", of("office"), nil); got.Knowledge[0].Seen != members {
			t.Errorf("after the watch: got %+v, want seen up to %d", got.Knowledge, members)
		}
	})
}

func TestANamespaceThatNoWatchHasShownIsReadOnce(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.label("new", "team=shop")
		c.mustCover(t, c.asked("new"), "new", of("shop"), of("get namespace new"))
		c.mustCover(t, c.asked("new"), "new", of("shop"), nil)
		c.watched()
		c.mustCover(t, c.asked("new"), "new", of("shop"), nil)
		question := c.asked("new")
		c.deleteNamespace("new")
		c.watched()
		_, err := c.index.Covering(t.Context(), question, "new", 0)
		if !apierrors.IsNotFound(err) || err.Error() != `reading namespace new: namespaces "new" not found` {
			t.Errorf("a deleted namespace: got %v, want that it isn't found", err)
		}
	})
}

func TestAReadThatFailsIsNoAnswerAndIsNotRemembered(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		question := c.asked("shop")
		c.quota("new", "3", "team=shop")
		broken := errors.New("it is down")
		c.fails = broken
		if _, err := c.index.Covering(t.Context(), c.asked("shop"), "shop", 0); !errors.Is(err, broken) {
			t.Errorf("a list: got %v, want its error", err)
		}
		c.label("shop", "team=office")
		if _, err := c.index.Covering(t.Context(), webhookconfig.Question{}, "free", 0); !errors.Is(err, broken) {
			t.Errorf("a namespace: got %v, want its error", err)
		}
		for _, look := range []Look{LookNamespace, LookQuotas, LookEverywhere} {
			if _, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, "shop", look); !errors.Is(err, broken) {
				t.Errorf("look %d: got %v, want the read's error", look, err)
			}
		}
		c.fails = nil
		c.whatWasRead()
		question.Quotas = "of other quotas"
		c.mustCover(t, question, "shop", of("office"), of("get namespace shop", "list quotas", "get whole quota new"))
	})
}

func TestAReadThatHangsEndsWithItsCaller(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.takes = time.Hour
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer cancel()
		began := now()
		if _, err := c.index.Covering(ctx, webhookconfig.Question{}, "free", 0); !errors.Is(err, gone) || now().Sub(began) != time.Second {
			t.Errorf("got %v after %s, want the caller's end after 1s", err, now().Sub(began))
		}
		clock.RealClock{}.Sleep(time.Minute)
		synctest.Wait()
		c.takes = 0
		if _, err := c.index.Covering(t.Context(), webhookconfig.Question{}, "free", 0); err != nil {
			t.Errorf("after the read that hung: %v", err)
		}
	})
}

func TestALookAtQuotas(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quota("shop", "3", "team=shop")
		c.quota("new", "3", "team=shop")
		for i, test := range []struct {
			look  Look
			want  []string
			reads []string
		}{
			{LookNamespace, of("shop"), of("get namespace shop")},
			{LookNamespace, of("shop"), nil},
			{LookQuotas, of("shop"), of("get quota shop", "get whole quota shop")},
			{LookQuotas, of("shop"), of("get quota shop")},
			{LookEverywhere, of("new", "shop"), of("list quotas", "get whole quota new")},
			{LookEverywhere, of("new", "shop"), of("list quotas")},
		} {
			got, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, "shop", test.look)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]string{test.want, test.reads}, [][]string{names(got), c.whatWasRead()}); diff != "" {
				t.Errorf("look %d: covering, and live reads (-want,+got):\n%s", i, diff)
			}
		}
		c.deleteQuota("new")
		if got, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, "shop", LookQuotas); err != nil || !slices.Equal(names(got), of("shop")) {
			t.Errorf("after the deletion: got %v, error %v, want the quota shop alone", names(got), err)
		}
	})
}

func TestAQuotaThatIsBeingDeletedCoversNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		begin := func(q *quotav1.ClusterResourceQuota) { q.DeletionTimestamp = ptr.To(metav1.Now()) }
		c.touch("shop", begin)
		c.watched()
		c.mustCover(t, c.asked("shop"), "shop", nil, of("get namespace shop", "list quotas"))
		c.touch("office", begin)
		if got, err := c.index.CoveringNow(t.Context(), webhookconfig.Question{}, "office", LookQuotas); err != nil || len(got.Definitions) > 0 {
			t.Errorf("got %v, error %v, want no quota", names(got), err)
		}
	})
}

func TestAQuotaThatDoesNotCompileCoversWhatCanBeReadOfIt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		c.quota("broken", "-1", "team=shop")
		c.watched()
		got := c.mustCover(t, c.asked("shop"), "shop", of("broken", "shop"), nil)
		if got.Definitions[0].Invalid == nil || got.Definitions[1].Invalid != nil {
			t.Errorf("got %+v, want the first invalid, and not the second", got.Definitions)
		}
		c.quota("broken", "1", "team=shop")
		c.watched()
		if got := c.mustCover(t, c.asked("shop"), "shop", of("broken", "shop"), nil); got.Definitions[0].Invalid != nil {
			t.Errorf("after it was corrected: got %v, want nothing invalid", got.Definitions[0].Invalid)
		}
	})
}

// A list may be of a moment before a live read.
func TestAListDoesNotUndoWhatWasReadSince(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		earlier, before := slices.Collect(maps.Values(c.quotas)), c.revision
		c.deleteQuota("shop")
		c.quota("new", "3", "team=shop")
		c.mustCover(t, c.asked("shop"), "shop", of("new"), of("list quotas", "get whole quota new"))
		c.index.Quotas().List(earlier, before)
		c.mustCover(t, c.asked("shop"), "shop", of("new"), nil)
	})
}

// A namespace joins a quota when its selector begins to select it. Other writes of a namespace are of no account, unless
// versions between are unknown.
func TestJoined(t *testing.T) {
	version := func(version, team, note string) *metav1.PartialObjectMetadata {
		object := emptyNamespace()
		object.Name, object.ResourceVersion = "shop", version
		object.Labels, object.Annotations = map[string]string{"team": team}, map[string]string{"note": note}
		return object
	}
	noting := func(q *quotav1.ClusterResourceQuota) {
		q.Spec.Selector.AnnotationSelector = map[string]string{"note": "a"}
	}
	for name, test := range map[string]struct {
		define func(*quotav1.ClusterResourceQuota)
		change func(*Index)
		want   uint64
	}{
		"what was listed may have joined":    {change: func(*Index) {}, want: 200},
		"an annotation is no change":         {change: func(i *Index) { i.Namespaces().Set(version("300", "shop", "b")) }, want: 200},
		"nor is a label that isn't selected": {change: func(i *Index) { o := version("300", "shop", "a"); o.Labels["x"] = "y"; i.Namespaces().Set(o) }, want: 200},
		"one that left and came back": {change: func(i *Index) {
			i.Namespaces().Set(version("300", "office", "a"))
			i.Namespaces().Set(version("400", "shop", "a"))
		}, want: 400},
		"one that was made again": {change: func(i *Index) {
			i.Namespaces().Remove("shop", 300)
			i.Namespaces().Set(version("400", "shop", "a"))
		}, want: 400},
		"a list hides what was between": {change: func(i *Index) {
			i.Namespaces().List([]*metav1.PartialObjectMetadata{version("300", "shop", "a")}, 500)
		}, want: 300},
		"a list without a change": {change: func(i *Index) {
			i.Namespaces().List([]*metav1.PartialObjectMetadata{version("200", "shop", "a")}, 500)
		}, want: 200},
		"an annotation that is selected": {define: noting, change: func(i *Index) {
			i.Namespaces().Set(version("300", "shop", "b"))
			i.Namespaces().Set(version("400", "shop", "a"))
		}, want: 400},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.index.Namespaces().List([]*metav1.PartialObjectMetadata{version("200", "shop", "a")}, 200)
			c.quota("shop", "5", "team=shop")
			if test.define != nil {
				c.touch("shop", test.define)
			}
			c.index.Quotas().Set(c.quotas["shop"])
			test.change(c.index)
			if covered, _ := c.index.Known("shop"); covered.Of("shop").Joined != test.want {
				t.Errorf("joined at %d, want %d", covered.Of("shop").Joined, test.want)
			}
		})
	}
}

func TestMemoryIsBounded(t *testing.T) {
	n := NewMemory(definition.Salvage).namespaces
	for i := range maxLooks + 10 {
		object := emptyNamespace()
		object.Name, object.ResourceVersion = fmt.Sprint(i), "5"
		n.merge(object, time.Unix(1000, 0), 0, webhookconfig.Question{})
		for j := range 3 * maxSettled {
			n.settle(object.Name, 5, webhookconfig.Question{Epoch: uint64(j)})
		}
	}
	if len(n.looks) > maxLooks {
		t.Errorf("%d looks are remembered, want at most %d", len(n.looks), maxLooks)
	}
	for name, look := range n.looks {
		if len(look.settled) > maxSettled {
			t.Fatalf("%s: %d questions are remembered, want at most %d", name, len(look.settled), maxSettled)
		}
	}
}

// The answer to another request's read may be on its way when the namespace changes again.
func TestALookAgainBelievesNoReadThatTheQuestionContradicts(t *testing.T) {
	for _, look := range []Look{LookNamespace, LookQuotas} {
		c := newCluster(t)
		c.quota("q", "5", "team=shop")
		c.quota("other", "5", "team=office")
		c.label("n", "team=shop")
		c.watched()
		c.label("n", "team=office")
		earlier := c.asked("n")
		c.interrupt = func() { c.label("n", "team=shop") }
		if got, err := c.index.Covering(t.Context(), earlier, "n", 0); err != nil || !slices.Equal(names(got), of("other")) {
			t.Fatalf("earlier: got %v, error %v", names(got), err)
		}
		if got, err := c.index.CoveringNow(t.Context(), c.asked("n"), "n", look); err != nil || !slices.Equal(names(got), of("q")) {
			t.Errorf("look %d: got %v, error %v, want quota q", look, names(got), err)
		}
	}
}

func TestSelected(t *testing.T) {
	namespace := func(name, team, owner string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"team": team}, Annotations: map[string]string{"owner": owner},
		}}
	}
	index := NewIndex(clock.RealClock{}, fake.NewClientBuilder().WithObjects(
		namespace("shop", "payments", "alice"), namespace("new", "food", "bob"), namespace("newer", "food", "alice")).Build())
	for _, known := range []*corev1.Namespace{
		namespace("shop", "payments", "alice"), namespace("ledgers", "payments", "bob"), namespace("web", "search", "alice"),
	} {
		index.Namespaces().Set(&metav1.PartialObjectMetadata{ObjectMeta: known.ObjectMeta})
	}
	compiled := func(selector quotav1.ClusterResourceQuotaSelector) definition.Selector {
		compiled, err := definition.CompileSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		return compiled
	}
	team := func(name string) definition.Selector {
		return compiled(quotav1.ClusterResourceQuotaSelector{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}})
	}
	alices := compiled(quotav1.ClusterResourceQuotaSelector{AnnotationSelector: map[string]string{"owner": "alice"}})
	for name, test := range map[string]struct {
		selectors []definition.Selector
		want      []string
	}{
		"by label":                             {selectors: []definition.Selector{team("payments")}, want: of("ledgers", "shop")},
		"by annotation":                        {selectors: []definition.Selector{alices}, want: of("shop", "web")},
		"by both":                              {selectors: []definition.Selector{alices, team("payments")}, want: of("shop")},
		"none":                                 {selectors: []definition.Selector{team("payments"), team("search")}},
		"what no watch has shown yet":          {selectors: []definition.Selector{team("food")}, want: of("new", "newer")},
		"what no watch has shown yet, by both": {selectors: []definition.Selector{alices, team("food")}, want: of("newer")},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := index.Selected(t.Context(), test.selectors...)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("error %v, selected (-want,+got):\n%s", err, diff)
			}
		})
	}
}
