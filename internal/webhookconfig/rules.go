// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"cmp"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/internal/evaluation"
)

type (
	rule       = admissionregistrationv1.RuleWithOperations
	operations = []admissionregistrationv1.OperationType
	condition  = admissionregistrationv1.MatchCondition
)

const (
	onCreate, onUpdate = admissionregistrationv1.Create, admissionregistrationv1.Update
	clusterScoped      = admissionregistrationv1.ClusterScope
	namespaced         = admissionregistrationv1.NamespacedScope
)

func ruleOf(scope admissionregistrationv1.ScopeType, group, version string, operations operations, resources ...string) rule {
	return rule{Operations: operations, Rule: admissionregistrationv1.Rule{
		APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: ptr.To(scope),
	}}
}

func ownRules(operations operations, resource string) []rule {
	return []rule{ruleOf(clusterScoped, quotav1.GroupVersion.Group, quotav1.GroupVersion.Version, operations, resource)}
}

func objectRules(limited []schema.GroupResource) []rule {
	sorted := slices.SortedFunc(slices.Values(limited), func(a, b schema.GroupResource) int {
		return cmp.Compare(a.String(), b.String())
	})
	var rules []rule
	for _, resource := range slices.Compact(sorted) {
		// The evaluators read one version, which the API server converts to. A count takes any, even of a resource
		// that the cluster doesn't serve yet.
		version := "*"
		if evaluation.NeedsObject(resource) {
			version = "v1"
		}
		for _, needed := range evaluation.Rules(resource) {
			name := resource.Resource
			if needed.Subresource != "" {
				name += "/" + needed.Subresource
			}
			var on operations
			for _, operation := range needed.Operations {
				on = append(on, admissionregistrationv1.OperationType(operation))
			}
			rules = append(rules, ruleOf(namespaced, resource.Group, version, on, name))
		}
	}
	return rules
}

// workloadRules cover the objects that make pods, and the ones that set their
// number.
func workloadRules() []rule {
	written, scaled := operations{onCreate, onUpdate}, operations{onUpdate}
	return []rule{
		ruleOf(namespaced, "", "v1", written, "replicationcontrollers"),
		ruleOf(namespaced, "", "v1", scaled, "replicationcontrollers/scale"),
		ruleOf(namespaced, "apps", "v1", written, "daemonsets", "deployments", "replicasets", "statefulsets"),
		ruleOf(namespaced, "apps", "v1", scaled, "deployments/scale", "replicasets/scale", "statefulsets/scale"),
		ruleOf(namespaced, "autoscaling", "v2", written, "horizontalpodautoscalers"),
		ruleOf(namespaced, "batch", "v1", written, "cronjobs", "jobs"),
	}
}

// charging skips the updates that can't charge, so that a controller that
// removes a finalizer, say, neither waits for the operator nor needs it.
//
//   - An update of a pod charges where it moves the pod to another scope, which
//     only its activeDeadlineSeconds can; what it requests changes by a resize.
//   - The spec of a service, of a volume claim or of a resource claim has all
//     that it uses. A claim's storage class may still be in an annotation.
//
// Nothing in it can fail: a condition that fails refuses the request.
const charging = `request.operation != "UPDATE" || request.?subResource.orValue("") != "" || ` +
	`(request.resource.resource == "pods" ` +
	`? object.spec.?activeDeadlineSeconds != oldObject.spec.?activeDeadlineSeconds ` +
	`: object.?spec != oldObject.?spec || object.metadata.?annotations != oldObject.metadata.?annotations)`

// ChargingCondition is the name of the condition by which entries that enforce skip updates that can't charge.
const ChargingCondition = "charging." + ObjectsWebhook

// redefining skips the updates of a quota that leave its spec as it is, and the
// updates of a quota that is being deleted: its finalizers can go without the
// operator.
const redefining = `request.operation != "UPDATE" || ` +
	`(!has(object.metadata.deletionTimestamp) && object.?spec != oldObject.?spec)`

// resizing skips the updates of a workload that leave its spec as it is, which most of those by
// Kubernetes' own controllers do.
const resizing = `request.operation != "UPDATE" || object.?spec != oldObject.?spec`

// applied skips objects that a Deployment or a CronJob makes: the entry was asked about these. An object of the
// subresource scale has no owner.
const applied = `!object.metadata.?ownerReferences.orValue([]).exists(owner, ` +
	`owner.?controller.orValue(false) && owner.kind in ["Deployment", "CronJob"])`

// workloadConditions are those of the entries for workloads.
func workloadConditions() []condition {
	return []condition{
		{Name: "applied." + WorkloadsWebhook, Expression: applied},
		{Name: "resizing." + WorkloadsWebhook, Expression: resizing},
	}
}

// quotaConditions are those of the entry that validates quotas.
func quotaConditions() []condition {
	return []condition{{Name: "redefining." + QuotasWebhook, Expression: redefining}}
}

// matchConditions are evaluated by the API server before it asks the webhook about objects.
func matchConditions(rules []rule) []condition {
	updates := func(rule rule) bool { return slices.Contains(rule.Operations, onUpdate) }
	if !slices.ContainsFunc(rules, updates) {
		return nil
	}
	return []condition{{Name: ChargingCondition, Expression: charging}}
}
