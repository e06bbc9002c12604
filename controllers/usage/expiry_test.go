// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/utils/clock"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func TestAnExpiredReservationStaysWhileItsObjectHasYetToBeCounted(t *testing.T) {
	deselect := func(b *expiryBench) { b.watching.Count.SetNamespace("a", nil, nil, 20, clock.RealClock{}.Now()) }
	remove := func(b *expiryBench) { b.watching.Count.DeleteNamespace("a", 20) }
	limitOthers := func(b *expiryBench) { _ = b.defines(limiting(corev1.ResourcePods)) }
	for name, test := range map[string]struct {
		object, from string
		young        bool
		change       func(*expiryBench)
		settled      bool
		want         string
	}{
		"it goes if its object was never created":                        {object: "g2", want: "q, z"},
		"it stays if its object lives":                                   {object: "g1", want: "q, g1, z"},
		"it stays if its object has been updated":                        {object: "g1", from: "10", want: "q, g1, z"},
		"it goes if its object hasn't been updated":                      {object: "g1", from: "11", want: "q, z"},
		"it stays without an object if it hasn't expired":                {object: "g2", young: true, want: "q, g2, z"},
		"it goes if the ledger has counted that its namespace left":      {object: "g1", change: deselect, settled: true, want: "q, z"},
		"it stays until then":                                            {object: "g1", change: deselect, want: "q, g1, z"},
		"it goes if the ledger has counted that its namespace is gone":   {object: "g1", change: remove, settled: true, want: "q, z"},
		"it goes if the ledger isn't counted from its resource any more": {object: "g1", change: limitOthers, settled: true, want: "q, z"},
		"it stays until then, too":                                       {object: "g1", change: limitOthers, want: "q, g1, z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newExpiryBench(t)
				b.watching.expect("counted 1")
				if test.change != nil {
					test.change(b)
				}
				b.holds(ledger.Fence{}, held(test.object, test.from))
				if test.settled {
					b.settles()
				}
				age := time.Minute
				if test.young {
					age -= time.Nanosecond
				}
				b.sees(age)
				later := held("z", "")
				if err := b.Group.Edit(t.Context(), "red", func(draft *ledger.Draft) { draft.Admit(later) }); err != nil {
					t.Fatal(err)
				}
				next, err := b.expire(t.Context(), "red", b.sight("red"))
				stays := strings.Contains(test.want, test.object)
				if err != nil || next > time.Minute || (next < time.Minute) != stays {
					t.Errorf("got another look in %s, error %v", next, err)
				}
				b.wantStored(test.want)
			})
		})
	}
}

func TestAnExpiredReservationStaysIfItsLookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, forbidden, down := newExpiryBench(t), errors.New("forbidden"), errors.New("it is down")
		b.holds(ledger.Fence{}, held("g1", ""), held("hidden", ""), held("lost", ""), held("missing", ""))
		b.sees(time.Minute)
		b.before["lost"] = func() error { return down }
		b.before["hidden"] = func() error { return forbidden }
		if next, err := b.expire(t.Context(), "red", b.sight("red")); !errors.Is(err, forbidden) || !errors.Is(err, down) || next != expireAgain {
			t.Errorf("want both failures, got %v, and another look in %s", err, next)
		}
		b.wantStored("q, g1, hidden, lost")
	})
}

