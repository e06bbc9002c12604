// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
	"github.com/sharedquota/shared-quota-operator/internal/report"
	"github.com/sharedquota/shared-quota-operator/internal/waiting"
)

// namedWaiting is how many of the workloads that wait a view names.
const namedWaiting = 20

// waitingOwners says how many workloads wait, and since when the first of them does; nil if none does.
func waitingOwners(owners int, since time.Time) *quotav1.WaitingOwners {
	if owners == 0 {
		return nil
	}
	return &quotav1.WaitingOwners{Owners: int32(owners), Since: seconds(since)} //nolint:gosec // a few thousand for each replica
}

// seconds is a time as the API server stores it.
func seconds(at time.Time) metav1.Time { return metav1.NewTime(at.Truncate(time.Second)) }

// byNamespace sorts records by namespace and keeps their order.
func byNamespace(records []waiting.Record) map[string][]waiting.Record {
	all := map[string][]waiting.Record{}
	for i := range records {
		all[records[i].Namespace] = append(all[records[i].Namespace], records[i])
	}
	return all
}

// waitingIn returns the waiting owners of a view's namespace and their conditions; woken says whether they are woken.
// Nothing in it changes while they wait, except their number, and now and then their shortage.
func waitingIn(records []waiting.Record, woken bool) ([]quotav1.WaitingOwner, []metav1.Condition) {
	if len(records) == 0 {
		return nil, []metav1.Condition{typed(quotav1.ConditionBlocked, decided(
			metav1.ConditionFalse, quotav1.ReasonNoneWaiting, outcomes.NoneWait.Text()))}
	}
	named := make([]quotav1.WaitingOwner, 0, min(len(records), namedWaiting))
	for i := range records[:min(len(records), namedWaiting)] {
		named = append(named, quotav1.WaitingOwner{
			Kind: string(records[i].Kind), Name: records[i].Name, Since: seconds(records[i].Since), Short: records[i].Short,
		})
	}
	return named, []metav1.Condition{typed(quotav1.ConditionBlocked, decided(
		metav1.ConditionTrue, quotav1.ReasonWaitingForRoom, blockedMessage(named[0], len(records), woken)))}
}

// blockedMessage says how many workloads wait, since when, the shortage of the first of them, and the advice.
func blockedMessage(first quotav1.WaitingOwner, number int, woken bool) string {
	wait, then := outcomes.OneWaits.Text(), quotav1.WokenWhenItFits
	if number > 1 {
		wait = outcomes.SomeWait.Text(number)
	}
	if !woken {
		then = outcomes.TriedAgain.Text()
	}
	since, short := first.Since.UTC().Format(time.RFC3339), report.Amounts(first.Short)
	return outcomes.WaitForRoom.Text(wait, since, first.Kind, first.Name, short, then)
}

// since returns the conditions that a view gets, with the times of the present ones. A condition that no workload
// waits is set only after one has waited.
func since(current *quotav1.LocalResourceQuota, wanted []metav1.Condition, now time.Time) []metav1.Condition {
	var conditions []metav1.Condition
	if current != nil {
		conditions = slices.Clone(current.Status.Conditions)
	}
	for _, condition := range wanted {
		if condition.Status != metav1.ConditionTrue && meta.FindStatusCondition(conditions, condition.Type) == nil {
			continue
		}
		condition.LastTransitionTime = seconds(now)
		meta.SetStatusCondition(&conditions, condition)
	}
	return conditions
}

// isBlocked reports whether a view says that workloads wait.
func isBlocked(status quotav1.LocalResourceQuotaStatus) bool {
	return meta.IsStatusConditionTrue(status.Conditions, quotav1.ConditionBlocked)
}
