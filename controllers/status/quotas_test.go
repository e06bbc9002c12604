// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/ledgerstore"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/metrics"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

// bench has a QuotaController, and all that a status is made of.
type bench struct {
	*QuotaController
	clock  *clocktesting.FakeClock
	client client.Client
	// failure of each write of a status; nil for none.
	failure error
	// unwritable and unreadable: no ledger can be written, or read.
	unwritable, unreadable bool
	writes                 int
	// left is how long the last write may take; zero for as long as it likes.
	left time.Duration
	// others are how many namespaces the quota selects besides that in which something is used.
	others int
	// told are the events, each as its object's path and its note.
	told []string
}

// untimed is a clock by which nothing is tried again.
type untimed struct{ *clocktesting.FakeClock }

func (u untimed) AfterFunc(time.Duration, func()) clock.Timer { return u.NewTimer(time.Hour) }

// Eventf implements report.Recorder.
func (b *bench) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, args ...any) {
	about := regarding.(*corev1.ObjectReference)
	b.told = append(b.told, fmt.Sprintf("%s %s %s: %s", about.Name, about.FieldPath, reason, args[0]))
}

// knownTypes are the types that the fake client reads and writes.
func knownTypes(t *testing.T) *runtime.Scheme {
	t.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{quotav1.AddToScheme, admissionregistrationv1.AddToScheme} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	return known
}

// countOf counts for one quota, in namespace a of team shop.
func countOf(t *testing.T, clock clock.Clock, quota *quotav1.ClusterResourceQuota) (*counting.Count, ledger.Basis) {
	t.Helper()
	compiled, err := definition.Compile(quota)
	if err != nil {
		t.Fatal(err)
	}
	ignore := func([]string) {}
	count := counting.New(evaluation.New(clock, evaluation.ClaimSources{}), ignore, ignore)
	count.ReplaceNamespaces([]counting.NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "shop"}}}, 1, moment)
	sources := map[corev1.ResourceName][]schema.GroupResource{}
	for name := range quota.Spec.Quota.Hard {
		sources[name] = []schema.GroupResource{{Resource: string(name)}}
	}
	count.Define(counting.Target{
		UID: quota.UID, Digest: compiled.Limits.Digest, Quota: compiled.Quota, Selector: compiled.Selector, Sources: sources,
	}, moment)
	return count, compiled.Limits.Basis
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	b := &bench{clock: clocktesting.NewFakeClock(moment)}
	b.client = fake.NewClientBuilder().WithScheme(knownTypes(t)).WithObjects(objects...).
		WithStatusSubresource(&quotav1.ClusterResourceQuota{}).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: b.write, Get: b.get, Update: b.update}).Build()
	evaluators := evaluation.New(b.clock, evaluation.ClaimSources{})
	group := driver.New(t.Context(), untimed{b.clock}, ledgerstore.New(b.client), metrics.New(prometheus.NewRegistry()),
		driver.Options{Options: machine.Options{MaxWaiting: 1}, CallTimeout: time.Minute})
	elected := make(chan struct{})
	close(elected)
	b.QuotaController = NewQuotaController(Parts{
		Clock: b.clock, Client: b.client, Ledgers: Ledgers{Live: b.client, Intact: ledgerstore.Intact}, Evaluators: evaluators,
		Define: definition.Salvage, Count: counting.New(evaluators, func([]string) {}, func([]string) {}), Waiting: waiting.NewList(),
		Group:    group,
		Problems: func(string) []Problem { return nil }, Settings: settings, Proofs: loaded(objects),
		Served:    func(context.Context) []schema.GroupResource { return nil },
		StatusLag: NewLag(b.clock, elected), Recorder: b, Life: 90 * time.Second, Every: time.Second,
	})
	return b
}

func (b *bench) write(
	ctx context.Context, c client.Client, subresource string, object client.Object, patch client.Patch,
	options ...client.SubResourcePatchOption,
) error {
	if b.failure != nil {
		return b.failure
	}
	if _, ok := object.(*metav1.PartialObjectMetadata); !ok {
		return errors.New("want the answer in an object that shares nothing with the cache")
	}
	b.writes++
	b.left = 0
	if until, bounded := ctx.Deadline(); bounded {
		b.left = time.Until(until) //nolint:forbidigo // a context's deadline is in real time
	}
	return c.SubResource(subresource).Patch(ctx, object, patch, options...)
}

