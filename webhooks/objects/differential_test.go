// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/namespaces"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// drawn is a world of which all follows from a seed and the time, not from how often somebody asks.
type drawn struct {
	seed  uint64
	began time.Time
	trace []string
	moods map[string][]mood
	fails []mood
	slow  time.Duration
}

// mood is how a quota answers until a time.
type mood struct {
	until    time.Duration
	decision func(charge ledger.Charge) ledger.Decision
	err      error
	unjudged bool
}

func (d *drawn) note(format string, arguments ...any) {
	d.trace = append(d.trace, fmt.Sprintf("%7.3f ", now().Sub(d.began).Seconds())+fmt.Sprintf(format, arguments...))
}

func (d *drawn) rand(of string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(of))
	return rand.New(rand.NewPCG(d.seed, h.Sum64()))
}

func (d *drawn) mood(moods []mood) mood {
	for _, m := range moods {
		if now().Sub(d.began) < m.until {
			return m
		}
	}
	return mood{}
}

func rest(ctx context.Context, takes time.Duration) error {
	if takes == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-clock.RealClock{}.After(takes):
		return nil
	}
}

func (d *drawn) charge(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	text := ""
	for _, c := range charges {
		text += fmt.Sprintf(" %s/%d", c.Limits.Name, c.Limits.Generation)
		if c.Unjudged {
			text += " unjudged"
		}
		if c.Knowledge.Asks && os.Getenv("DIFFERENTIAL_ASKS") != "" {
			text += " asks"
		}
	}
	d.note("charge%s", text)
	if err := rest(ctx, d.slow); err != nil {
		return nil, fmt.Errorf("waiting for quota: %w", err)
	}
	for _, c := range charges {
		m := d.mood(d.moods[c.Limits.Name])
		if m.err != nil {
			return nil, m.err
		}
		if m.decision != nil && !(c.Unjudged && m.unjudged) {
			return m.decision(c), nil
		}
	}
	return ledger.Granted{}, nil
}

func (d *drawn) Reserve(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	return d.charge(ctx, charges)
}

func (d *drawn) Judge(ctx context.Context, charges []ledger.Charge) (ledger.Decision, error) {
	return d.charge(ctx, charges)
}

func (d *drawn) Current(string) ledger.State { return ledger.State{} }

func (d *drawn) Check(_ context.Context, quota string) error {
	d.note("check %s", quota)
	return d.mood(d.fails).err
}

func (d *drawn) moodsOf(name string, r *rand.Rand) []mood {
	var moods []mood
	reasons := []ledger.Reason{
		ledger.NotCounted, ledger.StaleLimits, ledger.Full, ledger.Sealed, ledger.NotJoined, ledger.StaleNamespaces, ledger.Unavailable,
		ledger.NotJoined, ledger.NotCounted,
	}
	errs := []error{machine.ErrStore, machine.ErrBusy, &evaluation.NativeRefusal{}, apierrors.NewAlreadyExists(corev1.Resource("pods"), "x")}
	at := time.Duration(0)
	for range r.IntN(4) {
		at += time.Duration([]int{21, 101, 400, 700, 1500, 4000, 20000}[r.IntN(7)])*time.Millisecond + time.Duration(r.IntN(999))*time.Microsecond
		m := mood{until: at, unjudged: r.IntN(3) > 0}
		enforced, members, reason := r.IntN(5) == 0, uint64(r.IntN(3)*1000), reasons[r.IntN(len(reasons))]
		switch n := r.IntN(20); {
		case n < 3:
			m.decision = func(c ledger.Charge) ledger.Decision { return ledger.Denied{Quota: name} }
		case n < 4:
			m.decision = func(c ledger.Charge) ledger.Decision { return ledger.Withheld{Quota: name} }
		case n < 6:
			m.err = errs[r.IntN(len(errs))]
		case n < 17:
			m.decision = func(c ledger.Charge) ledger.Decision {
				return ledger.Undecided{Quota: name, Reason: reason, Members: members, Unenforced: c.Limits.Advisory && !enforced}
			}
			if reason == ledger.StaleNamespaces && r.IntN(2) == 0 {
				m.decision = func(c ledger.Charge) ledger.Decision {
					if c.Knowledge.Seen >= members {
						return ledger.Granted{}
					}
					return ledger.Undecided{Quota: name, Reason: reason, Members: members, Unenforced: c.Limits.Advisory && !enforced}
				}
			}
		}
		moods = append(moods, m)
	}
	return moods
}

