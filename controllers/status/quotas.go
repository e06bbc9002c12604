// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/machine"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas/status,verbs=patch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=quotaledgers,verbs=get;list;watch

// Problem is the obstacle to counting a resource.
type Problem struct {
	Resource        schema.GroupResource
	Reason, Message string
}

// Problems returns the problems of the resources that a quota limits.
type Problems func(quota string) []Problem

// callTimeout bounds one call of the API server.
const callTimeout = 10 * time.Second

const (
	// troubledAfter is for how long a ledger is in trouble before the quota isn't
	// ready. A request is tried for three seconds.
	troubledAfter = 5 * time.Second
	// troubledEvery is how often it is looked at meanwhile.
	troubledEvery = time.Second
)

// idleEvery is how often the corrections of names that limit nothing are looked
// up.
const idleEvery = time.Minute

// beginningFor is for how long a leader doesn't write its first status of a quota for nothing but that a count is under way, or
// that the webhook isn't called yet.
// Each write costs the API server five milliseconds, of which a leader that begins with 1,000 quotas has too few.
const beginningFor = 10 * time.Second

const (
	// sliceCost is how long the API server works on the part of a status for one namespace,
	// each time that the status is written. It was measured.
	sliceCost = 200 * time.Microsecond
	// maxShare is which part of the time the API server works on one quota's status at most:
	// one part of so many.
	maxShare = 100
)

// Parts are the dependencies of the status, the views and the figures in metrics.
type Parts struct {
	Clock clock.WithTickerAndDelayedExecution
	// Client must read from a cache.
	Client     client.Client
	Ledgers    Ledgers
	Evaluators *evaluation.Evaluators
	// Define returns the definition of a quota.
	Define   func(*quotav1.ClusterResourceQuota) definition.Definition
	Count    *counting.Count
	Group    *driver.Group
	Problems Problems
	// Served returns the resources that the cluster serves in namespaces, as far
	// as they are known.
	Served   func(context.Context) []schema.GroupResource
	Settings func() webhookconfig.Settings
	Proofs   *webhookconfig.Proofs
	// Waiting are the workloads that wait for room, and WakeOwners says whether they are woken.
	Waiting    *waiting.List
	WakeOwners bool
	// StatusChanged and ViewsChanged must be fired with every quota whose count, ledger or waiting workloads change, and
	// StatusChanged with those of which the proofs conclude something else.
	StatusChanged, ViewsChanged source.Source
	StatusLag, ViewsLag         *Lag
	Recorder                    report.Recorder
	// Namespaces: the figures include the use of each namespace.
	Namespaces bool
	// Life of a reservation.
	Life time.Duration
	// Every is the least time between two writes of one quota's status, or two rounds of writes of its views.
	Every time.Duration
}

// QuotaController writes statuses.
type QuotaController struct {
	Parts

	// pace is when a status is made again, whole when it is written again if nothing presses, and peaked when it is
	// written again for nothing but its peaks.
	pace, whole, peaked *Pace
	// begun is for how long a status that says only that counting is under way has been put off.
	begun  *Pace
	memory memory
}

// NewQuotaController makes the controller.
func NewQuotaController(parts Parts) *QuotaController {
	return &QuotaController{
		Parts: parts, pace: NewPace(parts.Clock), whole: NewPace(parts.Clock), peaked: NewPace(parts.Clock),
		begun: NewPace(parts.Clock),
	}
}

// Name returns the controller's name.
func (*QuotaController) Name() string { return "quotastatus" }

// Register adds the controller to the manager.
func (c *QuotaController) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.ClusterResourceQuota{}).
		WatchesRawSource(c.StatusChanged).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

