// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

import "strings"

const (
	inPreflight = "a clause of SeeWhy, which has it"
	inNotJudged = "a cause in NotJudged, which has it"
)

// The warnings on workloads, which are the denials of a quota whose preflight is Deny. They name no other namespace.
//
//nolint:gochecknoglobals // a table
var (
	// SeeWhy ends each line about a quota, if there is room for it. If no object was made, SeeFit does, or AskForLess.
	SeeWhy     = row(Warnings, "", "; see kubectl crq why %s -n %s")
	SeeFit     = row(Warnings, "", "; see kubectl crq fit -f FILE -n %s")
	AskForLess = row(Warnings, "", "; see kubectl crq fit -f FILE -n %s, and apply fewer or smaller pods, or ask for a higher limit")
	NotJudged  = row(Warnings, "the operator did not check whether the workload's pods fit into the quotas: %s",
		"; check it with kubectl crq fit -f FILE")

	OfQuota        = part(Warnings, "quota %s: %s", inPreflight)
	OfLenientQuota = part(Warnings, "quota %s only warns: %s", inPreflight)
	OnlyOfLenient  = part(Warnings, " (the quota only warns)", inPreflight)
	QuotaNotJudged = part(Warnings, "it is not known whether the workload's pods fit: %s", inPreflight)
	NotKnown       = part(Warnings, "; not known: ", inPreflight)
	WillBeRefused  = part(Warnings, "its %s will be refused: %s", inPreflight)
	WaitsForRoom   = part(Warnings, "the rollout will wait for room between its steps, ", inPreflight)
	SurgeShort     = part(Warnings, "because its whole surge is short of ", inPreflight)
	UsesSurge      = part(Warnings, "the rollout fits, and will use this part of the surge that is left: ", inPreflight)
	NoPodEver      = part(Warnings, "not one pod can ever fit", inPreflight)
	MaximumNever   = part(Warnings, "maxReplicas %d can never fit", inPreflight)
	RunNever       = part(Warnings, "a run can never fit", inPreflight)
	PodsNever      = part(Warnings, "%d %s can never fit", inPreflight)
	FitNow         = part(Warnings, " (%s fit now)", inPreflight)
	MoreThanLimit  = part(Warnings, ", because that is more than the limit: ", inPreflight)
	NoPodNow       = part(Warnings, "not one pod fits now, ", inPreflight)
	MaximumNow     = part(Warnings, "maxReplicas %d: %s fit now, ", inPreflight)
	RunNow         = part(Warnings, "a run doesn't fit now, ", inPreflight)
	PodsNow        = part(Warnings, "%s of %d pods fit now, ", inPreflight)
	OthersNow      = part(Warnings, "what is made besides pods doesn't fit now, ", inPreflight)
	LaterPodsNow   = part(Warnings, "its later pods don't fit, ", inPreflight)
	RolloutStuck   = part(Warnings, "the rollout will be stuck, ", inPreflight)
	// StuckSurgeTaken, StuckSurgeTooSmall and StuckLarger are of quotas that have surge of all that is short.
	StuckSurgeTaken    = part(Warnings, "the rollout will be stuck until others give the quota's surge back, ", inPreflight)
	StuckSurgeTooSmall = part(Warnings, "the rollout will be stuck, because the quota's surge is too small, ", inPreflight)
	StuckLarger        = part(Warnings, "the rollout will be stuck, because pods that ask for more than before get no surge, ", inPreflight)

	ShortOf = part(Warnings, "short of ", inPreflight)
	AndMore = part(Warnings, " and %d more", inPreflight)

	JudgingJoins   = part(Warnings, "the objects in a namespace that joined this quota are still being counted", inPreflight)
	JudgingLabels  = part(Warnings, "the labels of namespaces have just changed", inPreflight)
	JudgingSpec    = part(Warnings, "the quota's spec has just changed", inPreflight)
	JudgingInvalid = part(Warnings, "the quota's spec is not valid for this version of the operator", inPreflight)
	JudgingCount   = part(Warnings, "usage is still being counted", inPreflight)
	JudgingDevices = part(Warnings, "the quota limits devices, and ResourceClaimTemplates aren't read", inPreflight)

	JudgeFailed   = part(Warnings, "the operator failed to judge it", inNotJudged)
	JudgedTooLate = part(Warnings, "it took too long", inNotJudged)
	JudgesBusy    = part(Warnings, "too many others are being judged", inNotJudged)
	TooManyParts  = part(Warnings, "its pods have more than %d containers, volumes and claims", inNotJudged)
	FewerThanNone = part(Warnings, "it asks for a negative number of pods", inNotJudged)
	UnknownKind   = part(Warnings, "kind %s is unknown", inNotJudged)
	NoObject      = part(Warnings, "there is no object", inNotJudged)
	NotReadable   = part(Warnings, "it can't be read: %w", inNotJudged)
	NotReadNow    = part(Warnings, "%s can't be read at present", inNotJudged)
)

// Maybe turns a certain statement about a workload into an uncertain one.
func Maybe(text string) string {
	return strings.NewReplacer(
		"not one pod fits", "perhaps not one pod fits", "doesn't fit", "may not fit", "will be stuck", "may be stuck",
		"will be refused", "may be refused", "can never fit", "may never fit",
	).Replace(text)
}

// Would turns a statement about a workload's future into one about a refusal by a quota that only warns.
func Would(text string) string {
	return strings.NewReplacer(
		"will be", "would be", "may be", "might be", "will wait", "would wait", "will use", "would use",
	).Replace(text)
}