func (b *bench) get(
	ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if b.unreadable && isLedger(object) {
		return errFull
	}
	return c.Get(ctx, key, object, options...)
}

func (b *bench) update(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
	if b.unwritable && isLedger(object) {
		return errFull
	}
	return c.Update(ctx, object, options...)
}

var errFull = errors.New("etcd is full")

func isLedger(object client.Object) bool {
	_, ok := object.(*quotav1.QuotaLedger)
	return ok
}

// counts lets the count have seen so many config maps, and the ledger as well.
func (b *bench) counts(t *testing.T, quota *quotav1.ClusterResourceQuota, number int) {
	t.Helper()
	compiled, err := definition.Compile(quota)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := []counting.NamespaceLabels{{Name: "a", Labels: map[string]string{"team": "shop"}}}
	for i := range b.others {
		namespaces = append(namespaces, counting.NamespaceLabels{Name: fmt.Sprintf("other-%d", i), Labels: map[string]string{"team": "shop"}})
	}
	b.Count.ReplaceNamespaces(namespaces, 1, moment)
	b.Count.Define(counting.Target{
		UID: quota.UID, Generation: quota.Generation, Digest: compiled.Limits.Digest, Quota: compiled.Quota, Selector: compiled.Selector,
		Sources: map[corev1.ResourceName][]schema.GroupResource{"configmaps": {configMaps}},
	}, moment)
	var objects []runtime.Object
	for i := range number {
		objects = append(objects, &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: string(rune('a' + i)), UID: types.UID(rune('a' + i)), ResourceVersion: "5"},
		})
	}
	if err := b.Count.Source(configMaps).Replace(objects, 5, moment); err != nil {
		t.Fatal(err)
	}
	b.Group.Saw(quota.Name, machine.Snapshot{Version: machine.Version{ResourceVersion: 1}, State: ledger.State{
		Basis: compiled.Limits.Basis, Used: list("configmaps", "0"),
	}})
}

// reconcile returns when the status must be looked at again; zero if nothing is due before tomorrow.
func (b *bench) reconcile(t *testing.T) time.Duration {
	t.Helper()
	result, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}})
	if err != nil {
		t.Fatal(err)
	}
	if result.RequeueAfter == tomorrow(b.clock.Now()).Sub(b.clock.Now()) {
		return 0
	}
	return result.RequeueAfter
}

func (b *bench) status(t *testing.T) quotav1.ClusterResourceQuotaStatus {
	t.Helper()
	quota := &quotav1.ClusterResourceQuota{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "team"}, quota); err != nil {
		t.Fatal(err)
	}
	return quota.Status
}

// registered is a configuration that covers config maps.
func registered() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: webhookconfig.ConfigurationName, UID: "configuration", Generation: 1},
	}
}

// loaded are the proofs that the API server has loaded the configuration among the
// objects, which covers the quotas among them.
func loaded(objects []client.Object) *webhookconfig.Proofs {
	proofs := &webhookconfig.Proofs{}
	var seen webhookconfig.Observation
	for _, object := range objects {
		if quota, ok := object.(*quotav1.ClusterResourceQuota); ok {
			seen.Quotas = append(seen.Quotas, webhookconfig.Quota{Name: quota.Name, UID: quota.UID, Generation: quota.Generation})
			seen.Coverages = append(seen.Coverages, webhookconfig.Exact)
		}
	}
	for _, object := range objects {
		if object, ok := object.(*admissionregistrationv1.ValidatingWebhookConfiguration); ok {
			seen.Configuration, seen.Generation = object.UID, object.Generation
			seen.Edition = webhookconfig.NextEdition(&admissionregistrationv1.ValidatingWebhookConfiguration{})
			proofs.Observe(seen, moment)
			proofs.Answered(seen.Edition, moment)
		}
	}
	return proofs
}

func settings() webhookconfig.Settings {
	return webhookconfig.Settings{
		Endpoint: webhookconfig.Endpoint{URL: "https://localhost"}, Paths: webhookconfig.Paths{Objects: "/o", Quotas: "/q"},
		Protected: []string{"kube-system"}, FailurePolicy: admissionregistrationv1.Fail,
	}
}

