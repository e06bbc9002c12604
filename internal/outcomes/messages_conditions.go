// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

const (
	// lookAtLog is the last resort.
	lookAtLog    = "if it lasts, look at the log of the operator's leader, the pod that holds the Lease shared-quota-operator"
	allIsWell    = "all is well"
	inEnforced   = "a part of EveryRequest, which is well; the clause after it has the way to another behaviour"
	inExceeded   = "the list of resources in the rows after it, which have the next step"
	correctIt    = ": correct the spec; the condition Ready says what is wrong"
	deleteOrLift = ": delete unneeded objects, or raise spec.quota.hard"
	triesAgain   = "the operator tries again, and in the mode Deny, what isn't counted yet is refused meanwhile"
	setToRefuse  = "; set spec.enforcement.whenUnavailable to Refuse to have them refused"
)

// The condition Ready.
//
//nolint:gochecknoglobals // a table
var (
	WrongSpec         = row(Conditions, "%s", ": correct the spec")
	LedgerUnreachable = row(Conditions,
		"since %s the operator can't read or write this quota's QuotaLedger, so requests that the quota limits are %s: %s",
		"; correct what the error names; if it names nothing, check the operator's RBAC, other webhooks and policies, "+
			"and etcd's free space")
	LedgerDamaged = row(Conditions,
		"the quota's ledger was deleted, edited or restored at about %s, so requests that the quota limits are %s until %s: "+
			"by then the requests that were under way have ended, and their objects are counted",
		"; if nobody restored a backup, find the client that wrote quotaledgers in the audit log, and remove its right; "+
			"if this condition stays after that time, look at the log of the operator's leader")
	CountingAll = row(Conditions, "counting what the selected namespaces use: requests for what is limited are %s until that is done",
		"; wait, and "+lookAtLog)
	CountingSome = row(Conditions, "some resources are not counted yet (%s), so requests for them are %s until they are",
		"; wait, and if it lasts, look at the condition ResourceUnavailable, and at the log of the operator's leader")
	CountNotTaken = row(Conditions, "since %s the operator could not store a new count in the quota's ledger (%s), "+
		"so deleted objects free no room, and requests may be %s because usage is unknown",
		"; wait, and if it lasts, look at the log of the operator's leader; "+
			"if the reason in brackets is a refusal, correct the policy or webhook that it names")
	WritesPending = part(Conditions, "no write of it has come to an end", "the cause in CountNotTaken")
	CountFollows  = part(Conditions, "usage is counted and follows every change", allIsWell)

	AdmittedUnchecked = part(Conditions, "admitted unchecked", "the effect in LedgerUnreachable")
)

// The condition Enforced.
//
//nolint:gochecknoglobals // a table
var (
	EditedBySomebody = row(Conditions,
		"%s: requests that the quota limits may pass unchecked until the API server has loaded the operator's repair",
		"; wait, and if it happens again, find the client in the audit log, and keep it from changing this configuration")
	NotLoadedYet = row(Conditions, "the webhook configuration covers the quota, and the API server has not loaded it yet",
		": wait, and "+lookAtLog)
	ConfigurationFails = row(Conditions,
		"the webhook is not called for all that is limited, because the webhook configuration can't be written: %s",
		": correct what the error names; the operator tries again each second")
	NotCalledYet = row(Conditions,
		"the webhook is not called yet for every resource that is limited, in every namespace that is selected", ": wait, and "+lookAtLog)
	InvalidAdmits = row(Conditions, "no request is judged, because an invalid spec doesn't say how much it allows, "+
		"and none is refused, because the mode is %s", correctIt)
	InvalidRefuses = row(Conditions, "every request for what spec.quota.hard names is refused, in the namespaces that the valid part "+
		"of the selector selects, because an invalid spec doesn't say how much it allows",
		": correct it; the condition Ready says what is wrong")
	InvalidLimitsNothing = row(Conditions,
		"nothing is limited, because no part of the selector is valid, or Kubernetes keeps no quota on what spec.quota.hard names",
		correctIt)
	ProbeFails = row(Conditions, "it is not known whether requests are checked, because the operator's own test request fails: %s",
		": see that the API server reaches the operator's Service, "+
			"and that no other webhook or policy refuses the dry run of a QuotaLedger")
	ProbeUnanswered = part(Conditions, "it gets no answer", "the cause in ProbeFails")
	EveryRequest    = part(Conditions, "every request that the quota limits is checked", allIsWell)
	CalledElsewhere = row(Conditions, "the webhook is also called in namespaces that are not selected, "+
		"so requests there for what is limited may fail or take longer while the operator is down, "+
		"because a webhook can't select by annotations, or by selectors that are too many or too large",
		"; select by a label that several quotas share to avoid it")
	WhileDown = part(Conditions, "while no replica answers, requests are admitted unchecked, unless another quota of their namespace "+
		"has them refused: %s", "the next rows have it")
	AdmitsByMode = row(Conditions, "the mode is %s",
		"; set spec.enforcement.mode to Deny and whenUnavailable to Refuse to have them refused; Deny also refuses what doesn't fit")
	AdmitsBySpec    = row(Conditions, "spec.enforcement.whenUnavailable is Admit", setToRefuse)
	AdmitsByDefault = row(Conditions, "the operator runs with --failure-policy=Ignore", setToRefuse)
)