func TestAFenceIsLoweredOnceItsSpecCanNoLongerBeStored(t *testing.T) {
	down := errors.New("it is down")
	fails := func(*expiryBench) error { return down }
	later := func(state *ledger.State) { state.Fence.Until = state.Fence.Until.Add(time.Minute) }
	raises := func(b *expiryBench) error { return b.rewrites(later) }
	for name, test := range map[string]struct {
		young bool
		// of and stored are generations: that of the fence, 2 if it is zero, and the stored one.
		of, stored int64
		during     func(*expiryBench) error
		want       string
		err        error
	}{
		"it goes if its spec isn't stored":                   {stored: 1, want: "q"},
		"it goes if its quota is gone":                       {want: "q"},
		"it stays until it is counted if its spec is stored": {stored: 2, want: "q, fence 2"},
		"it stays until one before it is counted, too":       {of: 3, stored: 2, want: "q, fence 3"},
		"it stays before its time, and nothing is looked at": {young: true, during: fails, want: "q, fence 2"},
		"it stays if the look fails":                         {during: fails, want: "q, fence 2", err: down},
		"it stays if it is raised during the look":           {stored: 1, during: raises, want: "q, fence 2"},
		"it is an error if the ledger has gone":              {stored: 1, during: (*expiryBench).deletes, err: machine.ErrNoLedger},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newExpiryBench(t)
				if test.stored > 0 {
					b.found["clusterresourcequotas/red"] = metav1.ObjectMeta{Generation: test.stored}
				}
				if test.during != nil {
					b.before["red"] = func() error { return test.during(b) }
				}
				b.holds(ledger.Fence{Generation: cmp.Or(test.of, 2), Until: clock.RealClock{}.Now().Add(-time.Hour)})
				left := time.Duration(0)
				if test.young {
					left = time.Millisecond
				}
				b.sees(time.Minute - left)
				if next, err := b.expire(t.Context(), "red", b.sight("red")); !errors.Is(err, test.err) || next != cmp.Or(left, expireAgain) {
					t.Errorf("want error %v, got %v, and another look in %s", test.err, err, next)
				}
				b.wantStored(test.want)
			})
		})
	}
}

func TestASuspicionEndsByItsAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newExpiryBench(t)
		b.holds(ledger.Fence{})
		suspect := ledger.Suspect{Object: ledger.Object{Namespace: "a", UID: "failed"}, Expiry: time.Unix(1, 0)}
		state := b.Group.Current("red")
		state.Suspects = map[string]ledger.Suspect{"a": suspect}
		if _, err := b.Group.Replace(t.Context(), "red", b.Group.Known("red").Version, state); err != nil {
			t.Fatal(err)
		}
		for _, want := range []int{1, 0} {
			next, err := b.expire(t.Context(), "red", b.sight("red"))
			if err != nil {
				t.Fatal(err)
			}
			if got := len(b.Group.Current("red").Suspects); got != want {
				t.Errorf("%d suspects, want %d", got, want)
			}
			if want == 1 && next != suspectFor {
				t.Errorf("looks again after %s", next)
			}
			b.sees(suspectFor)
		}
	})
}

func TestOnlyEnforcedLimitsKeepANamespaceSuspected(t *testing.T) {
	quota := evaluation.Quota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}
	if got := enforced(quota); !upstream.Equals(got, quota.Spec.Hard) {
		t.Errorf("got %v, want %v", got, quota.Spec.Hard)
	}
	quota.Advisory = true
	if got := enforced(quota); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
}

func TestAQuotaIsCountedAnewOnlyIfItsDefinitionChanges(t *testing.T) {
	type quota = quotav1.ClusterResourceQuota
	for name, test := range map[string]struct {
		change func(*expiryBench, *quota)
		anew   bool
		err    error
	}{
		"nothing changes":                    {change: func(*expiryBench, *quota) {}},
		"its generation changes":             {change: func(_ *expiryBench, red *quota) { red.Generation++ }, anew: true},
		"its digest changes":                 {change: func(_ *expiryBench, red *quota) { red.Spec.Selector.LabelSelector.MatchLabels["b"] = "c" }, anew: true},
		"pods are served, and claims aren't": {change: func(b *expiryBench, _ *quota) { b.Watches.keepers[pods].problem = nil }, anew: true},
		"watches don't run":                  {change: func(b *expiryBench, red *quota) { b.Watches.ctx, red.Generation = nil, 2 }, err: errNotRunning},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, red := newExpiryBench(t), limiting(countGadgets, "requests.example.com/gpu") // of pods and of claims
				counted := func() (selection uint64) {
					b.Count.Read("red", func(view counting.View) { selection = view.Selection() })
					return selection
				}
				first := b.defines(red)
				before := counted()
				test.change(b, red)
				if err := b.defines(red); first != nil || !errors.Is(err, test.err) {
					t.Errorf("want error %v, got %v and then %v", test.err, first, err)
				}
				if after := counted(); (after != before) != test.anew {
					t.Errorf("want it counted anew: %t, got count %d and then %d", test.anew, before, after)
				}
			})
		})
	}
}

