// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
)

// outage is a store in which the ledgers of some quotas can't be reached.
type outage struct {
	*memoryStore
	// quota -> the error of each call
	down map[string]error
	// silent: such a call doesn't fail, it is never answered.
	silent bool
	// unwritable: only writes fail.
	unwritable bool
}

func (o *outage) fail(ctx context.Context, quota string) error {
	err := o.down[quota]
	if err != nil && o.silent {
		<-ctx.Done()
	}
	return err
}

func (o *outage) Load(ctx context.Context, quota string, load machine.Load) (machine.Snapshot, error) {
	if err := o.fail(ctx, quota); err != nil && !o.unwritable {
		return machine.Snapshot{}, err
	}
	return o.memoryStore.Load(ctx, quota, load)
}

func (o *outage) Swap(ctx context.Context, quota string, previous machine.Version, next ledger.State) (machine.Version, error) {
	if err := o.fail(ctx, quota); err != nil {
		return machine.Version{}, err
	}
	return o.memoryStore.Swap(ctx, quota, previous, next)
}

// during runs a test in a bubble of time with such a store.
func during(t *testing.T, store *outage, test func(t *testing.T, group *Group)) {
	t.Helper()
	options := Options{Options: machine.Options{Pace: 20 * time.Millisecond, PaceEach: time.Millisecond, Patience: 150 * time.Millisecond}}
	bubble(t, store, options, func(t *testing.T, group *Group, _ *watcher) { test(t, group) })
}

func advisory(charge ledger.Charge) ledger.Charge {
	charge.Limits.Advisory = true
	return admitting(charge)
}

func admitting(charge ledger.Charge) ledger.Charge {
	charge.Admits = true
	return charge
}

// unchecked returns the quotas that admitted a charge without a reservation.
func unchecked(decision ledger.Decision) []string {
	granted, _ := decision.(ledger.Granted)
	var quotas []string
	for _, remark := range granted.Remarks {
		if undecided, ok := remark.Refusal.(ledger.Undecided); ok && remark.Unchecked && undecided.Reason == ledger.Unavailable &&
			undecided.Detail != "" && undecided.Quota == remark.Quota {
			quotas = append(quotas, remark.Quota)
		}
	}
	return quotas
}

// outwaited is how long an enforced charge waits at most: for a batch that failed from before it came, and for its own.
const outwaited = 6*time.Second + 500*time.Millisecond

func TestAQuotaThatCannotBeReachedHoldsUpWhatItEnforces(t *testing.T) {
	silent := func(o *outage) { o.silent = true }
	unwritable := func(o *outage) { o.unwritable = true }
	for name, test := range map[string]struct {
		charge ledger.Charge
		err    error
		store  func(*outage)
		// within and after are how long it takes at most and at least to be admitted.
		within, after time.Duration
		want          error
	}{
		"advisory":                                           {charge: advisory(onePod("team", 9, "a")), within: time.Second},
		"advisory, and no call is answered":                  {charge: advisory(onePod("team", 9, "a")), store: silent, within: time.Second},
		"advisory, and it can't be written":                  {charge: advisory(onePod("team", 9, "a")), store: unwritable, within: time.Second},
		"advisory, and it can't be understood":               {charge: advisory(onePod("team", 9, "a")), err: machine.ErrUnreadable, within: 100 * time.Millisecond},
		"advisory, and the charge can't be stored":           {charge: advisory(onePod("team", 9, "a")), err: machine.ErrRejected, store: unwritable, within: time.Second},
		"enforced, and admitted then":                        {charge: admitting(onePod("team", 9, "a")), after: 3 * time.Second, within: outwaited},
		"enforced, admitted, and no call is answered":        {charge: admitting(onePod("team", 9, "a")), store: silent, after: 3 * time.Second, within: outwaited},
		"enforced, admitted, and can't be understood":        {charge: admitting(onePod("team", 9, "a")), err: machine.ErrUnreadable, within: 100 * time.Millisecond},
		"enforced, admitted, and the charge can't be stored": {charge: admitting(onePod("team", 9, "a")), err: machine.ErrRejected, store: unwritable, want: machine.ErrRejected},
		"enforced":                     {charge: onePod("team", 9, "a"), want: machine.ErrStore},
		"enforced, and not understood": {charge: onePod("team", 9, "a"), err: machine.ErrUnreadable, want: machine.ErrUnreadable},
		"advisory, but told to refuse": {charge: refusing(advisory(onePod("team", 9, "a"))), want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			store := &outage{memoryStore: newMemoryStore("team"), down: map[string]error{"team": errInjected}}
			if test.err != nil {
				store.down["team"] = fmt.Errorf("injected: %w", test.err)
			}
			if test.store != nil {
				test.store(store)
			}
			during(t, store, func(t *testing.T, group *Group) {
				asks := []func(context.Context, []ledger.Charge) (ledger.Decision, error){group.Judge, group.Reserve}
				if store.unwritable {
					asks = asks[1:] // to judge, nothing is written
				}
				for _, ask := range asks {
					began := clock.RealClock{}.Now()
					decision, err := ask(t.Context(), []ledger.Charge{test.charge})
					took := clock.RealClock{}.Since(began)
					if test.want != nil {
						if !errors.Is(err, test.want) || decision != nil {
							t.Errorf("got %v, error %v, want %v", decision, err, test.want)
						}
						continue
					}
					if got := unchecked(decision); err != nil || len(got) != 1 || took > test.within || took < test.after {
						t.Errorf("after %v: got %#v, error %v, want it admitted within %v", took, decision, err, test.within)
					}
				}
				passUntilQuiet(time.Minute)
				if held := store.reserved("team"); held != 0 {
					t.Errorf("want nothing reserved, got %d", held)
				}
			})
		})
	}
}

