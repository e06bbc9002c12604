// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

const (
	nothingLost = "nothing is lost, and nothing needs doing"
	// thenConvert reads the output of a command.
	thenConvert = " | kubectl crq convert -f -"
)

// The comments of kubectl crq convert on objects that it doesn't convert.
//
//nolint:gochecknoglobals // a table
var (
	InvalidYAML  = row(Comments, "it is no valid YAML or JSON", ": correct it")
	NotUTF8      = row(Comments, "it is no text in UTF-8", ": save it as UTF-8")
	NoNumber     = row(Comments, "a number in it is .inf or .nan", ": correct it")
	OfField      = part(Comments, "%s: %s", "the row that is its second argument has it")
	OtherMistake = row(Comments, "%s", ": correct it")
	GoesOn       = row(Comments, "it goes on after its end", ": begin the next object with a line of three dashes")
	NoList       = row(Comments, "items: expected a list", ": correct it")
	NotAnObject  = row(Comments, "%snot an object", ": write apiVersion, kind and metadata")
	WrongField   = row(Comments, "%s: expected %s, not %s", ": correct it")
	NoQuantity   = row(Comments, "%s: %s: expected a quantity", ": write it as in 500m, 2 or 64Gi")
	NotPlain     = row(Comments, "metadata or spec.selector has characters that YAML can't keep", ": remove them")
	Templated    = row(Comments, "it looks like a template %s", ": render it first: %s"+thenConvert)

	UnknownOfGroup = row(Comments, "convert doesn't know kind %q of %s, only %s", ": correct the kind")
	UnknownShared  = row(Comments, "shared quotas of %s aren't known%s",
		": write a ClusterResourceQuota by hand; kubectl explain crq.spec shows its fields")
	UnknownVersion = row(Comments, "version %s isn't known", ": have the API server write it in version %s, by kubectl get %s NAME -o yaml")
	Misspelt       = row(Comments, "its kind is nearly one that convert knows", ": write apiVersion: %s and kind: %s")
	HoldsQuotas    = row(Comments, "it holds %s", ": save each in a file of its own, and convert that")
	HoldsTemplate  = row(Comments, "it holds %s", ": expand it first (oc process -f FILE --local -o yaml"+thenConvert+")")
	HoldsFiles     = row(Comments, "it holds %s", ": expand it first (kubectl kustomize DIRECTORY"+thenConvert+")")

	WithoutName      = row(Comments, "it has no metadata.name", ": give it one")
	WithoutNamespace = row(Comments, "it has no metadata.namespace", ": name the namespace that it is in by --namespace")
	EmptySelector    = row(Comments, "an empty selector",
		": say which namespaces share the quota; kubernetes.io/metadata.name is the label with their names")
	EmptyTenant      = row(Comments, "it selects no namespaces", ": say which ones share the quota")
	SeveralSelectors = row(Comments, "a namespace that matches any of its selectors is selected, and these can't be put into one, "+
		"whose requirements must all be met", ": give the namespaces a label in common, and select by that. "+
		"One quota for each selector would allow the whole amount to each")
	UnknownScope = row(Comments, "spec.resourceQuotas.scope: %q", ": use Tenant or Namespace")
	NameTaken    = row(Comments, "%s: %s has given a quota of this name already", ": rename one of them in the input")
	InvalidQuota = row(Comments, "%s: it would not be a valid ClusterResourceQuota: %s", ": correct it in the input")
)

