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
	// reserved is what the ledger holds for objects that aren't in slices.
	reserved corev1.ResourceList
	// named is the UID of the ledger that requests are admitted by.
	named types.UID
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
		Ledger:             f.named,
		Reserved:           f.reserved,
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
	status.Summary = report.Summary(status.Total.Used, hard)
	status.Levels = report.Levels(object.Status.Levels, status.Total.Used, hard)
	for _, condition := range f.conditions(status.Total) {
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
