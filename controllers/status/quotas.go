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
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/controllers/trigger"
	"github.com/sharedquota/shared-quota-operator/internal/balance"
	"github.com/sharedquota/shared-quota-operator/internal/counting"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=clusterresourcequotas/status,verbs=patch
// +kubebuilder:rbac:groups=quota.sharedquota.dev,resources=quotaledgers,verbs=get;list;watch

// Problem is what keeps a resource from being counted.
type Problem struct{ Reason, Message string }

// Problems tells what can't be counted of what a quota limits.
type Problems func(quota string) []Problem

// callTimeout bounds one call of the API server.
const callTimeout = 10 * time.Second

const (
	// troubledAfter is for how long a ledger can't be read or written before the quota isn't
	// ready. A request is tried for three seconds.
	troubledAfter = 5 * time.Second
	// troubledEvery is how often it is looked at meanwhile.
	troubledEvery = time.Second
)

const (
	// sliceCost is how long the API server works on the part of a status for one namespace,
	// each time that the status is written. It was measured.
	sliceCost = 250 * time.Microsecond
	// maxShare is which part of the time the API server works on one quota's status at most:
	// one part of so many.
	maxShare = 100
)

// QuotaParts are what a QuotaController works with.
type QuotaParts struct {
	Clock      clock.Clock
	Client     client.Client
	Ledgers    Ledgers
	Evaluators *evaluation.Evaluators
	// Define returns the definition of a quota.
	Define   func(*quotav1.ClusterResourceQuota) definition.Definition
	Count    *counting.Count
	Group    *driver.Group
	Problems Problems
	Settings func() reach.Settings
	Proofs   *reach.Proofs
	// Waiting are the workloads that wait for room.
	Waiting *waiting.List
	History History
	// Changed must be fired with every quota whose count, ledger, history or waiting workloads change, and of which the
	// proofs conclude something else.
	Changed  *trigger.Trigger
	Lag      *Lag
	Recorder report.Recorder
	// Every is the least time between two writes of one quota's status.
	Every time.Duration
}

// QuotaController writes statuses.
type QuotaController struct {
	QuotaParts

	// pace is when a status is made again, whole when it is written again if nothing
	// presses, and seldom when it is written again for nothing but its history.
	pace, whole, seldom *Pace
	memory              memory
}

// NewQuotaController makes the controller.
func NewQuotaController(parts QuotaParts) *QuotaController {
	return &QuotaController{
		QuotaParts: parts, pace: NewPace(parts.Clock), whole: NewPace(parts.Clock), seldom: NewPace(parts.Clock),
	}
}

// Name returns the controller's name.
func (*QuotaController) Name() string { return "quotastatus" }

// Register adds the controller to the manager.
func (c *QuotaController) Register(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(c.Name()).
		For(&quotav1.ClusterResourceQuota{}).
		WatchesRawSource(c.Changed.Source()).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(c)
}