func TestAQuotaIsForgottenWithItsLedger(t *testing.T) {
	for name, test := range map[string]struct {
		during  func(*expiryBench) error
		anew    bool
		want    string
		failing bool
	}{
		"its ledger goes":                {during: func(*expiryBench) error { return nil }},
		"its ledger may be gone by then": {during: (*expiryBench).deletes},
		"a new quota's ledger stays, if it has replaced that by then":   {during: (*expiryBench).replaces, want: "new", failing: true},
		"a new quota's ledger stays, though the cache lacks that quota": {during: func(*expiryBench) error { return nil }, anew: true, want: "q"},
		"its ledger stays if that fails":                                {during: func(*expiryBench) error { return errors.New("it is down") }, want: "q", failing: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, registry := newExpiryBench(t), prometheus.NewRegistry()
				b.Outcomes = told{metrics.New(registry)}
				b.Outcomes.Lost("red", outcomes.Edited)
				b.holds(ledger.Fence{})
				b.before["delete"] = func() error { return test.during(b) }
				if test.anew {
					b.found["clusterresourcequotas/red"] = metav1.ObjectMeta{Generation: 1}
				}
				if err := b.forget(t.Context(), "red"); (err != nil) != test.failing {
					t.Errorf("want an error: %t, got %v", test.failing, err)
				}
				b.wantStored(test.want)
				figures, err := testutil.GatherAndCount(registry, "sharedquota_ledger_lost_total")
				if err != nil || figures+len(b.Count.Quotas())+len(b.Watches.keepers) > 0 || b.Group.Current("red").Quota != "" {
					t.Errorf("want no figures, count, watches or known ledger, got %d figures, error %v", figures, err)
				}
			})
		})
	}
}

// An aggregated API server that hangs once kept a quota from being looked after for minutes: 5 s for every ten reservations.
func TestLooksThatHangAreNotRepeatedForEachReservation(t *testing.T) {
	var held []ledger.Reservation
	for i := range 100 {
		reservation := ledger.Reservation{Attempt: fmt.Sprint(i)}
		reservation.UID, reservation.Resource = "u", gadgets.WithVersion("v1")
		if i%2 == 0 {
			reservation.Resource = pods.WithVersion("v1")
		}
		held = append(held, reservation)
	}
	var looks atomic.Int32
	missing, err := lookEach(held, func(reservation ledger.Reservation) (bool, error) {
		if reservation.Resource.GroupResource() == pods {
			return false, nil
		}
		looks.Add(1)
		return false, fmt.Errorf("looking: %w", context.DeadlineExceeded)
	})
	if len(missing) != 50 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d are missing, error %v; want all looks of the other resource made", len(missing), err)
	}
	if looks.Load() > lookupsAtOnce {
		t.Errorf("%d looks hung, want %d at most", looks.Load(), lookupsAtOnce)
	}
	broken := errors.New("its conversion fails")
	looks.Store(0)
	if _, err := lookEach(held, func(ledger.Reservation) (bool, error) { looks.Add(1); return false, broken }); !errors.Is(err, broken) || looks.Load() != 100 {
		t.Errorf("%d looks, error %v; want each object looked for, whatever is wrong with another one", looks.Load(), err)
	}
}