func refusing(charge ledger.Charge) ledger.Charge {
	charge.Admits = false
	return charge
}

// A check finds trouble that a charge without a write doesn't notice.
func TestACheckWritesTheLedger(t *testing.T) {
	for name, test := range map[string]struct {
		quota string
		store func(*outage)
		want  error
	}{
		"it can be written":      {quota: "team", store: func(o *outage) { o.down = nil }},
		"it can't be read":       {quota: "team", store: func(*outage) {}, want: machine.ErrStore},
		"it can't be written":    {quota: "team", store: func(o *outage) { o.unwritable = true }, want: machine.ErrStore},
		"it isn't there":         {quota: "other", store: func(o *outage) { o.down = nil }, want: machine.ErrNoLedger},
		"it can't be understood": {quota: "team", store: func(o *outage) { o.down["team"] = machine.ErrUnreadable }, want: machine.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			store := &outage{memoryStore: newMemoryStore("team"), down: map[string]error{"team": errInjected}}
			test.store(store)
			during(t, store, func(t *testing.T, group *Group) {
				if err := group.Check(t.Context(), test.quota); !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
		})
	}
}

// Very many requests don't get past a limit.
func TestABusyQuotaAdmitsOnlyWhatItDoesNotEnforce(t *testing.T) {
	for name, test := range map[string]struct {
		charge func(ledger.Charge) ledger.Charge
		busy   bool
	}{
		"enforced": {charge: admitting, busy: true},
		"advisory": {charge: advisory},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, newMemoryStore("team"), Options{Options: machine.Options{MaxWaiting: 2}}, func(t *testing.T, group *Group, _ *watcher) {
				var answers []<-chan operation
				for i := range 10 {
					answers = append(answers, reserveLater(t.Context(), group, test.charge(onePod("team", 100, fmt.Sprint(i)))))
				}
				busy, admitted := 0, 0
				for _, answer := range answers {
					switch got := <-answer; {
					case errors.Is(got.err, machine.ErrBusy):
						busy++
					case got.err != nil:
						t.Errorf("got error %v", got.err)
					case len(unchecked(got.decision)) > 0:
						admitted++
					}
				}
				if (busy > 0) != test.busy || (admitted > 0) == test.busy {
					t.Errorf("%d were turned away, and %d admitted", busy, admitted)
				}
			})
		})
	}
}

// A caller who has gone isn't told that the request was admitted, and a caller that comes while the process stops is.
func TestAdmittedIsWhoeverStillWaits(t *testing.T) {
	store := &outage{memoryStore: newMemoryStore("team"), down: map[string]error{"team": errInjected}, silent: true}
	during(t, store, func(t *testing.T, group *Group) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if decision, err := group.Reserve(ctx, []ledger.Charge{advisory(onePod("team", 9, "a"))}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, error %v, want the deadline", decision, err)
		}
		group.end()
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{advisory(onePod("team", 9, "b"))}); err != nil || len(unchecked(decision)) != 1 {
			t.Errorf("while it stops: got %v, error %v, want it admitted", decision, err)
		}
		if decision, err := group.Reserve(t.Context(), []ledger.Charge{admitting(onePod("team", 9, "c"))}); err == nil {
			t.Errorf("enforced, while it stops: got %v, want an error", decision)
		}
	})
}

