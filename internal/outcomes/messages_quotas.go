// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

// The refusals of ClusterResourceQuotas.
//
//nolint:gochecknoglobals // a table
var (
	NoSelector = row(Answers, "must restrict the namespaces",
		": give at least one entry in labels.matchLabels, labels.matchExpressions or annotations")
	TooLarge     = row(Answers, "must be less than 1e30", ": write a smaller number")
	Incomparable = row(Answers, "can't be compared with any object: %s", ": write a value that a label can have")
	SelectorSize = row(Answers, "takes %d KiB, and etcd can't store more than %d KiB of it together with the quota's status",
		": label the namespaces, and select by this label")
	SurgeOfUnlimited = row(Answers, "surge is room above a limit, and %s has none",
		": write it into spec.quota.hard, too, or remove it here")
	NotFenced = row(Answers,
		"quota %s is unchanged, because a lower limit must first be written into the quota's ledger, and that failed: %v",
		"; try again, and if it stays so, look at the quota's condition Ready")
)

// The warnings on ClusterResourceQuotas.
//
//nolint:gochecknoglobals // a table
var (
	SelectsNothing = row(Warnings, "spec.selector selects no namespace (%s): nothing is limited until one matches",
		"; label namespaces, or correct the selector")
	BelowUse = row(Warnings, "spec.quota.hard is below what is used: %s; no more is admitted until less is used",
		": delete something, or raise the limit")
	BelowUseWarn = row(Warnings,
		"spec.quota.hard is below what is used: %s; requests that don't fit are admitted, and their senders are warned",
		": delete something, or raise the limit, before the mode is Deny")
	BelowUseAudit = row(Warnings, "spec.quota.hard is below what is used: %s; "+
		"requests that don't fit are admitted, and noted in events and in the API server's audit log",
		": delete something, or raise the limit, before the mode is Deny")
	OutsideOfNamespaces = part(Warnings, "%s (outside of namespaces)", "a name in LimitNothing, which has it")
	ServedNowhere       = row(Warnings, "the cluster doesn't serve what is limited by %s",
		": correct spec.quota.hard, or install its CustomResourceDefinition")
	SelectsProtected = row(Warnings, "spec.selector selects protected namespaces, where nothing is ever refused",
		": exclude %s, such as by the label kubernetes.io/metadata.name")
	OpenShiftToo = row(Warnings, "OpenShift's ClusterResourceQuota of the same name selects %s too: both limit what is there",
		"; delete that one once this one is enforced")
	BelowPeak = row(Warnings, "spec.quota.hard is below the peak of the last 30 days (%s): it fits what is used now, and not what was",
		"; see status.peaks")
	NotFoundOut = row(Warnings, "the operator could not check this, because a read failed or took too long: %s",
		"; try again with --dry-run=server to have it checked")
	SelectorLarge = row(Warnings, "spec.selector takes %s: if all selectors are too large for the webhook configuration, "+
		"requests in namespaces that no quota selects need the operator, too", "; label the namespaces, and select by this label")
	LimitTheSame = row(Warnings, "other quotas limit the same: %s; a request must fit each quota whose mode is Deny",
		": see that this is meant")
	ModeWarn = row(Warnings, "spec.enforcement.mode is Warn, which refuses nothing: "+
		"requests that don't fit are admitted, and their senders are warned", "; set Deny to have them refused")
	ModeAudit = row(Warnings, "spec.enforcement.mode is Audit, which refuses nothing: "+
		"requests that don't fit are admitted, and noted in events and in the API server's audit log", "; set Deny to have them refused")
	SelectsOne  = part(Warnings, "spec.selector selects the namespace %s", preview)
	SelectsMany = part(Warnings, "spec.selector selects %d namespaces: %s", preview)

	ServedResources    = part(Warnings, "what the cluster serves", inNotFoundOut)
	SelectedNamespaces = part(Warnings, "which namespaces are selected", inNotFoundOut)
	OpenShiftName      = part(Warnings, "whether OpenShift has a quota of this name", inNotFoundOut)
	OverlappingQuotas  = part(Warnings, "which quotas limit the same", inNotFoundOut)
	UseOfNames         = part(Warnings, "what is used of %s", inNotFoundOut)
	MoreWarnings       = row(Warnings, "%d more warnings", ": mend what the others say to see them")
	MoreFindings       = row(Warnings, "%d more warnings are not shown", ": see kubectl crq fit -f FILE")
)

const (
	inNotFoundOut = "a question in NotFoundOut, which has it"
	preview       = "the preview that a dry run asks for, and no problem"
)
