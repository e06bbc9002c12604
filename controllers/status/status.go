// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/definition"
	"github.com/sharedquota/shared-quota-operator/internal/driver"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// facts are the facts that a status is made of, gathered at one moment.
type facts struct { //nolint:recvcheck // only limitNothing changes them, while they are gathered
	now time.Time
	// generation of the spec that the status describes.
	generation int64
	// invalid is why the spec can't be enforced; nil when it can.
	invalid error
	// refusing: requests that an invalid spec limits are refused.
	refusing bool
	selector string
	// countedGeneration is the generation that slices were counted for; zero for
	// nothing yet.
	countedGeneration int64
	slices            map[string]corev1.ResourceList
	// uncounted are the resources whose first count is under way.
	uncounted []corev1.ResourceName
	// total is the sum of the slices, beside the limits.
	total corev1.ResourceQuotaStatus
	// idle are the names that limit nothing, and misnamed the ones among them that an administrator must correct.
	idle     []corev1.ResourceName
	misnamed []evaluation.Misnomer
	problems []Problem
	ledger   ledger.State
	// reserved is the ledger's amount for objects that aren't in slices.
	reserved corev1.ResourceList
	surge    surge
	// doubtful is the part of it for requests that seem to have failed. namespace
	// name -> doubts
	doubtful map[string]ledger.Doubts
	// named is the UID of the ledger that requests are admitted by.
	named types.UID
	// trouble is that the ledger can't be read or written, or does not take the count; nil if it does, or if it
	// has been so for a moment only.
	trouble *driver.Trouble
	// sealedUntil is until when nothing is granted, because the ledger by which requests were admitted before was
	// lost; zero if it wasn't.
	sealedUntil time.Time
	// verdict is how far the webhook is known to be called for the quota's
	// limits.
	verdict webhookconfig.Verdict
	// before is the condition Enforced that the status has; nil for none.
	before *metav1.Condition
	// protected are the selected namespaces that are never limited, sorted.
	protected []string
	// waiting is how many workloads wait for room; nil if none does.
	waiting *quotav1.WaitingOwners
	// enforcement is the response to requests that don't fit, and admits whether requests are admitted while they can't
	// be decided.
	enforcement definition.Enforcement
	admits      bool
	// remembered is the content of the last status in which everything was
	// counted.
	remembered remembered
}

// Begin makes a status that names the first ledger of a valid quota say that counting is under way.
func Begin(quota *quotav1.ClusterResourceQuota, now time.Time) {
	begun := facts{now: now, generation: quota.Generation, enforcement: definition.EnforcementOf(quota.Spec)}
	ready := typed(quotav1.ConditionReady, begun.ready())
	quota.Status.ObservedGeneration = quota.Generation
	for _, condition := range []metav1.Condition{ready, *begun.progress([]metav1.Condition{ready})} {
		condition.ObservedGeneration, condition.LastTransitionTime = quota.Generation, metav1.NewTime(now)
		meta.SetStatusCondition(&quota.Status.Conditions, condition)
	}
}

// status returns the whole status. Conditions keep their transition times.
func (f facts) status(object *quotav1.ClusterResourceQuota) quotav1.ClusterResourceQuotaStatus {
	hard := object.Spec.Quota.Hard
	status := quotav1.ClusterResourceQuotaStatus{
		ObservedGeneration: object.Generation,
		Ledger:             f.named,
		Reserved:           quota.Mask(f.reserved, quota.ResourceNames(hard)),
		Waiting:            f.waiting,
		Selector:           shortened(f.selector),
		NamespaceCount:     int32(len(f.slices)), //nolint:gosec // no cluster has 2^31 namespaces
		Conditions:         slices.Clone(object.Status.Conditions),
	}
	status.Peaks = f.remembered.peaks.stored(f.now, f.remembered.surged)
	status.Total.Hard = hard
	status.Total.Used = corev1.ResourceList{}
	if f.countedGeneration == f.generation {
		status.Total.Used = f.counted(quota.Subtract(hard, hard))
	}
	for _, namespace := range slices.Sorted(maps.Keys(f.slices)) {
		used := f.counted(quota.Mask(f.slices[namespace], quota.ResourceNames(hard)))
		status.Total.Used = quota.Add(status.Total.Used, used)
		status.Namespaces = append(status.Namespaces, quotav1.ResourceQuotaStatusByNamespace{
			Namespace: namespace,
			Status:    corev1.ResourceQuotaStatus{Hard: hard, Used: used},
		})
	}
	status.Namespaces = fit(status.Namespaces, roomBeside(object.Spec.Selector))
	for _, namespace := range slices.Sorted(maps.Keys(f.doubtful)) {
		doubts := f.doubtful[namespace]
		status.Doubtful = append(status.Doubtful, quotav1.DoubtfulReservations{
			Namespace: namespace, Count: int32(doubts.Number), Amounts: doubts.Amounts, //nolint:gosec // no ledger holds 2^31
		})
	}
	status.Summary = report.Summary(status.Total.Used, hard)
	f.surge = surgeOf(object.Spec, f.ledger, status.Total.Used, status.Reserved)
	status.Surge = f.surge.status
	status.Levels = report.Levels(object.Status.Levels, f.surge.ordinary(status.Total.Used, hard), hard)
	f.total = status.Total
	conditions := f.conditions()
	for _, kind := range []string{quotav1.ConditionReconciling, quotav1.ConditionStalled} {
		if !slices.ContainsFunc(conditions, func(condition metav1.Condition) bool { return condition.Type == kind }) {
			meta.RemoveStatusCondition(&status.Conditions, kind)
		}
	}
	for _, condition := range conditions {
		condition.ObservedGeneration = object.Generation
		condition.LastTransitionTime = metav1.NewTime(f.now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// counted leaves out resources that have not been counted: zero would be a claim.
func (f facts) counted(used corev1.ResourceList) corev1.ResourceList {
	result := maps.Clone(used)
	maps.DeleteFunc(result, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return slices.Contains(f.uncounted, name) || f.isIdle(name)
	})
	return result
}
