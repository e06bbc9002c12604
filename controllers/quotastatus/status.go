/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package quotastatus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/reach"
	"github.com/sharedquota/shared-quota-operator/internal/report"
)

// facts are what a status is made of, gathered at one moment.
type facts struct {
	now time.Time
	// generation of the spec that the status describes.
	generation int64
	// invalid is why the spec can't be enforced; nil when it can.
	invalid  error
	selector string
	// countedGeneration is what slices were counted for; zero for nothing yet.
	countedGeneration int64
	slices            map[string]corev1.ResourceList
	// uncounted are the resources whose first count is under way.
	uncounted   []corev1.ResourceName
	unlimitable []corev1.ResourceName
	problems    []Problem
	ledger      ledger.State
	// lost: the ledger is another one than requests were admitted by before.
	lost bool
	// coverage is how far the webhook is called for what the quota limits.
	coverage reach.Coverage
	// protected are the selected namespaces that are never limited, sorted.
	protected []string
	// ignoring: while no operator answers, requests are admitted.
	ignoring bool
}

// status returns the whole status. Conditions keep their transition times.
func (f facts) status(object *quotav1.ClusterResourceQuota) quotav1.ClusterResourceQuotaStatus {
	hard := object.Spec.Quota.Hard
	status := quotav1.ClusterResourceQuotaStatus{
		ObservedGeneration: object.Generation,
		Ledger:             object.Status.Ledger,
		Selector:           f.selector,
		NamespaceCount:     int32(len(f.slices)), //nolint:gosec // no cluster has 2^31 namespaces
		Conditions:         slices.Clone(object.Status.Conditions),
	}
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
	if f.ledger.Quota == object.UID {
		status.Reserved = f.ledger.Reserved()
	}
	status.Summary = report.Summary(status.Total.Used, hard)
	for _, condition := range f.conditions() {
		condition.ObservedGeneration = object.Generation
		condition.LastTransitionTime = metav1.NewTime(f.now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// counted leaves out what has not been counted: zero would be a claim.
func (f facts) counted(used corev1.ResourceList) corev1.ResourceList {
	result := maps.Clone(used)
	maps.DeleteFunc(result, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return slices.Contains(f.uncounted, name) || slices.Contains(f.unlimitable, name)
	})
	return result
}

func (f facts) conditions() []metav1.Condition {
	return []metav1.Condition{f.ready(), f.enforced(), f.resourceUnavailable(), f.protectedSelected()}
}

func (f facts) ready() metav1.Condition {
	switch {
	case f.invalid != nil:
		return condition(quotav1.ConditionReady, metav1.ConditionFalse, quotav1.ReasonInvalidSpec, f.invalid.Error())
	case f.lost:
		return condition(quotav1.ConditionReady, metav1.ConditionFalse, quotav1.ReasonLedgerLost, fmt.Sprintf(
			"somebody deleted or edited the ledger at about %s: until all that was being admitted then has arrived or failed, nothing is",
			f.ledger.Sealed.UTC().Format(time.RFC3339)))
	case f.countedGeneration != f.generation:
		return condition(quotav1.ConditionReady, metav1.ConditionFalse, quotav1.ReasonCounting,
			"counting what the selected namespaces use")
	case len(f.uncounted) > 0:
		return condition(quotav1.ConditionReady, metav1.ConditionFalse, quotav1.ReasonCounting,
			"not counted yet: "+join(f.uncounted))
	default:
		return condition(quotav1.ConditionReady, metav1.ConditionTrue, quotav1.ReasonCounted,
			"usage is counted and follows every change")
	}
}

func (f facts) enforced() metav1.Condition {
	switch {
	case f.invalid != nil:
		return condition(quotav1.ConditionEnforced, metav1.ConditionFalse, quotav1.ReasonInvalidSpec,
			"nothing is limited while the spec is invalid")
	case f.coverage == reach.Missing:
		return condition(quotav1.ConditionEnforced, metav1.ConditionFalse, quotav1.ReasonWebhookPending,
			"the webhook is not called yet for every resource that is limited, in every namespace that is selected")
	default:
		return condition(quotav1.ConditionEnforced, metav1.ConditionTrue, quotav1.ReasonWebhookConfigured, f.enforcedHow())
	}
}

// enforcedHow tells what an administrator may not expect of how it is enforced.
func (f facts) enforcedHow() string {
	parts := []string{"every request that the quota limits is checked"}
	if f.coverage == reach.Wide {
		parts = append(parts, "the webhook is called in namespaces that are not selected too, "+
			"and requests there for what is limited need the operator: no webhook can select by annotations, nor by too many selectors")
	}
	if f.ignoring {
		parts = append(parts, "while no operator answers, requests are admitted unchecked: the failure policy is Ignore")
	}
	return strings.Join(parts, "; ")
}

// protectedSelected says which of the selected namespaces no quota limits.
func (f facts) protectedSelected() metav1.Condition {
	if len(f.protected) == 0 {
		return condition(quotav1.ConditionProtectedSelected, metav1.ConditionFalse, quotav1.ReasonNoneProtected,
			"no protected namespace is selected")
	}
	return condition(quotav1.ConditionProtectedSelected, metav1.ConditionTrue, quotav1.ReasonProtectedNamespaces,
		"selected and counted, but never limited, so that the cluster can heal itself: "+strings.Join(f.protected, ", ")+
			"; exclude them by the selector")
}

func (f facts) resourceUnavailable() metav1.Condition {
	var reason string
	var messages []string
	if len(f.unlimitable) > 0 {
		reason = quotav1.ReasonNotLimitable
		messages = append(messages, fmt.Sprintf("Kubernetes keeps no quota on %s", join(f.unlimitable)))
	}
	for _, problem := range f.problems {
		if reason == "" {
			reason = problem.Reason
		}
		messages = append(messages, problem.Message)
	}
	if reason == "" {
		return condition(quotav1.ConditionResourceUnavailable, metav1.ConditionFalse, quotav1.ReasonAllAvailable,
			"every limited resource can be counted")
	}
	return condition(quotav1.ConditionResourceUnavailable, metav1.ConditionTrue, reason, strings.Join(messages, "; "))
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: shorten(message)}
}

// maxMessage is as much as a person reads, and well below what the API server
// takes (32768 bytes).
const maxMessage = 4096

func shorten(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage], "") + " …"
}

func join(names []corev1.ResourceName) string {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, string(name))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