// The conditions Exceeded, ProtectedSelected and ResourceUnavailable, and Blocked of a view.
//
//nolint:gochecknoglobals // a table
var (
	AboveHard = part(Conditions, "%s: used %s, hard %s", inExceeded)
	// AboveHardUnchecked is read from stored conditions, too.
	AboveHardUnchecked = part(Conditions, "%s: used %s, hard %s, %s above it, admitted while the operator couldn't decide", inExceeded)
	RoseUnchecked      = row(Conditions,
		"%s; nothing is removed, and requests for more are refused while the operator can decide, until used is below hard",
		deleteOrLift+"; set spec.enforcement.whenUnavailable to Refuse to have requests refused while the operator can't decide")
	AdmittedAbove = row(Conditions, "%s; admitted by the mode %s, nothing is removed or refused",
		deleteOrLift+", before you set the mode to Deny")
	RefusedAbove = row(Conditions, "%s; nothing is removed, and requests for more are refused, until used is below hard", deleteOrLift)
	SurgingAbove = row(Conditions,
		"%s; pods that replace others have taken surge: %s; until used is below hard, only such pods get more",
		"; wait until the rollouts have ended, and correct or undo one that doesn't")
	SurgesSince  = part(Conditions, "%s %s/%s since %s", "a workload in SurgingAbove")
	MoreSurge    = part(Conditions, "and %d more", "the end of the list in SurgingAbove")
	InvalidCount = row(Conditions, "nothing is counted while the spec is invalid", ": correct it; the condition Ready says what is wrong")
	CountPending = row(Conditions, "not everything is counted yet", ": wait; the condition Ready says for what")
	WithinHard   = part(Conditions, "used is nowhere above hard", allIsWell)

	NoneProtected = part(Conditions, "no protected namespace is selected", allIsWell)
	SomeProtected = row(Conditions, "selected and counted, but never limited, so that the cluster can heal itself: %s",
		"; exclude them by the selector")

	AllCountable = part(Conditions, "every limited resource can be counted", allIsWell)
	// LimitNothing is a warning, too.
	LimitNothing  = row(Conditions, "names in spec.quota.hard that limit nothing: %s", "; correct or remove them")
	ClusterScoped = row(Conditions, "a quota over namespaces can't limit objects outside of them: %s", "; remove this from spec.quota.hard")
	NotServedHere = row(Conditions, "the cluster doesn't serve %s; counting begins once it does",
		": install what defines this, or remove it from spec.quota.hard")
	LookupFails    = row(Conditions, "%s can't be looked up; "+triesAgain, ": see what the API server says: %v")
	WatchFails     = row(Conditions, "%s can't be listed or watched; "+triesAgain, ": see what the API server says: %v")
	WatchForbidden = row(Conditions, "%s can't be listed or watched; "+triesAgain,
		": give the operator the right to list and watch it, such as by config/rbac/reader_all_role.yaml, "+
			"or remove it from spec.quota.hard; the API server says: %v")

	NoneWait = part(Conditions, "no workload of this namespace waits for room", allIsWell)
	OneWaits = part(Conditions, "1 workload waits", "the number in WaitForRoom")
	SomeWait = part(Conditions, "%d workloads wait", "the number in WaitForRoom")
	// TriedAgain is said in the place of WokenWhenItFits of the API.
	TriedAgain  = part(Conditions, "their controllers try again now and then", "the effect in WaitForRoom")
	WaitForRoom = row(Conditions, "%s for room, the first since %s: %s %s is short of %s; %s",
		": delete unneeded objects in any namespace that shares the quota, or ask for a higher limit")
)
