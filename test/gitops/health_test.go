// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	customizations = "../../config/argocd"
	group          = "quota.sharedquota.dev"
)

// healthTests are the cases of one script, in the form of Argo CD's health_test.yaml.
type healthTests struct {
	Tests []struct {
		HealthStatus Health `json:"healthStatus"`
		InputPath    string `json:"inputPath"`
	} `json:"tests"`
}

// scripts returns the directories that have a script, by kind.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(customizations, group, "*", "health.lua"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	found := map[string]string{}
	for _, path := range paths {
		found[filepath.Base(filepath.Dir(path))] = filepath.Dir(path)
	}
	return found
}

func read(t *testing.T, into any, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if into != nil {
		if err := yaml.UnmarshalStrict(text, into); err != nil {
			t.Fatalf("%s: %v", filepath.Join(path...), err)
		}
	}
	return string(text)
}

func TestHealth(t *testing.T) {
	for kind, dir := range scripts(t) {
		script := read(t, nil, dir, "health.lua")
		var cases healthTests
		read(t, &cases, dir, "health_test.yaml")
		var used []string
		for _, test := range cases.Tests {
			used = append(used, filepath.Join(dir, test.InputPath))
			t.Run(kind+"/"+filepath.Base(test.InputPath), func(t *testing.T) {
				object := &unstructured.Unstructured{}
				text, err := yaml.YAMLToJSON([]byte(read(t, nil, dir, test.InputPath)))
				if err == nil {
					err = object.UnmarshalJSON(text)
				}
				if err != nil {
					t.Fatal(err)
				}
				got, err := ArgoCD(t.Context(), script, object)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.HealthStatus, got); diff != "" {
					t.Errorf("(-want,+got):\n%s", diff)
				}
			})
		}
		inputs, err := filepath.Glob(filepath.Join(dir, "testdata", "*.yaml"))
		slices.Sort(used)
		if diff := cmp.Diff(used, inputs); err != nil || diff != "" {
			t.Errorf("%s: %v: inputs (-used,+there):\n%s", kind, err, diff)
		}
	}
}

// Argo CD finds a script by the key that it has in its ConfigMap.
func TestEveryScriptIsInTheConfigMap(t *testing.T) {
	var kustomization struct {
		Generators []struct {
			Name  string   `json:"name"`
			Files []string `json:"files"`
		} `json:"configMapGenerator"`
	}
	text := read(t, nil, customizations, "kustomization.yaml")
	if err := yaml.Unmarshal([]byte(text), &kustomization); err != nil {
		t.Fatal(err)
	}
	var want []string
	for kind := range scripts(t) {
		want = append(want, "resource.customizations.health."+group+"_"+kind+"="+group+"/"+kind+"/health.lua")
	}
	slices.Sort(want)
	if len(kustomization.Generators) != 1 || kustomization.Generators[0].Name != "argocd-cm" {
		t.Fatalf("got %v, want one for argocd-cm", kustomization.Generators)
	}
	if diff := cmp.Diff(want, kustomization.Generators[0].Files); diff != "" {
		t.Errorf("files (-want,+got):\n%s", diff)
	}
}

// A script that never ends, or fails, is an error, not a health.
func TestAScriptThatFails(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for name, script := range map[string]string{
		"never ends":              "while true do end",
		"needs a library":         `return { status = string.format("%s", "Healthy") }`,
		"returns no health":       "return 1",
		"reads what is not there": "return obj.status.conditions",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := ArgoCD(t.Context(), script, object); err == nil {
				t.Errorf("got %v, want an error", got)
			}
		})
	}
}