// Reconcile writes one quota's status. If it was written a moment ago, Reconcile only looks at the used and reserved
// amounts.
func (c *QuotaController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	quota := &quotav1.ClusterResourceQuota{}
	err := c.Client.Get(ctx, request.NamespacedName, quota)
	if apierrors.IsNotFound(err) {
		c.forget(request.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", request.Name, err)
	}
	if wait := c.pace.Left(request.Name); wait > 0 {
		c.look(quota, c.Group.Current(quota.Name))
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	facts, err := c.gather(ctx, quota)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := facts.status(quota)
	if again := c.tooSoon(quota, status, facts); again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if wait := c.whole.Left(request.Name); wait > 0 && !presses(quota.Status, status) {
		c.pace.Rest(request.Name, min(c.Every, wait))
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	again := c.again(quota.Name, facts)
	if onlyPeaks(quota.Status, status) {
		if wait := c.peaked.Left(request.Name); wait > 0 {
			c.StatusLag.Shown(request.Name, facts.now) // the status has the newest use
			return reconcile.Result{RequeueAfter: min(wait, again)}, nil
		}
		c.peaked.Rest(request.Name, peaksEvery)
	}
	written, err := c.write(ctx, quota, status, facts.sealedUntil)
	if written {
		c.StatusLag.Shown(request.Name, facts.now)
		c.memory.wrote(quota, &status, facts.now)
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// tooSoon returns how soon to make a status again, because it says more then; zero to write it.
func (c *QuotaController) tooSoon(
	quota *quotav1.ClusterResourceQuota, status quotav1.ClusterResourceQuotaStatus, facts facts,
) time.Duration {
	torn := counting.Torn(definition.EnforcedLimits(quota.Spec).Most(), status.Total.Used, status.Reserved)
	if again := c.pace.LookAgain(quota.Name, torn); again > 0 {
		return again
	}
	premature := !c.StatusLag.WasShown(quota.Name) && onlyBegins(quota, status, facts)
	return c.begun.Postpone(quota.Name, premature, beginningFor, beginningFor)
}

// again returns after which time the status is looked at again without an event.
func (c *QuotaController) again(quota string, facts facts) time.Duration {
	switch {
	case c.Group.Trouble(quota) != nil:
		return troubledEvery
	case len(facts.idle) > 0:
		return idleEvery
	default:
		return tomorrow(facts.now).Sub(facts.now)
	}
}

// look reads the figures, and remembers their peaks.
func (c *QuotaController) look(quota *quotav1.ClusterResourceQuota, known ledger.State) counting.Balance {
	figures := counting.BalanceOf(c.Count, quota.Name, quota.UID, known)
	held := heldIn(quota.Spec, figures)
	surge := surgeOf(quota.Spec, known, held, nil)
	c.memory.saw(quota, surge.ordinary(held, quota.Spec.Quota.Hard), surge.taken(), c.Clock.Now())
	return figures
}

func (c *QuotaController) forget(quota string) {
	c.pace.Forget(quota)
	c.whole.Forget(quota)
	c.peaked.Forget(quota)
	c.begun.Forget(quota)
	c.StatusLag.Forget(quota)
	c.memory.forget(quota)
}

// gather takes all that a status is made of.
func (c *QuotaController) gather(ctx context.Context, quota *quotav1.ClusterResourceQuota) (facts, error) {
	gathered := facts{now: c.Clock.Now(), generation: quota.Generation, problems: c.Problems(quota.Name)}
	gathered.verdict = c.Proofs.Of(quota.Name, quota.UID, quota.Generation, gathered.now)
	gathered.before = meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionEnforced)
	tracked, unlimitable := c.Evaluators.Resources(quota.Spec.Quota.Hard)
	defined := c.Define(quota)
	if gathered.invalid = defined.Invalid; defined.Invalid == nil {
		gathered.selector = defined.Selector.String()
	} else {
		gathered.refusing = len(tracked) > 0 && defined.Selector.String() != ""
	}
	settings := c.Settings()
	gathered.enforcement, gathered.admits = defined.Enforcement, defined.Enforcement.AdmitsUnavailable(settings.AdmitsByDefault())
	gathered.waiting = waitingOwners(c.Waiting.Summary(quota.Name))
	known := c.Group.Known(quota.Name)
	gathered.ledger, gathered.sealedUntil = known.State, c.sealedUntil(quota, known)
	gathered.trouble = c.trouble(quota.Name, gathered.now)
	var err error
	if gathered.named, err = c.named(ctx, quota, gathered.ledger); err != nil && gathered.trouble == nil {
		return facts{}, err // otherwise the name stays, and the condition Ready reports the trouble
	}
	figures := c.look(quota, gathered.ledger)
	gathered = gathered.with(figures)
	if figures.Target.UID == quota.UID && figures.Target.Digest == defined.Limits.Digest {
		gathered.countedGeneration = quota.Generation // another limit or mode is no reason to count again
	}
	gathered.limitNothing(tracked, unlimitable, func(name corev1.ResourceName) string {
		return c.Evaluators.Correction(name, c.Served(ctx))
	})
	gathered.remembered = c.memory.of(quota)
	for _, name := range slices.Sorted(slices.Values(settings.Protected)) {
		if _, selected := gathered.slices[name]; selected {
			gathered.protected = append(gathered.protected, name)
		}
	}
	return gathered, nil
}

// with returns the facts with the figures.
func (f facts) with(figures counting.Balance) facts {
	f.countedGeneration, f.slices = figures.Target.Generation, figures.Slices
	f.reserved, f.doubtful = figures.Reserved, figures.Doubtful
	f.uncounted = figures.Uncounted(f.ledger)
	return f
}

// trouble returns that the quota's ledger can't be read or written, or does not take the count, unless that has only
// been so for a moment.
func (c *QuotaController) trouble(quota string, now time.Time) *driver.Trouble {
	if trouble := c.Group.Trouble(quota); trouble != nil && now.Sub(trouble.Since) >= troubledAfter {
		return trouble
	}
	return c.Group.Untaken(quota)
}

// sealedUntil returns until when nothing is granted because requests have been admitted by another ledger before this
// one; zero if they haven't.
func (c *QuotaController) sealedUntil(quota *quotav1.ClusterResourceQuota, known machine.Snapshot) time.Time {
	if known.State.Sealed.IsZero() || quota.Status.Ledger == "" || quota.Status.Ledger == known.Version.UID {
		return time.Time{}
	}
	return known.State.Sealed.Add(c.Life + time.Second) // it is in whole seconds
}

// write makes the stored status this one, and reports whether it is.
func (c *QuotaController) write(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, status quotav1.ClusterResourceQuotaStatus, sealedUntil time.Time,
) (written bool, err error) {
	if apiequality.Semantic.DeepEqual(quota.Status, status) {
		return true, nil
	}
	changed := *quota // it has maps of the cache's and of others': no answer may be decoded into it
	changed.Status = status
	// A patch leaves alone status fields of a newer operator's CRD, which this
	// one doesn't know.
	patch, err := client.MergeFromWithOptions(quota, client.MergeFromWithOptimisticLock{}).Data(&changed)
	if err != nil {
		return false, fmt.Errorf("encoding the status of quota %s: %w", quota.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.Client.Status().Patch(ctx, metadataOf(quota.Name), client.RawPatch(types.MergePatchType, patch)); err != nil {
		// After a conflict the newer version asks for another reconcile.
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return false, nil
		}
		return false, fmt.Errorf("writing the status of quota %s: %w", quota.Name, err)
	}
	c.pace.Rest(quota.Name, c.Every)
	c.whole.Rest(quota.Name, max(c.Every, maxShare*sliceCost*time.Duration(len(status.Namespaces))))
	c.tell(&changed, quota.Status, sealedUntil)
	return true, nil
}

// metadataOf has the API server answer a write with metadata only: a status has a part for each namespace.
func metadataOf(quota string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: quotav1.GroupVersion.String(), Kind: "ClusterResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Name: quota},
	}
}

// tell reports the levels that the status that was just written has, and the one before it had not, and that requests
// were admitted while they couldn't be decided, or that the ledger was lost. Nothing else reports them.
func (c *QuotaController) tell(
	quota *quotav1.ClusterResourceQuota, before quotav1.ClusterResourceQuotaStatus, sealedUntil time.Time,
) {
	for _, name := range report.Risen(before.Levels, quota.Status.Levels) {
		report.LevelReached(quota, report.UseOf(name, quota.Status.Levels[name], quota.Status.Total)).Record(c.Recorder)
	}
	exceeded := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionExceeded)
	previous := meta.FindStatusCondition(before.Conditions, quotav1.ConditionExceeded)
	if exceeded.Reason == quotav1.ReasonAdmittedWhileUnavailable && (previous == nil || previous.Reason != exceeded.Reason) {
		report.AdmittedUnchecked(quota, exceeded.Message).Record(c.Recorder)
	}
	ready := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionReady)
	previous = meta.FindStatusCondition(before.Conditions, quotav1.ConditionReady)
	if ready.Reason == quotav1.ReasonLedgerLost && (previous == nil || previous.Message != ready.Message) {
		report.LedgerLost(quota, sealedUntil, ready.Message).Record(c.Recorder)
	}
}

// onlyBegins reports whether a status would say nothing but that counting is under way, or that the webhook is about to be
// called, and the stored one is about the same spec, as Begin or another leader made it, or Begin is about to make it.
func onlyBegins(quota *quotav1.ClusterResourceQuota, current quotav1.ClusterResourceQuotaStatus, facts facts) bool {
	before := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionReady)
	isBegun := before == nil || before.ObservedGeneration == quota.Generation
	return isBegun && len(facts.problems) == 0 &&
		(reasonOf(current, quotav1.ConditionReady) == quotav1.ReasonCounting ||
			reasonOf(current, quotav1.ConditionEnforced) == quotav1.ReasonWebhookPending)
}

func reasonOf(status quotav1.ClusterResourceQuotaStatus, condition string) string {
	return meta.FindStatusCondition(status.Conditions, condition).Reason
}

// presses reports whether people wait for a change of a status: that something
// has just run out or come free, that workloads wait or none does any more,
// another condition, or another spec.
func presses(before, current quotav1.ClusterResourceQuotaStatus) bool {
	return (before.Waiting == nil) != (current.Waiting == nil) ||
		!maps.Equal(before.Levels, current.Levels) || !maps.Equal(exhausted(before), exhausted(current)) ||
		!slices.EqualFunc(before.Conditions, current.Conditions, func(a, b metav1.Condition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.ObservedGeneration == b.ObservedGeneration
		})
}

// exhausted are the resources of which nothing is left.
func exhausted(status quotav1.ClusterResourceQuotaStatus) map[corev1.ResourceName]bool {
	exhausted := map[corev1.ResourceName]bool{}
	for name, hard := range status.Total.Hard {
		left := hard.DeepCopy()
		left.Sub(status.Total.Used[name])
		left.Sub(status.Reserved[name])
		if left.Sign() <= 0 {
			exhausted[name] = true
		}
	}
	return exhausted
}
