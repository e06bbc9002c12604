// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fieldNote is the note on a field that is left.
type fieldNote struct {
	prefix  string
	subject Subject
	why     string
}

// ofServer are fields that say how things are and not how they should be, or that
// tools keep for themselves. Nothing is said about them.
//
//nolint:gochecknoglobals // a table
var ofServer = []string{
	"apiVersion", "kind", "status", "metadata.uid", "metadata.resourceVersion", "metadata.generation",
	"metadata.creationTimestamp", "metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "metadata.selfLink",
	"metadata.managedFields", "metadata.generateName",
}

//nolint:gochecknoglobals // a table
var ofAnyKind = []fieldNote{
	{"metadata.finalizers", Remark, "whoever set them looks after the old object alone"},
	{"metadata.ownerReferences", Remark, "the quota isn't deleted together with anything"},
}

func ofTenant() []fieldNote {
	others := strings.Fields("namespaceOptions owners permissions serviceOptions storageClasses ingressOptions " +
		"gatewayOptions podOptions deviceClasses containerRegistries nodeSelector networkPolicies additionalRoleBindings " +
		"imagePullPolicies runtimeClasses priorityClasses cordoned preventDeletion forceTenantPrefix data")
	notes := make([]fieldNote, 0, len(others))
	for _, field := range others {
		notes = append(notes, fieldNote{"spec." + field, Remark, "no quota, and stays with Capsule"})
	}
	return append([]fieldNote{
		{"metadata.labels", Remark, "the Tenant's, not its quotas'"},
		{"metadata.annotations", Remark, "the Tenant's, not its quotas'"},
		{"spec.namespaceOptions.quota", Lost, "a ClusterResourceQuota limits what is in namespaces, not how many there are; keep Capsule " +
			"for it, or limit who may create namespaces"},
		{"spec.limitRanges", Lost, "create a LimitRange in each of the tenant's namespaces; without its defaults, pods that state no " +
			"requests or limits are refused under a quota on these"},
		{"spec.rules", Remark, "what they say besides quotas stays with Capsule"},
	}, notes...)
}

//nolint:gochecknoglobals // a table
var ofResourcePool = []fieldNote{
	{"spec.defaults", Lost, "create a ResourceQuota in each namespace for what it may use on its own"},
	{"spec.config", Lost, "it is about claims, and a ClusterResourceQuota has none"},
}

func misplacedField(path, right string) string {
	return fmt.Sprintf("%s: it belongs to %s, and had no effect where it stands: move it", path, right)
}

// wrongType names types in people's words; Go's are those of the decoder.
func wrongType(path, expected, given string) string {
	words := map[string]string{
		"string": "a text", "bool": "true or false", "array": "a list", "slice": "a list",
		"object": "an object", "map": "an object", "struct": "an object",
	}
	return fmt.Sprintf("%s: expected %s, not %s", path, cmp.Or(words[expected], "a number"), cmp.Or(words[given], "a number"))
}

// thenConvert reads the output of a command.
const thenConvert = " | kubectl crq convert -f -"

const (
	notYAML     = "it is no valid YAML or JSON: correct it"
	notUTF8     = "it is no text in UTF-8: save it as UTF-8"
	noNumber    = "a number in it is .inf or .nan: correct it"
	goesOn      = "it goes on after its end, where a line of three dashes must begin the next object"
	noList      = "items: expected a list: correct it"
	noObject    = "not an object: expected apiVersion, kind and metadata"
	nothingInIt = "nothing is in it"
	moreUnknown = "more than 100 fields: remove those that are named here, and convert it again"
)

func foreignQuota(kind schema.GroupVersionKind, where string) string {
	if known := kindsOf(kind.Group); len(known) > 0 {
		return fmt.Sprintf("convert doesn't know kind %q of %s, only %s: correct the kind",
			kind.Kind, kind.Group, strings.Join(known, ", "))
	}
	return fmt.Sprintf("shared quotas of %s aren't known%s: write a ClusterResourceQuota by hand; "+
		"kubectl explain crq.spec shows its fields",
		cmp.Or(kind.Group, "objects without a known apiVersion"), where)
}

func misspelt(near schema.GroupVersionKind) string {
	return fmt.Sprintf("write apiVersion: %s and kind: %s", near.GroupVersion(), near.Kind)
}

// holdsQuotas says how to take quotas out of an object.
func holdsQuotas(quotas []string, kind string) string {
	next := "save it as a file of its own, and convert that"
	switch kind {
	case "Template":
		next = "expand it first (oc process -f FILE --local -o yaml" + thenConvert + ")"
	case "Kustomization":
		next = "expand it first (kubectl kustomize DIRECTORY" + thenConvert + ")"
	}
	return fmt.Sprintf("it holds %s: %s", strings.Join(quotas, ", "), next)
}

const (
	withoutName      = "it has no metadata.name: give it one"
	withoutNamespace = "it has no metadata.namespace: name the namespace that it is in by --namespace"

	annotationsAsked = "annotations can't be part of a webhook's selector: the operator is asked in every namespace that " +
		"spec.selector.labels matches, which is all without them, and refuses only in those that have the annotations"

	poolClaims = "it limits what the namespaces use together, where a ResourcePool limits what they claim: ResourcePoolClaims have no " +
		"counterpart, and a namespace may use all that the others leave"
	notGated = "pods that don't fit are refused, and their controllers try again; KubeVirt's quota stores them, and holds them by a " +
		"scheduling gate until there is room. Pods of virtual machines are charged as all pods are"
	selectorsMerged  = "the selectors are merged into one, which matches the same namespaces"
	emptySelector    = "an empty selector: say which namespaces share the quota; kubernetes.io/metadata.name is the label with their names"
	noSelector       = "it selects no namespaces: say which ones share the quota"
	severalSelectors = "a namespace that matches any of its selectors is selected, and these can't be put into one, whose requirements " +
		"must all be met: give the namespaces a label in common, and select by that. One quota for each selector would allow the " +
		"whole amount to each"
)

