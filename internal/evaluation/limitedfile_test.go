// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package evaluation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"

// fileOf is a file of this text.
func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limited.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTheResourcesThatAFileLimits(t *testing.T) {
	clusterServices := resourcequotaapi.LimitedResource{Resource: "pods", MatchScopes: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"cluster-services"}},
	}}
	const clusterServicesText = "limitedResources:\n" +
		"- {resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [cluster-services]}]}\n"
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		text      string
		want      []resourcequotaapi.LimitedResource
		resources []schema.GroupResource
	}{
		"a priority class, in the documented form": {
			text: header + clusterServicesText,
			want: []resourcequotaapi.LimitedResource{clusterServices}, resources: []schema.GroupResource{pods},
		},
		"in the older form": {
			text: "apiVersion: resourcequota.admission.k8s.io/v1beta1\nkind: Configuration\n" + clusterServicesText,
			want: []resourcequotaapi.LimitedResource{clusterServices}, resources: []schema.GroupResource{pods},
		},
		"in JSON": {
			text: `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"ResourceQuotaConfiguration","limitedResources":[` +
				`{"resource":"services","matchContains":["services.loadbalancers"]}]}`,
			want:      []resourcequotaapi.LimitedResource{{Resource: "services", MatchContains: []string{"services.loadbalancers"}}},
			resources: []schema.GroupResource{{Resource: "services"}},
		},
		"several resources, sorted and each once": {
			text: header + "limitedResources:\n" +
				"- {resource: widgets, apiGroup: example.com, matchContains: [widgets]}\n" +
				"- {resource: services, matchContains: [services.loadbalancers]}\n" +
				"- {resource: services, matchContains: [services.nodeports]}\n",
			want: []resourcequotaapi.LimitedResource{
				{APIGroup: "example.com", Resource: "widgets", MatchContains: []string{"widgets"}},
				{Resource: "services", MatchContains: []string{"services.loadbalancers"}},
				{Resource: "services", MatchContains: []string{"services.nodeports"}},
			},
			resources: []schema.GroupResource{{Resource: "services"}, {Group: "example.com", Resource: "widgets"}},
		},
		"both scopes and names, and every scope of its resource": {
			text: header + `limitedResources:
- resource: pods
  matchContains: [requests.nvidia.com/]
  matchScopes:
  - {scopeName: CrossNamespacePodAffinity, operator: Exists}
  - {scopeName: BestEffort, operator: Exists}
  - {scopeName: NotBestEffort, operator: Exists}
- resource: persistentvolumeclaims
  matchScopes: [{scopeName: VolumeAttributesClass, operator: Exists}]
`,
			want: []resourcequotaapi.LimitedResource{
				{
					Resource: "pods", MatchContains: []string{"requests.nvidia.com/"},
					MatchScopes: []corev1.ScopedResourceSelectorRequirement{
						{ScopeName: corev1.ResourceQuotaScopeCrossNamespacePodAffinity, Operator: corev1.ScopeSelectorOpExists},
						{ScopeName: corev1.ResourceQuotaScopeBestEffort, Operator: corev1.ScopeSelectorOpExists},
						{ScopeName: corev1.ResourceQuotaScopeNotBestEffort, Operator: corev1.ScopeSelectorOpExists},
					},
				},
				{
					Resource: "persistentvolumeclaims", MatchScopes: []corev1.ScopedResourceSelectorRequirement{
						{ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpExists},
					},
				},
			},
			resources: []schema.GroupResource{{Resource: "persistentvolumeclaims"}, pods},
		},
		"nothing":                 {text: header},
		"a document among blanks": {text: "\n---\n" + header + "---\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := LoadLimited(fileOf(t, test.text))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.Limited()); diff != "" {
				t.Errorf("limited (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]schema.GroupResource{}, test.resources...), got.Resources()); diff != "" {
				t.Errorf("resources (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAFileNothingIsLimited(t *testing.T) {
	got, err := LoadLimited("")
	if err != nil || len(got.Limited()) != 0 || len(got.Resources()) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	_, err := LoadLimited("nowhere/limited.yaml")
	if want := "reading limited resources: open nowhere/limited.yaml: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAnErrorNamesFileAndField(t *testing.T) {
	entry := func(entry string) string { return header + "limitedResources:\n- " + entry + "\n" }
	scope := func(resource, scope string) string {
		return entry("{resource: " + resource + ", matchScopes: [{scopeName: BestEffort, operator: Exists}, " + scope + "]}")
	}
	const validating = "validating it: "
	const dns1035 = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
		"and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                  {"", "decoding it as a ResourceQuotaConfiguration: Object 'Kind' is missing in ''"},
		"no YAML":                  {header + "\tx", "decoding it as a ResourceQuotaConfiguration: yaml: line 3: found a tab character that violates indentation"},
		"another kind":             {"apiVersion: v1\nkind: ResourceQuota\n", `decoding it as a ResourceQuotaConfiguration: no kind "ResourceQuota" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		"the file around it":       {"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n", `decoding it as a ResourceQuotaConfiguration: no kind "AdmissionConfiguration" is registered for version "apiserver.config.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"`},
		"two documents":            {header + "---\n" + header, "it holds several documents: want one"},
		"an unknown field":         {entry("{resource: pods, matchScope: []}"), `decoding it as a ResourceQuotaConfiguration: strict decoding error: unknown field "limitedResources[0].matchScope"`},
		"a field twice":            {header + "limitedResources: []\nlimitedResources: []\n", "decoding it as a ResourceQuotaConfiguration: strict decoding error: yaml: unmarshal errors:\n  line 4: key \"limitedResources\" already set in map"},
		"no resource":              {entry("{matchContains: [cpu]}"), validating + "limitedResources[0].resource: Required value"},
		"a resource and its group": {entry("{resource: deployments.apps, matchContains: [count/]}"), validating + `limitedResources[0].resource: Invalid value: "deployments.apps": ` + dns1035},
		"a kind":                   {entry("{resource: Pod, matchContains: [cpu]}"), validating + `limitedResources[0].resource: Invalid value: "Pod": ` + dns1035},
		"a subresource":            {entry("{resource: pods/resize, matchContains: [cpu]}"), validating + `limitedResources[0].resource: Invalid value: "pods/resize": ` + dns1035},
		"all resources":            {entry(`{resource: "*", matchContains: [cpu]}`), validating + `limitedResources[0].resource: Invalid value: "*": ` + dns1035},
		"a group with its version": {entry("{resource: deployments, apiGroup: apps/v1, matchContains: [count/]}"), validating + `limitedResources[0].apiGroup: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"a resource without quota": {entry("{resource: events, matchContains: [count/]}"), validating + `limitedResources[0].resource: Invalid value: "events": Kubernetes keeps no quota on it`},
		"nothing of a resource":    {entry("{resource: pods}"), validating + "limitedResources[0]: Required value: matchContains or matchScopes: without them nothing of the resource is limited"},
		"no such scope":            {scope("pods", "{scopeName: CrossNamespaceAffinity, operator: Exists}"), validating + `limitedResources[0].matchScopes[1].scopeName: Invalid value: "CrossNamespaceAffinity": unsupported scope`},
		"no such operator":         {scope("pods", "{scopeName: PriorityClass, operator: Near, values: [x]}"), validating + `limitedResources[0].matchScopes[1].operator: Invalid value: "Near": not a valid selector operator`},
		"no operator":              {scope("pods", "{scopeName: PriorityClass}"), validating + `limitedResources[0].matchScopes[1].operator: Invalid value: "": not a valid selector operator`},
		"In nothing":               {scope("pods", "{scopeName: PriorityClass, operator: In}"), validating + "limitedResources[0].matchScopes[1].values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"},
		"Exists with values":       {scope("pods", "{scopeName: PriorityClass, operator: Exists, values: [x]}"), validating + "limitedResources[0].matchScopes[1].values: Invalid value: [\"x\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"},
		"In where it makes no sense": {
			scope("pods", "{scopeName: CrossNamespacePodAffinity, operator: In, values: [x]}"), validating + `limitedResources[0].matchScopes[1].operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
		},
		"a scope of claims, for pods": {scope("pods", "{scopeName: VolumeAttributesClass, operator: Exists}"), validating + `limitedResources[0].matchScopes[1].scopeName: Invalid value: "VolumeAttributesClass": not a scope of pods`},
		"a scope of pods, for what a quota of pods limits": {
			entry("{resource: cpu, matchScopes: [{scopeName: PriorityClass, operator: Exists}]}"), validating + `limitedResources[0].matchScopes[0].scopeName: Invalid value: "PriorityClass": not a scope of cpu`,
		},
		"a scope of pods, for services": {
			entry("{resource: services, matchScopes: [{scopeName: PriorityClass, operator: Exists}]}"), validating + `limitedResources[0].matchScopes[0].scopeName: Invalid value: "PriorityClass": not a scope of services`,
		},
		"a scope of pods, for pods of another group": {
			entry("{resource: pods, apiGroup: metrics.k8s.io, matchScopes: [{scopeName: PriorityClass, operator: Exists}]}"), validating + `limitedResources[0].matchScopes[0].scopeName: Invalid value: "PriorityClass": not a scope of pods.metrics.k8s.io`,
		},
		"a name that Kubernetes can't match": {
			scope("pods", "{scopeName: PriorityClass, operator: In, values: ["+strings.Repeat("x", 64)+"]}"), validating + `limitedResources[0].matchScopes[1].values: Invalid value: ["LONG"]: values[0][PriorityClass]: Invalid value: "LONG": must be no more than 63 bytes`,
		},
		"two mistakes": {
			header + "limitedResources:\n- {matchContains: [cpu]}\n- {resource: events, matchContains: [count/]}\n", validating + `[limitedResources[0].resource: Required value, limitedResources[1].resource: Invalid value: "events": Kubernetes keeps no quota on it]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := fileOf(t, test.text)
			got, err := LoadLimited(path)
			if err == nil {
				t.Fatalf("accepted, and limits %v", got.Limited())
			}
			want := "reading limited resources from " + path + ": " + test.want
			if told := strings.ReplaceAll(err.Error(), strings.Repeat("x", 64), "LONG"); told != want {
				t.Errorf("got  %s\nwant %s", told, want)
			}
		})
	}
}
