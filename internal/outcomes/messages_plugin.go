// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

// The errors of the API server and of libraries, in the words of the plugin. %w is the error.
//
//nolint:gochecknoglobals // a table
var (
	NotInstalled = row(Failures, "the cluster doesn't serve ClusterResourceQuotas: is the shared quota operator installed here?",
		" Install it, or name another cluster with --context")
	MayNotSeeViews = row(Failures,
		"%w", "; ask an administrator for the role view, edit or admin in the namespace; if you have one of them, "+
			"ask the administrator to install the operator's config/rbac, which adds this right to it")
	MayNotSee = row(Failures, "%w", "; ask an administrator for the right that the error names; to see only what is left in a namespace, "+
		"use kubectl crq explain -n NAMESPACE, for which the role view is enough")
	TookTooLong = row(Failures, "%w", "; try again, or give it longer with --request-timeout")
	NoAnswer    = row(Failures, "%w",
		"; see that --kubeconfig, KUBECONFIG or --context name the cluster that you mean, and that it runs")
	NotThere    = row(Failures, "%w", "; see that the name and the namespace are right")
	ServerSays  = row(Failures, "%w", "; correct what the API server names, or ask an administrator, and try again")
	Unexplained = row(Failures, "%w", "; see %s --help, correct what the error names, and try again")
	NoQuotaLike = row(Failures, "%w", "; see kubectl crq top, which lists all")
	QuotaLike   = row(Failures, "%w", "; did you mean %s?")
	NoNamespace = row(Failures, "namespace %s doesn't exist", ": see kubectl get namespaces, which lists all")
	NoLedger    = row(Failures,
		"the quota %s has no QuotaLedger yet, so the mode Deny refuses what it limits until the operator has made one",
		"; see that the operator runs (%w)")
	MayReadNowhere = row(Failures, "you may not list quotas in all namespaces", ": name a namespace with -n")
	MayNotReadHere = row(Failures, "you may not read any quota of namespace %s", ": ask an administrator for the role view there")
)

// The errors of the plugin's command line.
//
//nolint:gochecknoglobals // a table
var (
	UnknownFormat  = row(Failures, "unknown output format %q: -o takes %s", "; use one of these")
	UnknownOrder   = row(Failures, "unknown order %q", ": use --sort-by %s or --sort-by %s")
	FewNamespaces  = row(Failures, "--namespaces is %d", ": use 0 or more")
	ShortInterval  = row(Failures, "--interval is %s", ": use more than 0s")
	WatchedTable   = row(Failures, "--watch shows tables", ": leave -o away, or use kubectl get crq --watch -o %s")
	NegativeFlag   = row(Failures, "%s must not be negative", ": use 0 or more")
	NoFile         = row(Failures, "there is nothing to convert", ": name the files to convert by --filename")
	WantSubject    = row(Failures, "want KIND/NAME or KIND NAME", ": write it as in deployment/web")
	UnknownSubject = row(Failures, "unknown kind %q", ": use one of %s, or a short name of it")
)

// The errors about manifests and answers.
//
//nolint:gochecknoglobals // a table
var (
	NotConverted   = row(Failures, "%d could not be converted", ": look for %q in the comments")
	NotCarriedOver = row(Failures, "%d could not be carried over", ": look for %q in the comments")
	NothingShared  = row(Failures, "nothing to convert: no manifest is a shared quota that convert knows",
		"; give it a ClusterResourceQuota of OpenShift, an ApplicationAwareClusterResourceQuota of KubeVirt, "+
			"a HierarchicalResourceQuota of HNC, or a Tenant, ResourcePool or GlobalResourceQuota of Capsule with a quota")
	NoManifest = row(Failures, "no objects found in the manifests", ": see that the files named by -f or -k have some")
	NotYAML    = row(Failures, "%s: it is no manifest in YAML or JSON",
		"; render a template first: helm template CHART | kubectl crq fit -f -")
	OtherNamespace = row(Failures, "%s %s is for namespace %s, and -n says %s", ": leave -n out, or say -n %s")
	OtherVersion   = row(Failures, "the cluster doesn't serve %s %s", ": write apiVersion: %s")
	WouldNotApply  = row(Failures, "reading %s %s/%s: %w", ": correct it, because kubectl apply refuses it, too")
	WrongType      = part(Failures, "%s can't be a %s", "a mistake in WouldNotApply, which has it")
	BelowZero      = part(Failures, "spec.%s can't be below 0", "a mistake in WouldNotApply, which has it")
	UnknownNodes   = row(Failures, "can't tell on how many nodes DaemonSet %s/%s would run", ": say so with --nodes N")
	CannotTell     = row(Failures, "can't tell: not counted yet: %s", "; ask again in a moment")
	// Untold follows an answer, whose first sentence names the unknown, and its last ones the way to find out.
	Untold = row(Failures, "the answer isn't known", ": see above, and ask again")
)