func renamed(name corev1.ResourceName, limit, peer string, counted corev1.ResourceName) string {
	return fmt.Sprintf("spec.quota.hard.%s: %q: %s's name; it is %s now", name, limit, peer, counted)
}

func neverInScope(name corev1.ResourceName, limit string, counted corev1.ResourceName) string {
	return fmt.Sprintf("spec.quota.hard.%s: %q: the quota's scopes don't apply to %s, so that it would never count: "+
		"put %s into a quota without scopes", name, limit, plurals[counted], counted)
}

// plurals are people's names for the resources that are counted instead.
//
//nolint:gochecknoglobals // a table
var plurals = map[corev1.ResourceName]string{countedMachines: "virtual machines", countedImageStreams: "image streams"}

func machinesNotCounted(name corev1.ResourceName, limit string) string {
	return fmt.Sprintf("spec.quota.hard.%s: %q: only what pods request is counted, the part of virtual machines included: raise the "+
		"limit on pods' requests by that, and by what their pods take besides", name, limit)
}

func hncLabelsStop(namespace string) string {
	return fmt.Sprintf("HNC keeps the label %[1]s%[2]s on %[1]s and all namespaces below it, and refuses it to others, while it runs. "+
		"Before HNC is removed, have the quota select by a label of your own, and label the namespaces, new ones too: "+
		"kubectl label namespaces -l %[1]s%[2]s KEY=VALUE", namespace, treeLabelSuffix)
}

func capsuleLabelsStop(tenant string) string {
	return fmt.Sprintf("Capsule puts the label %[1]s=%[2]s on the tenant's namespaces while it runs. "+
		"Without Capsule, label new ones: kubectl label namespace NAME %[1]s=%[2]s, and see to it that owners can't change it",
		tenantLabel, tenant)
}

func eachNamespaceAlone(tenant string, items int) string {
	return fmt.Sprintf("spec.resourceQuotas: the scope is Namespace, so each of its %d items limits each namespace alone: keep Capsule "+
		"for it, or create a ResourceQuota of the same spec in every namespace with the label %s=%s", items, tenantLabel, tenant)
}

func unknownScope(scope string) string {
	return fmt.Sprintf("spec.resourceQuotas.scope: %q: it must be Tenant or Namespace", scope)
}

func countFrom(key, limit string, name corev1.ResourceName, twice bool) Note {
	at := fmt.Sprintf("metadata.annotations[%q]: %q: ", key, limit)
	if twice {
		return Note{Lost, at + fmt.Sprintf("another version limits %s already; the smaller of both limits is kept", name)}
	}
	return Note{Remark, at + fmt.Sprintf("it is %s now, whatever the version", name)}
}

func unreadableCount(key, limit string) string {
	return fmt.Sprintf("metadata.annotations[%q]: %q: expected RESOURCE.GROUP_VERSION and a whole number", key, limit)
}

func noQuantity(path string, value any) string {
	return fmt.Sprintf("%s: %s: expected a quantity, as in 500m, 2 or 64Gi", path, valueOf(value))
}

func nameTaken(name, source string) string {
	return fmt.Sprintf("%s: %s has given a quota of this name already: rename one of them in the input", name, source)
}

func sameQuota(name, source string) string {
	return fmt.Sprintf("%s: %s has given the same quota already", name, source)
}

func invalidQuota(name string, mistakes []string) string {
	return fmt.Sprintf("%s: it would not be a valid ClusterResourceQuota: %s", name, strings.Join(mistakes, "; "))
}

// Objects that are known and not converted, by their kinds.
const (
	skippedView    = "what a project's owner sees of a ClusterResourceQuota; the operator makes LocalResourceQuotas by itself"
	skippedAlready = "it is what others are converted to"
	skippedSingle  = "it limits one namespace, and goes on doing so beside a ClusterResourceQuota"
	skippedGated   = "it limits one namespace, while KubeVirt's controller runs; a ResourceQuota does so without it"
	skippedAAQ     = "it sets up KubeVirt's controller: here each pod is charged what it requests, whatever vmiCalculatorConfiguration " +
		"and sidecarEvaluators say"
	lostClaim         = "a claim on a ResourcePool; a ClusterResourceQuota has no claims"
	lostCustom        = "it sums up fields of objects of any kind; a ClusterResourceQuota can count them: count/RESOURCE.GROUP"
	skippedWithout    = "it has no quota"
	skippedDefinition = "it defines a kind, and is no quota"
	skippedUnknown    = "convert doesn't know this kind, and found no shared quota in it"
	skippedFiles      = "the files that it names aren't looked at: expand it: kubectl kustomize DIRECTORY" + thenConvert
)

func unknownVersion(kind schema.GroupVersionKind, versions []string) string {
	return fmt.Sprintf("version %s isn't known: have the API server write it in version %s, by kubectl get %ss.%s.%s NAME -o yaml",
		kind.Version, versions[len(versions)-1], strings.ToLower(kind.Kind), versions[len(versions)-1], kind.Group)
}

// plain keeps a comment in its line, even if the input has line breaks.
func plain(text string) string {
	quoted := strconv.QuoteToASCII(text)
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(quoted[1 : len(quoted)-1])
}

// valueOf returns a value in one line.
func valueOf(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