// change is what happens to the cluster at a time.
type change struct {
	at time.Duration
	do func(ctx context.Context, live client.Client)
}

func (d *drawn) changes(r *rand.Rand, names []string) []change {
	var changes []change
	for range r.IntN(4) {
		at := time.Duration(r.IntN(4000))*time.Millisecond + time.Duration(1+r.IntN(998))*time.Microsecond
		name := names[r.IntN(len(names))]
		to := modes(r)
		var do func(context.Context, client.Client)
		switch r.IntN(6) {
		case 0:
			team := []string{"shop", "warehouse"}[r.IntN(2)]
			do = func(ctx context.Context, live client.Client) {
				namespace := &corev1.Namespace{}
				if live.Get(ctx, client.ObjectKey{Name: "shop"}, namespace) == nil {
					namespace.Labels = map[string]string{"team": team}
					_ = live.Update(ctx, namespace)
				}
			}
		case 1:
			do = func(ctx context.Context, live client.Client) {
				_ = live.Delete(ctx, &quotav1.ClusterResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name}})
			}
		default:
			do = func(ctx context.Context, live client.Client) {
				quota := &quotav1.ClusterResourceQuota{}
				if live.Get(ctx, client.ObjectKey{Name: name}, quota) == nil {
					quota.Generation++
					quota.Spec.Enforcement.Mode = to
					_ = live.Update(ctx, quota)
				}
			}
		}
		changes = append(changes, change{at, do})
	}
	return changes
}

func modes(r *rand.Rand) quotav1.EnforcementMode {
	return []quotav1.EnforcementMode{"", audit, warn, audit}[r.IntN(4)]
}

// decides runs one decision in a bubble, and returns all that can be seen of it.
func decides(t *testing.T, seed uint64, decide func(*Handler) func(context.Context, *drawn, webhookconfig.Question) outcome) (trace []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &drawn{seed: seed, began: now(), moods: map[string][]mood{}}
		r := d.rand("world")
		objects := []client.Object{namespaceOf("shop", "shop"), namespaceOf("office", "office")}
		names := []string{"a", "b", "c"}[:1+r.IntN(3)]
		uids := []types.UID{}
		for _, name := range names {
			hard := "5"
			if r.IntN(10) == 0 && os.Getenv("DIFFERENTIAL_INVALID") != "" {
				hard = "500m"
			}
			quota := whenUnavailable([]quotav1.UnavailablePolicy{"", "Admit", "Refuse"}[r.IntN(3)], mode(modes(r), quotaOf(name, "pods", hard)))
			objects, uids = append(objects, quota), append(uids, quota.UID)
			d.moods[name] = d.moodsOf(name, r)
		}
		if r.IntN(2) == 0 {
			d.fails = []mood{{until: time.Duration(r.IntN(8000)) * time.Millisecond, err: fmt.Errorf("broken: %w", machine.ErrStore)}}
		}
		d.slow = time.Duration([]int{0, 0, 0, 3, 83, 507}[r.IntN(6)]) * time.Millisecond
		takes := time.Duration([]int{0, 0, 5, 5, 81, 311, 1513}[r.IntN(7)]) * time.Millisecond
		live := clientWith(t, objects...)
		reads := interceptor.NewClient(live, interceptor.Funcs{
			Get: func(ctx context.Context, to client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
				d.note("get %s", key.Name)
				if err := rest(ctx, takes); err != nil {
					return err
				}
				return to.Get(ctx, key, object, options...)
			},
			List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				d.note("list")
				if err := rest(ctx, takes); err != nil {
					return err
				}
				return to.List(ctx, list, options...)
			},
		})
		index := namespaces.NewIndex(clock.RealClock{}, reads)
		index.Quotas().List(nil, 1)
		index.Namespaces().List(nil, 1)
		show(t.Context(), t, index, live)
		question := webhookconfig.Question{Witness: webhookconfig.WitnessNone, Admits: r.IntN(2) == 0}
		switch r.IntN(4) {
		case 0:
			question.Witness, question.Quotas = webhookconfig.WitnessExact, webhookconfig.QuotaSet(uids)
		case 1:
			question.Witness, question.Quotas = webhookconfig.WitnessExact, webhookconfig.QuotaSet(uids[:1])
		}
		if r.IntN(5) == 0 {
			question.Epoch = 2000
		}
		ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond+123)
		defer cancel()
		if r.IntN(15) == 0 {
			lost, lose := context.WithCancelCause(ctx)
			timer := clock.RealClock{}.AfterFunc(time.Duration(r.IntN(4000))*time.Millisecond+457, func() { lose(errors.New("contact is lost")) })
			defer timer.Stop()
			ctx = lost
		}
		changes := d.changes(r, names)
		shows := r.IntN(2) == 0
		ended, end := context.WithCancel(t.Context())
		for _, c := range changes {
			go func() {
				if rest(ended, c.at) == nil {
					c.do(ended, live)
					if shows && rest(ended, 100*time.Millisecond+17) == nil {
						show(ended, t, index, live)
					}
				}
			}()
		}
		h := NewHandler(Parts{
			Clock: clock.RealClock{}, Evaluators: evaluation.New(clock.RealClock{}, evaluation.ClaimSources{}), Coverage: index, Charger: d,
			Contact: inContact{}, ReservationTTL: 90 * time.Second, AdmitByDefault: r.IntN(3) == 0,
		})
		got := decide(h)(ctx, d, question)
		d.note("%T %v err %v, barred %t, refuses %t", got.decision, got.decision, got.err, got.isBarred(), got.err != nil && h.refuses(got))
		var covering []string
		for _, c := range got.covered.Definitions {
			covering = append(covering, fmt.Sprintf("%s/%d", c.Limits.Name, c.Limits.Generation))
		}
		if got.err == nil || !strings.Contains(got.err.Error(), "context") {
			d.note("%v, covered %v, %d amounts", got.passedOver, covering, len(got.amounts))
		}
		end()
		<-clock.RealClock{}.After(20 * time.Second)
		trace = d.trace
	})
	return trace
}