// The comments on lost parts.
//
//nolint:gochecknoglobals // a table
var (
	MisplacedField = row(Comments, "%s: it belongs to %s, and had no effect where it stands", ": move it")
	NothingForIt   = row(Comments, "%s: a ClusterResourceQuota has nothing for it", "; see that you can do without it")
	MoreFields     = row(Comments, "more than 100 fields", ": remove those that are named here, and convert it again")
	NeverInScope   = row(Comments, "spec.quota.hard.%s: %q: the quota's scopes don't apply to %s, so that it would never count",
		": put %s into a quota without scopes")
	MachinesLost = row(Comments, "spec.quota.hard.%s: %q: only what pods request is counted, the part of virtual machines included",
		": raise the limit on pods' requests by that, and by what their pods take besides")
	NamespaceAlone = row(Comments, "spec.resourceQuotas: the scope is Namespace, so each of its %d items limits each namespace alone",
		": keep Capsule for it, or create a ResourceQuota of the same spec in every namespace with the label %s=%s")
	UnreadCount = row(Comments, "metadata.annotations[%q]: %q", ": write it as RESOURCE.GROUP_VERSION and a whole number")
	LimitedMore = part(Comments, "metadata.annotations[%q]: %q: another version limits %s already; the smaller of both limits is kept",
		nothingLost)
	ClaimLost = row(Comments, "a claim on a ResourcePool; a ClusterResourceQuota has no claims",
		": create a ResourceQuota in its namespace for what it may use on its own")
	CustomLost = row(Comments, "it sums up fields of objects of any kind",
		"; write count/RESOURCE.GROUP in a ClusterResourceQuota to count them")
)

// The comments on parts that differ or are skipped.
//
//nolint:gochecknoglobals // a table
var (
	AnnotationsAsked = part(Comments, "annotations can't be part of a webhook's selector: the operator is asked in every namespace that "+
		"spec.selector.labels matches, which is all without them, and refuses only in those that have the annotations", nothingLost)
	PoolClaims = part(Comments, "it limits what the namespaces use together, where a ResourcePool limits what they claim: "+
		"ResourcePoolClaims have no counterpart, and a namespace may use all that the others leave", nothingLost)
	NotGated = part(Comments, "pods that don't fit are refused, and their controllers try again; KubeVirt's quota stores them, "+
		"and holds them by a scheduling gate until there is room. Pods of virtual machines are charged as all pods are", nothingLost)
	SelectorsMerged = part(Comments, "the selectors are merged into one, which matches the same namespaces", nothingLost)
	RenamedLimit    = part(Comments, "spec.quota.hard.%s: %q: %s's name; it is %s now", nothingLost)
	LimitedOnce     = part(Comments, "metadata.annotations[%q]: %q: it is %s now, whatever the version", nothingLost)
	SameQuota       = part(Comments, "%s: %s has given the same quota already", nothingLost)
	HNCLabels       = row(Comments, "HNC keeps the label %[1]s%[2]s on %[1]s and all namespaces below it, "+
		"and refuses it to others, while it runs", ". Before HNC is removed, have the quota select by a label of your own, "+
		"and label the namespaces, new ones too: kubectl label namespaces -l %[1]s%[2]s KEY=VALUE")
	CapsuleLabels = row(Comments, "Capsule puts the label %[1]s=%[2]s on the tenant's namespaces while it runs",
		". Without Capsule, label new ones: kubectl label namespace NAME %[1]s=%[2]s, and see to it that owners can't change it")

	NothingInIt = part(Comments, "nothing is in it", nothingLost)
	SkippedView = part(Comments, "what a project's owner sees of a ClusterResourceQuota; the operator makes LocalResourceQuotas by itself",
		nothingLost)
	SkippedAlready = part(Comments, "it is what others are converted to", nothingLost)
	SkippedSingle  = part(Comments, "it limits one namespace, and goes on doing so beside a ClusterResourceQuota", nothingLost)
	SkippedGated   = part(Comments, "it limits one namespace, while KubeVirt's controller runs; a ResourceQuota does so without it",
		nothingLost)
	SkippedAAQ = part(Comments, "it sets up KubeVirt's controller: here each pod is charged what it requests, whatever "+
		"vmiCalculatorConfiguration and sidecarEvaluators say", nothingLost)
	SkippedWithout    = part(Comments, "it has no quota", nothingLost)
	SkippedDefinition = part(Comments, "it defines a kind, and is no quota", nothingLost)
	SkippedUnknown    = part(Comments, "convert doesn't know this kind, and found no shared quota in it", nothingLost)
	SkippedFiles      = row(Comments, "the files that it names aren't looked at", ": expand it: kubectl kustomize DIRECTORY"+thenConvert)
)