// A charge that is written after its caller was let go is given back.
func TestAnAdmittedChargeIsNotReservedLater(t *testing.T) {
	store := &outage{memoryStore: newMemoryStore("team"), down: map[string]error{}}
	store.latency = 700 * time.Millisecond // a read and a write take longer than anybody waits
	during(t, store, func(t *testing.T, group *Group) {
		decision, err := group.Reserve(t.Context(), []ledger.Charge{advisory(onePod("team", 9, "a"))})
		if err != nil || len(unchecked(decision)) != 1 {
			t.Errorf("got %v, error %v, want it admitted", decision, err)
		}
		passUntilQuiet(time.Minute)
		if held := store.reserved("team"); held != 0 {
			t.Errorf("want nothing reserved, got %d", held)
		}
	})
}

func TestOneOfSeveralQuotasCannotBeReached(t *testing.T) {
	for name, test := range map[string]struct {
		charges []ledger.Charge
		want    []string
		denied  string
		failed  bool
		within  time.Duration
		// held is the reserved amount at last.
		held map[string]int64
	}{
		"it only advises": {
			charges: []ledger.Charge{onePod("cpu", 5, "p"), advisory(onePod("down", 5, "p")), onePod("pods", 5, "p")},
			want:    []string{"down"}, within: 1200 * time.Millisecond, held: map[string]int64{"cpu": 1, "pods": 1},
		},
		"it admits then": {
			charges: []ledger.Charge{onePod("cpu", 5, "p"), admitting(onePod("down", 5, "p")), onePod("pods", 5, "p")},
			want:    []string{"down"}, within: outwaited, held: map[string]int64{"cpu": 1, "pods": 1},
		},
		"it refuses then": {
			charges: []ledger.Charge{advisory(onePod("cpu", 5, "p")), onePod("down", 5, "p"), onePod("pods", 5, "p")},
			failed:  true, within: outwaited,
		},
		"another one denies, and doesn't wait for it": {
			charges: []ledger.Charge{onePod("cpu", 5, "p"), advisory(onePod("down", 5, "p")), onePod("pods", 0, "p")},
			denied:  "pods", within: 200 * time.Millisecond,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &outage{memoryStore: newMemoryStore("cpu", "down", "pods"), down: map[string]error{"down": errInjected}}
			during(t, store, func(t *testing.T, group *Group) {
				began := clock.RealClock{}.Now()
				decision, err := group.Reserve(t.Context(), test.charges)
				took := clock.RealClock{}.Since(began)
				denied, _ := decision.(ledger.Denied)
				if got := unchecked(decision); fmt.Sprint(got) != fmt.Sprint(test.want) || denied.Quota != test.denied || (err != nil) != test.failed {
					t.Errorf("got %#v, error %v", decision, err)
				}
				if took > test.within {
					t.Errorf("it took %v, want %v at most", took, test.within)
				}
				passUntilQuiet(time.Minute)
				for _, quota := range []string{"cpu", "down", "pods"} {
					if held := store.reserved(quota); held != test.held[quota] {
						t.Errorf("quota %s: got %d reserved, want %d", quota, held, test.held[quota])
					}
				}
			})
		})
	}
}

// The remarks of all quotas come with the answer, each once, also to a dry run.
func TestRemarksOfSeveralQuotas(t *testing.T) {
	store := &outage{memoryStore: newMemoryStore("cpu", "pods")}
	during(t, store, func(t *testing.T, group *Group) {
		charges := []ledger.Charge{advisory(onePod("pods", 0, "p")), advisory(onePod("cpu", 0, "p"))}
		for _, ask := range []func(context.Context, []ledger.Charge) (ledger.Decision, error){group.Judge, group.Reserve} {
			decision, err := ask(t.Context(), charges)
			granted, _ := decision.(ledger.Granted)
			if err != nil || len(granted.Remarks) != 2 || granted.Remarks[0].Quota != "cpu" || granted.Remarks[1].Quota != "pods" {
				t.Errorf("got %#v, error %v, want a remark of each", decision, err)
			}
		}
	})
}
