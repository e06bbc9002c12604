// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/yaml"
)

// installation is what kustomize might build, cut short.
const installation = `
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: toy.v0.0.0, annotations: {categories: Security}}
spec:
  displayName: Toy
  install: {strategy: deployment}
  customresourcedefinitions:
    owned:
    - {name: toys.example.org, kind: Toy, version: v1}
---
apiVersion: v1
kind: Namespace
metadata: {name: toy-system, labels: {level: high}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: toy, namespace: toy-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: toy, namespace: toy-system}
spec:
  selector: {}
  template:
    spec:
      serviceAccountName: toy
      containers:
      - {name: manager, image: "toy:built", args: [--leader-elect]}
      - {name: guard, image: "guard:1"}
      volumes:
      - {name: scratch, emptyDir: {}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: toy-manager}
rules:
- {apiGroups: [example.org], resources: [toys], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: toy-manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: toy-manager}
subjects:
- {kind: ServiceAccount, name: toy, namespace: toy-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: toy-viewer}
rules:
- {apiGroups: [example.org], resources: [toys], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: toy-leader, namespace: toy-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: toy-leader}
subjects:
- {kind: ServiceAccount, name: toy, namespace: toy-system}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: toys.example.org}
spec:
  group: example.org
  names: {kind: Toy, plural: toys}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: |-
          Toy is for
          playing.
        type: object
        properties:
          spec:
            type: object
            properties:
              childAge: {type: integer, description: "childAge is\nin years."}
              owners:
                type: object
                description: owners share it.
                properties: {matchLabels: {type: object}, matchExpressions: {type: array}}
          status:
            type: object
            properties:
              conditions: {type: array, description: conditions of it.}
---
apiVersion: example.org/v1
kind: Toy
metadata: {name: bear}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: toy-protection}
spec: {variables: [{name: operator, expression: '"toy-system"'}]}
---
apiVersion: scorecard.operatorframework.io/v1alpha3
kind: Configuration
metadata: {name: config}
`

func released() options {
	return options{
		version: semver.MustParse("1.2.3"), channels: "fast,stable", defaultChannel: "stable", image: "example.org/toy:1.2.3",
		edges: edges{replaces: "1.0.0", skips: "1.1.0,1.2.0"},
	}
}

// made generates the bundle of what is built.
func made(t *testing.T, built string) (files, error) {
	t.Helper()
	given, err := read(strings.NewReader(built))
	if err != nil {
		return nil, err
	}
	return generate(given, released(), []byte("<svg/>"))
}

func mustMake(t *testing.T, built string) files {
	t.Helper()
	bundle, err := made(t, built)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestFiles(t *testing.T) {
	want := []string{
		"bundle.Dockerfile",
		"bundle/manifests/example.org_toys.yaml",
		"bundle/manifests/shared-quota-operator.clusterserviceversion.yaml",
		"bundle/manifests/toy-leader_rbac.authorization.k8s.io_v1_rolebinding.yaml",
		"bundle/manifests/toy-viewer_rbac.authorization.k8s.io_v1_clusterrole.yaml",
		"bundle/metadata/annotations.yaml",
		"bundle/tests/scorecard/config.yaml",
		"config/olm/extras.yaml",
	}
	bundle := mustMake(t, installation)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(bundle))); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	if diff := cmp.Diff(bundle, mustMake(t, installation)); diff != "" {
		t.Errorf("made twice, it differs:\n%s", diff)
	}
	for path, content := range bundle {
		if strings.HasPrefix(path, "bundle") && !strings.HasSuffix(path, "clusterserviceversion.yaml") &&
			strings.Contains(string(content), "toy-system") {
			t.Errorf("%s names the namespace:\n%s", path, content)
		}
	}
	if extras := string(bundle[extrasFile]); !strings.Contains(extras, "name: toy-protection") {
		t.Errorf("the policy is lost:\n%s", extras)
	}
}