// Reconcile writes one quota's status, unless it was written a moment ago.
func (c *QuotaController) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if wait := c.pace.Left(request.Name); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	quota := &quotav1.ClusterResourceQuota{}
	err := c.Client.Get(ctx, request.NamespacedName, quota)
	if apierrors.IsNotFound(err) {
		c.forget(request.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading quota %s: %w", request.Name, err)
	}
	facts, err := c.gather(ctx, quota)
	if err != nil {
		return reconcile.Result{}, err
	}
	status := facts.status(quota)
	torn := balance.Torn(definition.Enforced(quota.Spec), status.Total.Used, status.Reserved)
	if again := c.pace.LookAgain(request.Name, torn); again > 0 {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	if wait := c.whole.Left(request.Name); wait > 0 && !presses(quota.Status, status) {
		c.pace.Rest(request.Name, min(c.Every, wait))
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	if wait := c.seldom.Left(request.Name); wait > 0 && onlyRemembers(quota.Status, status) {
		if !apiequality.Semantic.DeepEqual(quota.Status, status) {
			c.Lag.Shown(request.Name, facts.now) // a history isn't late
			return reconcile.Result{RequeueAfter: c.again(request.Name, wait)}, nil
		}
	}
	written, err := c.write(ctx, quota, status)
	if written {
		c.Lag.Shown(request.Name, facts.now)
		c.memory.wrote(quota, &status, facts.now)
	}
	return reconcile.Result{RequeueAfter: c.again(request.Name, 0)}, err
}

func (c *QuotaController) forget(quota string) {
	for _, pace := range []*Pace{c.pace, c.whole, c.seldom} {
		pace.Forget(quota)
	}
	c.Lag.Forget(quota)
	c.History.Recorder.Forget(quota, c.memory.forget(quota))
}

// again returns when the quota is looked at next, because the calls of its ledger fail, or the history of others isn't
// known yet; otherwise it returns the wait that it is given.
func (c *QuotaController) again(quota string, wait time.Duration) time.Duration {
	if c.Group.Trouble(quota) == nil && c.History.Synced() {
		return wait
	}
	return troubledEvery
}

// gather takes all that a status is made of.
func (c *QuotaController) gather(ctx context.Context, quota *quotav1.ClusterResourceQuota) (facts, error) {
	gathered := facts{now: c.Clock.Now(), generation: quota.Generation, problems: c.Problems(quota.Name)}
	gathered.verdict = c.Proofs.Of(quota.Name, quota.UID, quota.Generation, gathered.now)
	gathered.before = meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionEnforced)
	tracked, unlimitable := c.Evaluators.Resources(definition.Counted(quota.Spec))
	gathered.unlimitable = unlimitable
	defined := c.Define(quota)
	if gathered.invalid = defined.Invalid; defined.Invalid == nil {
		gathered.selector = defined.Selector.String()
	} else {
		gathered.refusing = len(tracked) > 0 && defined.Selector.String() != ""
	}
	settings := c.Settings()
	gathered.enforcement, gathered.admits = defined.Enforcement, defined.Enforcement.AdmitsUnavailable(settings.AdmitsByDefault())
	gathered.remembered = c.memory.of(quota)
	gathered.past = c.History.of(quota, gathered.now)
	gathered.waiting = waitingOwners(c.Waiting.Summary(quota.Name))
	gathered.ledger = c.Group.Current(quota.Name)
	gathered.trouble = c.trouble(quota.Name, gathered.now)
	var err error
	if gathered.lost, err = c.lost(ctx, quota, gathered.ledger); err != nil {
		return facts{}, err
	}
	if gathered.named, err = c.named(ctx, quota, gathered.ledger); err != nil && gathered.trouble == nil {
		return facts{}, err // otherwise the name stays, and the condition Ready tells of the trouble
	}
	figures := balance.Read(c.Count, quota.Name, quota.UID, gathered.ledger)
	gathered.countedGeneration, gathered.slices = figures.Target.Generation, figures.Slices
	gathered.reserved, gathered.doubtful = figures.Reserved, figures.Doubtful
	for name := range figures.Target.Sources {
		if !slices.Contains(figures.Complete, name) || !settled(gathered.ledger, figures.Target, name) {
			gathered.uncounted = append(gathered.uncounted, name)
		}
	}
	for _, name := range slices.Sorted(slices.Values(settings.Protected)) {
		if _, selected := gathered.slices[name]; selected {
			gathered.protected = append(gathered.protected, name)
		}
	}
	return gathered, nil
}

// trouble returns that the quota's ledger can't be read or written, unless that has only
// been so for a moment.
func (c *QuotaController) trouble(quota string, now time.Time) *driver.Trouble {
	if trouble := c.Group.Trouble(quota); trouble != nil && now.Sub(trouble.Since) >= troubledAfter {
		return trouble
	}
	return nil
}

// lost reports whether requests have been admitted by another ledger before this one.
func (c *QuotaController) lost(ctx context.Context, quota *quotav1.ClusterResourceQuota, state ledger.State) (bool, error) {
	if state.Sealed.IsZero() || quota.Status.Ledger == "" {
		return false, nil
	}
	sealed, err := c.read(ctx, c.Client, quota.Name)
	return err == nil && (sealed == nil || sealed.UID != quota.Status.Ledger), err
}

// settled reports whether the ledger has the count of a resource. Admission goes
// by the ledger: before that, nothing is ready.
func settled(state ledger.State, counted counting.Target, name corev1.ResourceName) bool {
	_, known := state.Used[name]
	return known && state.Sealed.IsZero() && state.Quota == counted.UID && state.Digest == counted.Digest
}

// write makes the stored status this one, and reports whether it is.
func (c *QuotaController) write(
	ctx context.Context, quota *quotav1.ClusterResourceQuota, status quotav1.ClusterResourceQuotaStatus,
) (written bool, err error) {
	if apiequality.Semantic.DeepEqual(quota.Status, status) {
		return true, nil
	}
	changed := quota.DeepCopy()
	changed.Status = *status.DeepCopy() // its parts are others' too
	// A patch leaves alone what a newer operator's CRD has in a status, and this one
	// doesn't know.
	patch := client.MergeFromWithOptions(quota, client.MergeFromWithOptimisticLock{})
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.Client.Status().Patch(ctx, changed, patch); err != nil {
		// After a conflict the newer version asks for another reconcile.
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return false, nil
		}
		return false, fmt.Errorf("writing the status of quota %s: %w", quota.Name, err)
	}
	c.pace.Rest(quota.Name, c.Every)
	c.whole.Rest(quota.Name, max(c.Every, maxShare*sliceCost*time.Duration(len(status.Namespaces))))
	c.seldom.Rest(quota.Name, historyEvery)
	c.tell(changed, quota.Status)
	return true, nil
}

// tell tells of the levels and the changes that the status that was just written has, and the one
// before it had not, and that requests were admitted while nobody could decide. What was
// written is told by nobody else.
func (c *QuotaController) tell(quota *quotav1.ClusterResourceQuota, before quotav1.ClusterResourceQuotaStatus) {
	for _, name := range report.Risen(before.Levels, quota.Status.Levels) {
		report.LevelReached(quota, report.UseOf(name, quota.Status.Levels[name], quota.Status.Total)).Record(c.Recorder)
	}
	for _, change := range slices.Backward(quota.Status.Changes) { // the oldest first
		told := func(other quotav1.SpecChange) bool { return apiequality.Semantic.DeepEqual(other, change) }
		if !slices.ContainsFunc(before.Changes, told) {
			report.Changed(quota, change).Record(c.Recorder)
		}
	}
	exceeded := meta.FindStatusCondition(quota.Status.Conditions, quotav1.ConditionExceeded)
	previous := meta.FindStatusCondition(before.Conditions, quotav1.ConditionExceeded)
	if exceeded.Reason == quotav1.ReasonAdmittedWhileUnavailable && (previous == nil || previous.Reason != exceeded.Reason) {
		report.AdmittedUnchecked(quota, exceeded.Message).Record(c.Recorder)
	}
}

// presses reports whether people wait for what a status says and the one before it doesn't:
// that something has just run out or come free, that somebody changed the spec, that workloads wait or none does any more,
// another condition, or another spec.
func presses(before, current quotav1.ClusterResourceQuotaStatus) bool {
	return (before.Waiting == nil) != (current.Waiting == nil) ||
		!apiequality.Semantic.DeepEqual(before.Changes, current.Changes) ||
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
