// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/selection"
)

// workloads stands for the rules of the entries for workloads, which are the same for all quotas. So
// quotas whose namespaces can be chosen together need one entry.
const workloads = "workloads"

// workloadsWebhooks are the entries that ask whether the pods of workloads fit, in the namespaces
// of the quotas that want to be asked.
func (s Settings) workloadsWebhooks(quotas []Quota) []admissionregistrationv1.ValidatingWebhook {
	var areas []selection.Area
	for _, quota := range quotas {
		if quota.Preflight {
			areas = append(areas, selection.Area{Selector: quota.Selector, Rules: []string{workloads}})
		}
	}
	entries, _ := selection.Disjoint(areas, s.Protected, maxEntries)
	webhooks := make([]admissionregistrationv1.ValidatingWebhook, 0, len(entries))
	for i, entry := range entries {
		webhook := s.webhook(numbered(WorkloadsWebhook, i), s.Paths.Workloads, entry.Selector, workloadRules())
		// It keeps no quota, so it must never be in the way.
		webhook.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
		webhook.TimeoutSeconds = seconds(PreflightTimeout)
		webhook.MatchConditions = workloadConditions()
		webhooks = append(webhooks, webhook)
	}
	return webhooks
}

// workloadRules are about what makes pods, and what says how many.
func workloadRules() []admissionregistrationv1.RuleWithOperations {
	rule := func(
		group, version string, operations []admissionregistrationv1.OperationType, resources ...string,
	) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources,
				Scope: ptr.To(admissionregistrationv1.NamespacedScope),
			},
		}
	}
	written := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	scaled := []admissionregistrationv1.OperationType{admissionregistrationv1.Update}
	return []admissionregistrationv1.RuleWithOperations{
		rule("", "v1", written, "replicationcontrollers"),
		rule("", "v1", scaled, "replicationcontrollers/scale"),
		rule("apps", "v1", written, "daemonsets", "deployments", "replicasets", "statefulsets"),
		rule("apps", "v1", scaled, "deployments/scale", "replicasets/scale", "statefulsets/scale"),
		rule("autoscaling", "v2", written, "horizontalpodautoscalers"),
		rule("batch", "v1", written, "cronjobs", "jobs"),
	}
}