func TestClusterServiceVersion(t *testing.T) {
	csv := &operatorsv1alpha1.ClusterServiceVersion{}
	if err := yaml.Unmarshal(mustMake(t, installation)["bundle/manifests/shared-quota-operator.clusterserviceversion.yaml"], csv); err != nil {
		t.Fatal(err)
	}
	wantAnnotations := map[string]string{
		"alm-examples": "[\n  {\n    \"apiVersion\": \"example.org/v1\",\n    \"kind\": \"Toy\",\n" +
			"    \"metadata\": {\n      \"name\": \"bear\"\n    }\n  }\n]",
		"categories":     "Security",
		"containerImage": "example.org/toy:1.2.3",
		"olm.skipRange":  "<1.2.3",
		"operatorframework.io/suggested-namespace": "toy-system",
		"operatorframework.io/suggested-namespace-template": `{"apiVersion":"v1","kind":"Namespace",` +
			`"metadata":{"labels":{"level":"high"},"name":"toy-system"}}`,
	}
	wantOwned := []operatorsv1alpha1.CRDDescription{{
		Name: "toys.example.org", Kind: "Toy", Version: "v1", DisplayName: "Toy", Description: "Toy is for playing.",
		SpecDescriptors: []operatorsv1alpha1.SpecDescriptor{
			{Path: "childAge", DisplayName: "Child Age", Description: "childAge is in years.", XDescriptors: []string{textDescriptor}},
			{Path: "owners", DisplayName: "Owners", Description: "owners share it.", XDescriptors: []string{selectorDescriptor}},
		},
		StatusDescriptors: []operatorsv1alpha1.StatusDescriptor{
			{Path: "conditions", DisplayName: "Conditions", Description: "conditions of it.", XDescriptors: []string{conditionsDescriptor}},
		},
	}}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	pod := strategy.DeploymentSpecs[0].Spec.Template.Spec
	for name, diff := range map[string]string{
		"name":        cmp.Diff("shared-quota-operator.v1.2.3", csv.Name),
		"version":     cmp.Diff("1.2.3", csv.Spec.Version.String()),
		"replaces":    cmp.Diff("shared-quota-operator.v1.0.0", csv.Spec.Replaces),
		"skips":       cmp.Diff([]string{"shared-quota-operator.v1.1.0", "shared-quota-operator.v1.2.0"}, csv.Spec.Skips),
		"annotations": cmp.Diff(wantAnnotations, csv.Annotations),
		"icon":        cmp.Diff([]operatorsv1alpha1.Icon{{Data: "PHN2Zy8+", MediaType: "image/svg+xml"}}, csv.Spec.Icon),
		"owned":       cmp.Diff(wantOwned, csv.Spec.CustomResourceDefinitions.Owned),
		"permissions": cmp.Diff(0, len(strategy.Permissions)),
		"rules":       cmp.Diff([]string{"toys"}, strategy.ClusterPermissions[0].Rules[0].Resources),
		"account":     cmp.Diff("toy", strategy.ClusterPermissions[0].ServiceAccountName),
		"images": cmp.Diff([]operatorsv1alpha1.RelatedImage{
			{Name: "manager", Image: "example.org/toy:1.2.3"}, {Name: "guard", Image: "guard:1"},
		}, csv.Spec.RelatedImages),
		"args":  cmp.Diff([]string{"--leader-elect"}, pod.Containers[0].Args),
		"image": cmp.Diff("example.org/toy:1.2.3", pod.Containers[0].Image),
		"kept":  cmp.Diff(true, pod.Volumes[0].EmptyDir != nil),
	} {
		if diff != "" {
			t.Errorf("%s (-want,+got)\n%s", name, diff)
		}
	}
}

// What has no place in a bundle must not be lost without a word.
func TestRefused(t *testing.T) {
	const more = installation + "---\n"
	for name, test := range map[string]struct{ built, want string }{
		"a kind that nobody has decided on": {
			built: more + "{apiVersion: batch/v1, kind: Job, metadata: {name: once}}",
			want:  "Job once: a bundle can't hold it; say in hack/tools/release what becomes of it",
		},
		"an object in a namespace of others": {
			built: more + "{apiVersion: v1, kind: Service, metadata: {name: dns, namespace: kube-system}}",
			want:  "Service dns: it is in the namespace kube-system, OLM installs into the operator's own",
		},
		"an object that names the namespace": {
			built: more + "{apiVersion: v1, kind: ConfigMap, metadata: {name: where}, data: {host: web.toy-system.svc}}",
			want:  "ConfigMap where: it names the namespace toy-system, OLM may install into another one",
		},
		"an argument that names the namespace": {
			built: strings.Replace(installation, "--leader-elect", "--service=toy-system/web", 1),
			want:  "install strategy: it names the namespace toy-system, OLM may install into another one",
		},
		"a binding to a ClusterRole of others": {
			built: strings.Replace(installation, "kind: ClusterRole, name: toy-manager", "kind: ClusterRole, name: edit", 1),
			want:  "ClusterRoleBinding toy-manager: there is no ClusterRole edit",
		},
		"a binding for the operator and for others": {
			built: strings.Replace(installation, "subjects:\n", "subjects:\n- {kind: Group, name: people}\n", 1),
			want:  "ClusterRoleBinding toy-manager: it is for the operator and for others, whose namespaces OLM doesn't know",
		},
		"an edge that somebody wrote by hand": {
			built: strings.Replace(installation, "displayName: Toy", "replaces: toy.v1.0.0", 1),
			want:  "the base of the ClusterServiceVersion has replaces or skips: leave them to REPLACES and SKIPS of make bundle",
		},
		"a type that nobody owns": {
			built: strings.Replace(installation, "- {name: toys.example.org,", "- {name: dolls.example.org,", 1),
			want:  "CustomResourceDefinition toys.example.org: the base of the ClusterServiceVersion doesn't own it",
		},
		"a second Deployment": {
			built: more + "{apiVersion: apps/v1, kind: Deployment, metadata: {name: second, namespace: toy-system}}",
			want:  "there are 2 objects of kind Deployment, want one",
		},
		"a field that its type lacks": {
			built: strings.Replace(installation, "displayName: Toy", "dispayName: Toy", 1),
			want:  `ClusterServiceVersion toy.v0.0.0: strict decoding error: unknown field "spec.dispayName"`,
		},
		"a Deployment that runs as somebody else": {
			built: strings.Replace(installation, "serviceAccountName: toy", "serviceAccountName: root", 1),
			want:  "the Deployment runs as root, the ServiceAccount is toy",
		},
		"an installation without scorecard's configuration": {
			built: strings.Replace(installation, "kind: Configuration", "kind: ConfigMap", 1),
			want:  "there are 0 objects of kind Configuration, want one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := made(t, test.built)
			if err == nil {
				t.Fatalf("want %s", test.want)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