// TestTheNewDecisionIsTheOld runs both on the same worlds.
func TestTheNewDecisionIsTheOld(t *testing.T) {
	number, first := 300, 0
	if text := os.Getenv("DIFFERENTIAL"); text != "" {
		number, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("DIFFERENTIAL_FIRST"); text != "" {
		first, _ = strconv.Atoi(text)
	}
	differ, shown := 0, 0
	steps := map[int]int{}
	for seed := first; seed < first+number; seed++ {
		run := func(decide func(*Handler) func(context.Context, *drawn, webhookconfig.Question) outcome) []string {
			return decides(t, uint64(seed), decide)
		}
		request := creation()
		if seed%10 == 9 {
			request = dryRun(request)
		}
		older := run(func(h *Handler) func(context.Context, *drawn, webhookconfig.Question) outcome {
			return func(ctx context.Context, _ *drawn, question webhookconfig.Question) outcome {
				attributes, _ := h.decoder.attributes(request)
				return h.decideInTime(ctx, question, request, attributes)
			}
		})
		newer := run(func(h *Handler) func(context.Context, *drawn, webhookconfig.Question) outcome {
			return func(ctx context.Context, _ *drawn, question webhookconfig.Question) outcome {
				attributes, _ := h.decoder.attributes(request)
				return h.admit(ctx, question, request, attributes)
			}
		})
		steps[min(len(older)/5, 10)]++
		if !slices.Equal(older, newer) {
			differ++
			if shown++; shown <= 400 {
				at := 0
				for at < min(len(older), len(newer)) && older[at] == newer[at] {
					at++
				}
				from := max(0, at-6)
				t.Logf("seed %d\n  both\n    %s\n  old\n    %s\n  new\n    %s", seed, strings.Join(older[from:at], "\n    "), strings.Join(tail(older, at), "\n    "), strings.Join(tail(newer, at), "\n    "))
			}
		}
	}
	t.Logf("%d of %d differ; lengths %v", differ, number, steps)
	if differ*10 > number {
		t.Errorf("%d of %d differ", differ, number)
	}
}

func tail(lines []string, from int) []string {
	left := lines[from:]
	if len(left) > 8 {
		left = append(slices.Clone(left[:5]), append([]string{"…"}, left[len(left)-2:]...)...)
	}
	return left
}