func TestTheStatusShowsTheCount(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 3)
	b.reconcile(t)
	status := b.status(t)
	if status.Summary != "configmaps: 3/5" || status.NamespaceCount != 1 || status.Selector != "team=shop" {
		t.Errorf("got %+v", status)
	}
	for _, kind := range []string{quotav1.ConditionReady, quotav1.ConditionEnforced} {
		if !meta.IsStatusConditionTrue(status.Conditions, kind) {
			t.Errorf("want %s, got %+v", kind, status.Conditions)
		}
	}
}

func TestAQuotaIsNotEnforcedBeforeTheWebhookIsRegistered(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota)
	b.counts(t, quota, 3)
	if wait := b.reconcile(t); b.writes != 0 || wait != beginningFor {
		t.Errorf("want no status that the webhook's first call outdates, got %d writes, and a look after %s", b.writes, wait)
	}
	b.clock.Step(beginningFor)
	b.reconcile(t)
	if !meta.IsStatusConditionFalse(b.status(t).Conditions, quotav1.ConditionEnforced) {
		t.Errorf("want it not enforced, got %+v", b.status(t).Conditions)
	}
}

// Admission goes by the ledger: while that can't decide, the quota isn't ready.
func TestAQuotaIsNotReadyBeforeItsLedgerIs(t *testing.T) {
	for name, change := range map[string]func(*ledger.State){
		"it lacks the resource":                  func(s *ledger.State) { s.Used = nil },
		"it was counted for a spec that differs": func(s *ledger.State) { s.Generation, s.Digest = 1, "before" },
		"it is of the quota before":              func(s *ledger.State) { s.Quota = "before" },
		"it is sealed":                           func(s *ledger.State) { s.Sealed = moment },
		"it is to be counted anew": func(s *ledger.State) {
			draft := ledger.Edit(*s)
			draft.Forget(1)
			*s = draft.State()
		},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "5")
			b := newBench(t, quota, registered())
			b.counts(t, quota, 3)
			state := b.Group.Current("team")
			change(&state)
			b.Group.Gone("team")
			b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 2}, State: state})
			b.reconcile(t)
			b.clock.Step(beginningFor)
			b.reconcile(t)
			ready := meta.FindStatusCondition(b.status(t).Conditions, quotav1.ConditionReady)
			if ready.Status != metav1.ConditionFalse || ready.Reason != quotav1.ReasonCounting {
				t.Errorf("want it not ready, because it is being counted, got %+v", ready)
			}
		})
	}
}

// The status may come to know an edit before the count does.
func TestAQuotaWhoseLimitChangesStaysReady(t *testing.T) {
	before := team("configmaps", "5")
	for name, test := range map[string]struct {
		edited *quotav1.ClusterResourceQuota
		want   metav1.ConditionStatus
	}{
		"the limit": {team("configmaps", "6"), metav1.ConditionTrue},
		"the names": {team("secrets", "5"), metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			test.edited.Generation = before.Generation + 1
			b := newBench(t, test.edited, registered())
			b.counts(t, before, 3)
			b.reconcile(t)
			b.clock.Step(beginningFor)
			b.reconcile(t)
			if ready := meta.FindStatusCondition(b.status(t).Conditions, quotav1.ConditionReady); ready.Status != test.want {
				t.Errorf("want ready %s, got %+v", test.want, ready)
			}
		})
	}
}

// The ledger is another one than the status says that requests were admitted by.
func TestALedgerThatWasLostIsToldOf(t *testing.T) {
	for name, test := range map[string]struct {
		named  types.UID
		reason string
		told   bool
	}{
		"another one is named":   {named: "before", reason: quotav1.ReasonLedgerLost, told: true},
		"it is named, and opens": {named: "ledger", reason: quotav1.ReasonCounting},
		"it is the first":        {reason: quotav1.ReasonCounting},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "5")
			quota.Status.Ledger = test.named
			b := newBench(t, quota, registered(), &quotav1.QuotaLedger{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "ledger"}})
			b.counts(t, quota, 3)
			b.Group.Saw("team", machine.Snapshot{Version: machine.Version{UID: "ledger", ResourceVersion: 2}, State: ledger.State{
				Basis: ledger.Basis{Quota: quota.UID}, Sealed: moment,
			}})
			b.reconcile(t)
			b.clock.Step(beginningFor)
			b.reconcile(t)
			status := b.status(t)
			if ready := meta.FindStatusCondition(status.Conditions, quotav1.ConditionReady); ready.Reason != test.reason {
				t.Errorf("got %+v, want reason %s", ready, test.reason)
			}
			if status.Ledger != test.named {
				t.Errorf("the status names %q, want it to go on with %q", status.Ledger, test.named)
			}
			told := slices.ContainsFunc(b.told, func(event string) bool {
				return strings.HasPrefix(event, "team  LedgerLost: ") && strings.Contains(event, "refused until 1970-01-01T01:24:51Z")
			})
			if told != test.told {
				t.Errorf("got the events %q, want one %t that says until when", b.told, test.told)
			}
		})
	}
}

