// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// charging skips the updates that can't charge, so that a controller that
// removes a finalizer, say, neither waits for the operator nor needs it.
//
//   - An update of a pod charges where it moves the pod to another scope, which
//     only its activeDeadlineSeconds can; what it requests changes by a resize.
//   - What a service, a claim of a volume or of devices uses is in its spec. A
//     claim's storage class may still be in an annotation.
//
// Nothing in it can fail: a condition that fails refuses the request.
const charging = `request.operation != "UPDATE" || request.?subResource.orValue("") != "" || ` +
	`(request.resource.resource == "pods" ` +
	`? object.spec.?activeDeadlineSeconds != oldObject.spec.?activeDeadlineSeconds ` +
	`: object.?spec != oldObject.?spec || object.metadata.?annotations != oldObject.metadata.?annotations)`

// ChargingCondition is the name of the condition by which entries that enforce skip updates that can't charge.
const ChargingCondition = "charging." + ObjectsWebhook

// redefining skips the updates of a quota that leave its spec as it is, and those
// of one that is being deleted: its finalizers can go without the operator.
const redefining = `request.operation != "UPDATE" || ` +
	`(!has(object.metadata.deletionTimestamp) && object.?spec != oldObject.?spec)`

// resizing skips the updates of a workload that leave its spec as it is, which most of those by
// Kubernetes' own controllers do.
const resizing = `request.operation != "UPDATE" || object.?spec != oldObject.?spec`

// applied skips what a Deployment or a CronJob makes: the entry was asked about these. An object of
// the subresource scale has no owner.
const applied = `!object.metadata.?ownerReferences.orValue([]).exists(owner, ` +
	`owner.?controller.orValue(false) && owner.kind in ["Deployment", "CronJob"])`

// workloadConditions are those of the entries for workloads.
func workloadConditions() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{
		{Name: "applied." + WorkloadsWebhook, Expression: applied},
		{Name: "resizing." + WorkloadsWebhook, Expression: resizing},
	}
}

// quotaConditions are those of the entry that validates quotas.
func quotaConditions() []admissionregistrationv1.MatchCondition {
	return []admissionregistrationv1.MatchCondition{{Name: "redefining." + QuotasWebhook, Expression: redefining}}
}

// matchConditions are what the API server asks itself before it asks the webhook.
func matchConditions(rules []admissionregistrationv1.RuleWithOperations) []admissionregistrationv1.MatchCondition {
	updates := slices.ContainsFunc(rules, func(rule admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(rule.Operations, admissionregistrationv1.Update)
	})
	if !updates {
		return nil
	}
	return []admissionregistrationv1.MatchCondition{{Name: ChargingCondition, Expression: charging}}
}
