// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sharedquota/shared-quota-operator/internal/ledger"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// The figures of an answer are put together here, and package outcomes has the words. Nothing here names another namespace.

func exceededMessage(denied ledger.Denied) string {
	return outcomes.Exceeded.Text(denied.Quota, amounts(denied.Requested), amounts(denied.Used), amounts(denied.Limited))
}

// missingMessage describes the part of the use that is held for this namespace, and until when.
func missingMessage(held corev1.ResourceList, until time.Time) string {
	return outcomes.Held.Text(amounts(held), until.UTC().Format("15:04:05 UTC"))
}

// surgeMessage says why an object that replaces another one, or may do so, got no surge; empty for other objects.
func surgeMessage(denied ledger.Denied, proof proof) string {
	switch {
	case len(denied.Surge) > 0:
		return outcomes.SurgeTaken.Text(amounts(denied.Surge))
	case denied.Provable && proof.grows:
		return outcomes.SurgeGrows.Text()
	case denied.Provable && proof.err != nil:
		return outcomes.SurgeUnproved.Text(proof.err)
	default:
		return ""
	}
}

func withheldMessage(withheld ledger.Withheld) string {
	return outcomes.TooMuchHeld.Text(withheld.Quota, amounts(withheld.Requested), amounts(withheld.Held), amounts(withheld.Limited))
}

func unknownMessage(undecided ledger.Undecided) string {
	cause, next := explanation(undecided)
	return outcomes.UnknownUse.Text(undecided.Quota, names(undecided.Resources), cause+next)
}

func explanation(undecided ledger.Undecided) (cause, next string) {
	switch undecided.Reason {
	case ledger.Unavailable:
		return outcomes.LedgerFails.Sides(undecided.Detail)
	case ledger.Full:
		return outcomes.TooManyInFlight.Sides()
	case ledger.NotJoined:
		return outcomes.JoiningYet.Sides()
	case ledger.StaleNamespaces:
		return outcomes.LabelsChanged.Sides()
	case ledger.InvalidSpec:
		return outcomes.CannotEnforce.Sides(undecided.Detail)
	default:
		return outcomes.NotCountedYet.Sides()
	}
}

func amounts(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	// By name, not by the printed text: services come before services.nodeports.
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, ",")
}

func names(resources []corev1.ResourceName) string {
	parts := make([]string, 0, len(resources))
	for _, name := range resources {
		parts = append(parts, string(name))
	}
	return strings.Join(parts, ",")
}