func TestALedgerThatCannotBeWrittenForFiveSecondsMakesTheQuotaNotReady(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 3)
	b.unwritable = true
	begun := make(chan struct{})
	b.Group.OnTrouble(func(string) { close(begun) })
	ctx, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() { _ = b.Group.Edit(ctx, "team", func(draft *ledger.Draft) { draft.Forget(1) }) })
	<-begun
	leave()
	asking.Wait()
	ready := func() string {
		t.Helper()
		condition := meta.FindStatusCondition(b.status(t).Conditions, quotav1.ConditionReady)
		return string(condition.Status) + " " + condition.Reason
	}
	b.clock.Step(troubledAfter - time.Millisecond)
	if wait := b.reconcile(t); wait != troubledEvery || ready() == "False LedgerUnavailable" {
		t.Errorf("after a moment: got %s, and a look after %s", ready(), wait)
	}
	b.clock.Step(time.Second)
	b.unreadable = true
	if wait := b.reconcile(t); wait != troubledEvery || ready() != "False LedgerUnavailable" {
		t.Errorf("after five seconds: got %s, and a look after %s", ready(), wait)
	}
}

func TestWritesOfAStatusAreCoalesced(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 1)
	if wait := b.reconcile(t); wait != 0 || b.writes != 1 {
		t.Fatalf("at first: got a wait of %s and %d writes, want none and 1", wait, b.writes)
	}
	b.counts(t, quota, 2)
	b.clock.Step(300 * time.Millisecond)
	if wait := b.reconcile(t); wait != 700*time.Millisecond || b.writes != 1 {
		t.Fatalf("soon after: got a wait of %s and %d writes, want 700ms and 1", wait, b.writes)
	}
	b.clock.Step(700 * time.Millisecond)
	if wait := b.reconcile(t); wait != 0 || b.writes != 2 {
		t.Fatalf("a second later: got a wait of %s and %d writes, want none and 2", wait, b.writes)
	}
	if got := b.status(t).Summary; got != "configmaps: 2/5" {
		t.Errorf("summary: got %s, want configmaps: 2/5", got)
	}
}

// A status of many namespaces takes the API server long to write.
func TestALargeStatusIsWrittenLessOften(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.others = 99
	write := func(what string, count int, wait time.Duration, writes int, summary string) {
		t.Helper()
		b.counts(t, quota, count)
		if got := b.reconcile(t); got != wait || b.writes != writes {
			t.Errorf("%s: got a wait of %s and %d writes, want %s and %d", what, got, b.writes, wait, writes)
		}
		if got := b.status(t).Summary; got != summary {
			t.Errorf("%s: got %s, want %s", what, got, summary)
		}
	}
	write("at first", 1, 0, 1, "configmaps: 1/5")
	b.clock.Step(time.Second)
	write("a second later", 2, time.Second, 1, "configmaps: 1/5")
	write("at once again", 3, time.Second, 1, "configmaps: 1/5")
	b.clock.Step(time.Second)
	write("when it is due", 3, 0, 2, "configmaps: 3/5")
	b.clock.Step(time.Second)
	write("nothing is left", 5, 0, 3, "configmaps: 5/5")
	b.clock.Step(time.Second)
	write("something is free again", 3, 0, 4, "configmaps: 3/5")
}

func TestAStatusThatStaysIsNotWritten(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 1)
	for range 3 {
		b.reconcile(t)
		b.clock.Step(5 * time.Second)
	}
	if b.writes != 1 {
		t.Errorf("got %d writes, want 1", b.writes)
	}
}

func TestAQuotaThatIsGone(t *testing.T) {
	if wait := newBench(t).reconcile(t); wait != 0 {
		t.Errorf("got a wait of %s, want none", wait)
	}
}

