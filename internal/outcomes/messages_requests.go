// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

const (
	// TryAgain begins the next step of a request that is refused for now. One that is admitted must not be sent again.
	TryAgain    = " try again in a moment"
	inAMoment   = ":" + TryAgain
	ifItStaysSo = inAMoment + "; if it stays so, ask your cluster administrator to look at the quota's condition Ready"
	orReadLog   = inAMoment + "; if it stays so, ask your cluster administrator to read the operator's log"
	// kubernetesWords is the reason for rows whose words are prescribed.
	kubernetesWords = "the words of Kubernetes, which tools read; the event about the refusal has the next step"
)

// The answers to requests for objects. They name no other namespace.
//
//nolint:gochecknoglobals // a table
var (
	Exceeded = part(Answers, "exceeded quota: %s, requested: %s, used: %s, limited: %s", kubernetesWords)
	// Held follows Exceeded, about the part of the use that is held for this namespace.
	Held = row(Answers, " (of used, %s is held until about %s for requests of the same namespace whose objects have not appeared",
		": if those requests failed, correct them, and try again after that time)")
	// SurgeTaken and the next two follow Exceeded, about objects that replace others.
	SurgeTaken = row(Answers, " (this replaces another pod, and doesn't fit in the surge for that either, which is %s",
		": wait until other rollouts have ended, or ask your cluster administrator for more spec.surge)")
	SurgeGrows = row(Answers, " (the pod takes more than the one that it replaces, or has other claims, so it gets no surge",
		": free some room, or ask for no more than before)")
	SurgeUnproved = row(Answers, " (the operator couldn't find out whether the pod replaces another one and so gets surge: %v",
		":"+TryAgain+")")
	TooMuchHeld = row(Answers, "too much in doubt for quota: %s, requested: %s, held for missing objects: %s, "+
		"allowed for missing objects: %s (requests in this namespace were admitted and their objects don't appear",
		": find out what refuses these objects, such as another webhook or a policy, correct it, "+
			"and try again once their reservations have expired, by default after a minute)")
	UnknownUse = part(Answers, "status unknown for quota: %s, resources: %s (%s)", "it is in brackets: one of the next rows")

	// NotCountedYet and the next rows are the reasons in UnknownUse.
	NotCountedYet   = row(Answers, "usage is still being counted", ifItStaysSo)
	JoiningYet      = row(Answers, "the objects in a namespace that joined this quota are still being counted", ifItStaysSo)
	LabelsChanged   = row(Answers, "the labels of namespaces have just changed", inAMoment)
	TooManyInFlight = row(Answers, "too many admitted objects of this quota are not counted yet", orReadLog)
	LedgerFails     = row(Answers, "%s", ifItStaysSo)
	CannotEnforce   = row(Answers, "the quota's spec is not valid for this version of the operator: %s",
		"; ask your cluster administrator to correct the quota's spec")
	StillStarting = row(Answers, "the operator is still starting", inAMoment)
	LostContact   = row(Answers, "the replica %s has had no answer from the API server for %s, so it can't tell what quotas allow",
		inAMoment)
	DoubtfulHistory = row(Answers,
		"the replica %s can't check that the API server still has the data that it had before, so it can't tell what quotas allow (%s)",
		orReadLog)
	TooMuchInFlight  = row(Answers, "the operator is reading too many or too large requests at once", orReadLog)
	UndecidedRequest = row(Answers, "%w",
		";"+TryAgain+", and if it stays so, ask your cluster administrator to read the operator's log")
	UnreadRequest = row(Answers, "the operator can't read the request: %w",
		"; ask your cluster administrator to read the operator's log")
)

// The warnings on requests for objects.
//
//nolint:gochecknoglobals // a table
var (
	OnlyWarns = row(Warnings, "%s (admitted, because the quota only warns",
		": make room, or state what is missing, before the quota's mode becomes Deny)")
	OnlyWarnsUnknown = row(Warnings, "%s (admitted, because the quota only warns", ": don't send it again)")
	NotChecked       = row(Warnings, "not checked against quota %s, and admitted: %s",
		"; if it lasts, ask your cluster administrator to look at the quota's condition Ready")
	NotCheckedByAny = row(Warnings, "not checked against the quotas of this namespace, and admitted: %s",
		"; if it lasts, ask your cluster administrator to read the operator's log")
)
