// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

const (
	askForMore   = "or ask the cluster's administrator for a higher limit"
	seeViews     = "; see kubectl get events -A --field-selector involvedObject.kind=LocalResourceQuota"
	beforeDeny   = ": delete unneeded objects, or raise spec.quota.hard, before you set the mode to Deny"
	beforeOwner  = ": delete unneeded objects, or ask the cluster's administrator for a higher limit, before the mode becomes Deny"
	inTheRefusal = "the refusal that it repeats has it"
)

// The events on a ClusterResourceQuota, for its administrator. They name no namespace and no object.
//
//nolint:gochecknoglobals // a table
var (
	QuotaRefused = row(Events, "refused %s: %s",
		"; delete unneeded objects in the namespaces that share the quota, or raise spec.quota.hard")
	QuotaWouldBe = row(Events, "admitted %s: %s", "; with the mode Deny it would be refused: "+
		"see the metric sharedquota_admission_would_refuse_total, which counts such requests")
	QuotaIncomplete = row(Events, "refused %s: a request must state all that the quota limits", seeViews)
	QuotaInDoubt    = row(Events,
		"refused %s: too many requests of one namespace failed after they were admitted, so the quota admits no more from this namespace "+
			"until their reservations expire",
		"; find the namespace in status.doubtful and its objects with kubectl crq reservations %s, and correct what refuses them, "+
			"such as another webhook")
	QuotaUnknown = row(Events, "refused %s: what is used of the quota is not known",
		"; look at the quota's condition Ready, which says why")

	QuotaNear     = row(Events, "%s: used %s, hard %s", "; delete unneeded objects, or raise spec.quota.hard, before requests are refused")
	QuotaReached  = row(Events, "%s: used %s, hard %s; requests for more are refused", deleteOrLift)
	QuotaAbove    = row(Events, "%s: used %s, hard %s; nothing is removed, and requests for more are refused", deleteOrLift)
	QuotaNearMode = row(Events, "%s: used %s, hard %s; requests that go beyond it are admitted, because the mode is %s", beforeDeny)
	QuotaFullMode = row(Events, "%s: used %s, hard %s; requests for more are admitted, because the mode is %s", beforeDeny)
	// ConditionHas repeats the message of a condition.
	ConditionHas = part(Events, "%s", "the condition that it repeats has it")
)

// The events on a LocalResourceQuota, for the owner of its namespace, and on a workload.
//
//nolint:gochecknoglobals // a table
var (
	ViewRefused = row(Events, "refused %s %q: %s",
		"; used is what all namespaces that share the quota use: delete unneeded objects, "+askForMore)
	ViewWouldBe    = row(Events, "admitted %s %q: %s", "; make room, or state what is missing, before the quota's mode becomes Deny")
	ViewIncomplete = row(Events, "refused %s %q: %s", "; state it in the object, or let a LimitRange in the namespace give it")
	ViewInDoubt    = row(Events, "refused %s %q: %s", "; ask the cluster's administrator which objects are missing, "+
		"and when their reservations expire: kubectl crq reservations %s")
	ViewUnknown = part(Events, "refused %s %q: %s", inTheRefusal)

	ViewNear = row(Events, "%s: used %s by all namespaces that share the quota, hard %s",
		"; delete unneeded objects, "+askForMore+", before requests are refused")
	ViewReached = row(Events, "%s: used %s by all namespaces that share the quota, hard %s; requests for more are refused",
		": delete unneeded objects, "+askForMore)
	ViewAbove = row(Events,
		"%s: used %s by all namespaces that share the quota, hard %s; nothing is removed, and requests for more are refused",
		": delete unneeded objects, "+askForMore)
	ViewNearMode = row(Events, "%s: used %s by all namespaces that share the quota, hard %s; "+
		"requests that go beyond it are admitted, because the mode is %s", beforeOwner)
	ViewFullMode = row(Events, "%s: used %s by all namespaces that share the quota, hard %s; "+
		"requests for more are admitted, because the mode is %s", beforeOwner)
	// WarningsHave repeats the warnings on a workload.
	WarningsHave = part(Events, "%s", "the warnings that it repeats have it")
)