func TestAnInvalidQuotaSaysSo(t *testing.T) {
	b := newBench(t, team("configmaps", "-1"), registered())
	b.reconcile(t)
	status := b.status(t)
	want := &metav1.Condition{
		Type: quotav1.ConditionReady, Status: metav1.ConditionFalse, Reason: quotav1.ReasonInvalidSpec, ObservedGeneration: 2,
		Message: `quota team: spec.quota.hard[configmaps]: Invalid value: "-1": must be greater than or equal to 0: correct the spec`,
	}
	got := meta.FindStatusCondition(status.Conditions, quotav1.ConditionReady)
	got.LastTransitionTime = metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ready (-want,+got):\n%s", diff)
	}
	enforced := meta.FindStatusCondition(status.Conditions, quotav1.ConditionEnforced)
	if enforced.Status != metav1.ConditionFalse || !strings.HasPrefix(enforced.Message, "every request for what spec.quota.hard names is refused") {
		t.Errorf("got %+v, want that requests are refused", enforced)
	}
	if status.Summary != "configmaps: ?/-1" {
		t.Errorf("summary: got %s, want configmaps: ?/-1", status.Summary)
	}
}

func TestAWriteThatFails(t *testing.T) {
	failed := errors.New("the API server is down")
	quotas := schema.GroupResource{Group: "quota.sharedquota.dev", Resource: "clusterresourcequotas"}
	for name, test := range map[string]struct{ failure, want error }{
		"is tried again":                        {failure: failed, want: failed},
		"doesn't matter when the quota is gone": {failure: apierrors.NewNotFound(quotas, "team")},
	} {
		t.Run(name, func(t *testing.T) {
			quota := team("configmaps", "5")
			b := newBench(t, quota, registered())
			b.counts(t, quota, 1)
			b.failure = test.failure
			_, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "team"}})
			if !errors.Is(err, test.want) {
				t.Errorf("got the error %v, want %v", err, test.want)
			}
		})
	}
}

// A write without an answer would stop a worker for good.
func TestAWriteHasADeadline(t *testing.T) {
	quota := team("configmaps", "5")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 1)
	b.reconcile(t)
	if b.writes != 1 || b.left <= 0 || b.left > callTimeout {
		t.Errorf("%d writes, the last within %s, want one within %s", b.writes, b.left, callTimeout)
	}
}

// toldOf runs a reconcile a second later and returns its events, as reasons.
func (b *bench) toldOf(t *testing.T) string {
	t.Helper()
	b.clock.Step(time.Second)
	b.told = nil
	b.reconcile(t)
	reasons := make([]string, 0, len(b.told))
	for _, told := range b.told {
		reasons = append(reasons, strings.Fields(told)[2])
	}
	return strings.Join(reasons, " ")
}

func TestALevelIsToldOnceWhenItIsReached(t *testing.T) {
	quota := team("configmaps", "10")
	b := newBench(t, quota, registered())
	for i, step := range []struct {
		used int
		told string
	}{
		{used: 7}, {used: 8, told: "NearLimit:"}, {used: 9}, {used: 10, told: "LimitReached:"}, {used: 9}, {used: 10},
		{used: 11, told: "UsedAboveHard:"}, {used: 6}, {used: 10, told: "LimitReached:"}, {used: 0}, {used: 8, told: "NearLimit:"},
	} {
		b.counts(t, quota, step.used)
		if told := b.toldOf(t); told != step.told {
			t.Errorf("step %d, %d used: told %q, want %q", i, step.used, told, step.told)
		}
	}
	want := "team spec.quota.hard{configmaps} NearLimit: configmaps: used 8, hard 10; " +
		"delete unneeded objects, or raise spec.quota.hard, before requests are refused"
	if diff := cmp.Diff([]string{want}, b.told); diff != "" {
		t.Errorf("told (-want,+got):\n%s", diff)
	}
}

// Another leader has nothing counted at first, and the stored status to go by.
func TestALevelIsNotToldAgainByAnotherLeader(t *testing.T) {
	quota := team("configmaps", "10")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 10)
	if told := b.toldOf(t); told != "LimitReached:" {
		t.Fatalf("told %q", told)
	}
	current := &quotav1.ClusterResourceQuota{}
	if err := b.client.Get(t.Context(), client.ObjectKey{Name: "team"}, current); err != nil {
		t.Fatal(err)
	}
	next := newBench(t, current, registered())
	_ = next.toldOf(t)
	next.clock.Step(beginningFor)
	if told := next.toldOf(t); told != "" || next.status(t).Summary != "configmaps: ?/10" {
		t.Fatalf("before it has counted: told %q, summary %s", told, next.status(t).Summary)
	}
	next.counts(t, quota, 10)
	if told := next.toldOf(t); told != "" || next.status(t).Summary != "configmaps: 10/10" {
		t.Errorf("when it has counted: told %q, summary %s", told, next.status(t).Summary)
	}
}

