// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

const (
	ifItStaysSo = ": try again in a moment; if it stays so, the conditions of the ClusterResourceQuota say why"
	inAMoment   = ": try again in a moment"
	// kubernetesWords is the reason for rows whose words are prescribed.
	kubernetesWords = "the words of Kubernetes, which tools read; the event about the refusal has the next step"
)

// The answers to requests for objects. They name no other namespace.
//
//nolint:gochecknoglobals // a table
var (
	Exceeded = part(Answers, "exceeded quota: %s, requested: %s, used: %s, limited: %s", kubernetesWords)
	// Held follows Exceeded, about the part of the use that is held for this namespace.
	Held = row(Answers, " (of this, %s is held until about %s for objects of this namespace that have not appeared",
		": if their requests failed, correct them and try again then)")
	TooMuchHeld = row(Answers, "too much in doubt for quota: %s, requested: %s, held for missing objects: %s, "+
		"allowed for missing objects: %s (requests in this namespace were admitted and their objects don't appear",
		": find out what refuses them, such as another webhook or a policy, and try again once their reservations have expired)")
	UnknownUse = part(Answers, "status unknown for quota: %s, resources: %s (%s)", "it is in brackets: one of the next rows")

	// NotCountedYet and the next rows are the reasons in UnknownUse.
	NotCountedYet   = row(Answers, "usage is still being counted", ifItStaysSo)
	JoiningYet      = row(Answers, "the objects in a namespace that joined this quota are still being counted", ifItStaysSo)
	LabelsChanged   = row(Answers, "the labels of namespaces have just changed", inAMoment)
	TooManyInFlight = row(Answers, "too many requests are in flight", inAMoment)
	LedgerFails     = row(Answers, "%s", ifItStaysSo)
	CannotEnforce   = row(Answers, "this version of the operator can't enforce its spec: %s",
		"; ask your cluster administrator to correct it")
	StillStarting = row(Answers, "the operator is still starting", inAMoment)
	LostContact   = row(Answers, "the replica %s has had no answer from the API server for %s, so it can't tell what quotas allow",
		inAMoment)
	DoubtfulHistory = row(Answers,
		"the replica %s can't find out whether etcd was restored from a backup, so it can't tell what quotas allow: %s",
		inAMoment)
	TooMuchInFlight  = row(Answers, "too many bytes are in flight", inAMoment)
	UndecidedRequest = row(Answers, "%w",
		"; try again in a moment, and if it stays so, ask your cluster administrator to read the operator's log")
	UnreadRequest = row(Answers, "the operator can't read the request: %w",
		"; ask your cluster administrator to read the operator's log")
)

// The warnings on requests for objects.
//
//nolint:gochecknoglobals // a table
var (
	OnlyWarns        = row(Warnings, "%s (admitted, because the quota only warns", ": mend this before it refuses)")
	OnlyWarnsUnknown = part(Warnings, "%s (admitted, because the quota only warns)", "it is in UnknownUse")
	NotChecked       = row(Warnings, "not checked against quota %s, and admitted: %s",
		"; if it lasts, ask your cluster administrator to look at the quota's condition Ready")
	NotCheckedByAny = row(Warnings, "not checked against the quotas of this namespace, and admitted: %s",
		"; if it lasts, ask your cluster administrator to read the operator's log")
)
