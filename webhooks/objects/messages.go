// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
)

// All text that a person reads in an answer is built here. If ResourceQuota of Kubernetes says the
// same, its words are used: people and tools know them. Nothing here names another namespace.

func exceededMessage(denied ledger.Denied) string {
	return fmt.Sprintf("exceeded quota: %s, requested: %s, used: %s, limited: %s",
		denied.Quota, amounts(denied.Requested), amounts(denied.Used), amounts(denied.Limited))
}

// missingMessage describes the part of the use that is held for this namespace, and until when.
func missingMessage(held corev1.ResourceList, until time.Time) string {
	return fmt.Sprintf(" (of this, %s is held until about %s for objects of this namespace that have not appeared: "+
		"if their requests failed, correct them and try again then)", amounts(held), until.UTC().Format("15:04:05 UTC"))
}

func withheldMessage(withheld ledger.Withheld) string {
	return fmt.Sprintf("too much in doubt for quota: %s, requested: %s, held for missing objects: %s, allowed for missing objects: %s "+
		"(requests in this namespace were admitted and their objects don't appear: find out what refuses them, such as another "+
		"webhook or a policy, and try again once their reservations have expired)",
		withheld.Quota, amounts(withheld.Requested), amounts(withheld.Held), amounts(withheld.Limited))
}

func unknownMessage(undecided ledger.Undecided) string {
	return fmt.Sprintf("status unknown for quota: %s, resources: %s (%s)",
		undecided.Quota, names(undecided.Resources), explanation(undecided))
}

func explanation(undecided ledger.Undecided) string {
	switch undecided.Reason {
	case ledger.Unavailable:
		return undecided.Detail
	case ledger.Full:
		return "too many requests are in flight: try again in a moment"
	case ledger.NotJoined:
		return "the objects in a namespace that joined this quota are still being counted: try again in a moment; " + conditionsSayWhy
	case ledger.StaleNamespaces:
		return "the labels of namespaces have just changed: try again in a moment"
	case ledger.InvalidSpec:
		return "this version of the operator can't enforce its spec: " + undecided.Detail +
			"; ask your cluster administrator to correct it"
	default:
		return "usage is still being counted: try again in a moment; " + conditionsSayWhy
	}
}

const conditionsSayWhy = "if it stays so, the conditions of the ClusterResourceQuota say why"

func amounts(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	// By name, not by the printed text: services come before services.nodeports.
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

func uncheckedMessage(undecided ledger.Undecided) string {
	return fmt.Sprintf("not checked against quota %s, and admitted: %s", undecided.Quota, undecided.Detail)
}

func names(resources []corev1.ResourceName) string {
	parts := make([]string, 0, len(resources))
	for _, name := range resources {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, ",")
}
