// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
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

// wrongType names types in people's words; Go's are those of the decoder.
func wrongType(path, expected, given string) error {
	words := map[string]string{
		"string": "a text", "bool": "true or false", "array": "a list", "slice": "a list",
		"object": "an object", "map": "an object", "struct": "an object",
	}
	return outcomes.WrongField.Err(path, cmp.Or(words[expected], "a number"), cmp.Or(words[given], "a number"))
}

func foreignQuota(kind schema.GroupVersionKind, where string) string {
	if known := kindsOf(kind.Group); len(known) > 0 {
		return outcomes.UnknownOfGroup.Text(kind.Kind, kind.Group, strings.Join(known, ", "))
	}
	return outcomes.UnknownShared.Text(cmp.Or(kind.Group, "objects without a known apiVersion"), where)
}

// holdsQuotas says how to take quotas out of an object.
func holdsQuotas(quotas []string, kind string) string {
	message := outcomes.HoldsQuotas
	switch kind {
	case "Template":
		message = outcomes.HoldsTemplate
	case "Kustomization":
		message = outcomes.HoldsFiles
	}
	return message.Text(strings.Join(quotas, ", "))
}

// plurals are people's names for the resources that are counted instead.
//
//nolint:gochecknoglobals // a table
var plurals = map[corev1.ResourceName]string{countedMachines: "virtual machines", countedImageStreams: "image streams"}

func countFrom(key, limit string, name corev1.ResourceName, twice bool) Note {
	if twice {
		return Note{Lost, outcomes.LimitedMore.Text(key, limit, name)}
	}
	return Note{Remark, outcomes.LimitedOnce.Text(key, limit, name)}
}

func unknownVersion(kind schema.GroupVersionKind, versions []string) string {
	newest := versions[len(versions)-1]
	return outcomes.UnknownVersion.Text(kind.Version, newest, strings.ToLower(kind.Kind)+"s."+newest+"."+kind.Group)
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