// It costs the API server a write for each quota, and the next one says more.
func TestAnotherLeaderShowsThatItCountsOnlyAfterAWhile(t *testing.T) {
	quota := team("configmaps", "10")
	first := newBench(t, quota, registered())
	first.counts(t, quota, 3)
	first.reconcile(t)
	for name, test := range map[string]struct {
		change  func(*quotav1.ClusterResourceQuota)
		problem []Problem
		want    int
	}{
		"its spec is the same":         {change: func(*quotav1.ClusterResourceQuota) {}},
		"it has another spec":          {change: func(quota *quotav1.ClusterResourceQuota) { quota.Generation++ }, want: 1},
		"it never had a status":        {change: func(quota *quotav1.ClusterResourceQuota) { quota.Status.Conditions = nil }},
		"something can't be counted":   {change: func(*quotav1.ClusterResourceQuota) {}, problem: []Problem{{Reason: quotav1.ReasonNotServed}}, want: 1},
		"it began when it was created": {change: func(quota *quotav1.ClusterResourceQuota) { quota.Status.Conditions = nil; Begin(quota, moment) }},
	} {
		t.Run(name, func(t *testing.T) {
			current := &quotav1.ClusterResourceQuota{}
			if err := first.client.Get(t.Context(), client.ObjectKey{Name: "team"}, current); err != nil {
				t.Fatal(err)
			}
			test.change(current)
			b := newBench(t, current, registered())
			b.Problems = func(string) []Problem { return test.problem }
			if wait := b.reconcile(t); b.writes != test.want || test.want == 0 && wait != beginningFor {
				t.Errorf("got %d writes, want %d, and a look after %s", b.writes, test.want, wait)
			}
			b.clock.Step(beginningFor)
			b.reconcile(t)
			if ready := meta.FindStatusCondition(b.status(t).Conditions, quotav1.ConditionReady); b.writes == 0 || ready.Reason != quotav1.ReasonCounting {
				t.Errorf("after a while: got %d writes, and %+v", b.writes, ready)
			}
		})
	}
}

// Requests are refused until the quota is counted again.
func TestALaterCountIsShownAtOnce(t *testing.T) {
	quota := team("configmaps", "10")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 3)
	b.reconcile(t)
	state := b.Group.Current("team")
	state.Used = nil
	b.Group.Saw("team", machine.Snapshot{Version: machine.Version{ResourceVersion: 2}, State: state})
	b.clock.Step(time.Second)
	b.reconcile(t)
	if ready := meta.FindStatusCondition(b.status(t).Conditions, quotav1.ConditionReady); ready.Reason != quotav1.ReasonCounting {
		t.Errorf("got %+v", ready)
	}
}

// A tool that waits for the quota goes by Reconciling, and takes a quota without conditions for one that is in force.
func TestTheFirstStatusSaysThatCountingIsUnderWay(t *testing.T) {
	quota := team("configmaps", "10")
	quota.Generation = 3
	Begin(quota, moment)
	for _, kind := range []string{quotav1.ConditionReady, quotav1.ConditionReconciling} {
		condition := meta.FindStatusCondition(quota.Status.Conditions, kind)
		if condition == nil || condition.ObservedGeneration != 3 || (condition.Status == metav1.ConditionTrue) != (kind == quotav1.ConditionReconciling) {
			t.Errorf("got %s %+v", kind, condition)
		}
	}
	if quota.Status.ObservedGeneration != 3 {
		t.Errorf("got generation %d, want 3", quota.Status.ObservedGeneration)
	}
}

func TestALevelThatIsNotWrittenIsNotReported(t *testing.T) {
	quota := team("configmaps", "10")
	b := newBench(t, quota, registered())
	b.counts(t, quota, 10)
	b.failure = apierrors.NewConflict(schema.GroupResource{}, "team", errors.New("newer"))
	if told := b.toldOf(t); told != "" {
		t.Errorf("after a conflict: told %q", told)
	}
	b.failure = nil
	if told := b.toldOf(t); told != "LimitReached:" {
		t.Errorf("told %q", told)
	}
}
