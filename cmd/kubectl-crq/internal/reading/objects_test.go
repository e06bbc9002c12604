// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
)

func mapper() meta.RESTMapper {
	made := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	made.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	made.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	made.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, meta.RESTScopeRoot)
	return served{made}
}

// served has no versions but those that it was given, as a cluster.
type served struct{ meta.RESTMapper }

func (s served) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	found, err := s.RESTMapper.RESTMapping(kind, versions...)
	if err == nil && len(versions) > 0 && found.GroupVersionKind.Version != versions[0] {
		return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
	}
	return found, err
}

const gooseKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: geese.example.com}
spec: {group: example.com, scope: Namespaced, names: {plural: geese, kind: Goose}}
---
`

func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		to    Target
		want  []string
		notes []string
		err   string
	}{
		"each goes where it says, or to the usual namespace": {
			text: "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: other}}",
			to:   Target{Namespace: "shop"}, want: []string{"pods shop/a", "pods other/b"},
		},
		"-n and what it says are the same": {
			text: "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: shop}}", to: Target{"shop", true}, want: []string{"pods shop/b"},
		},
		"-n and what it says differ": {
			text: "{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: other}}", to: Target{"shop", true},
			err: "Pod b is for namespace other, and -n says shop: leave -n out, or say -n other",
		},
		"a list is what is in it": {
			text: "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}]}", to: Target{Namespace: "shop"},
			want: []string{"pods shop/a"},
		},
		"what is in no namespace is under no quota": {text: "{apiVersion: v1, kind: Namespace, metadata: {name: a}}"},
		"the same object twice is one": {
			text: "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: a}}",
			to:   Target{Namespace: "shop"}, want: []string{"pods shop/a"},
		},
		"those without names are as many as there are": {
			text: "{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}\n---\n{apiVersion: v1, kind: Pod, metadata: {generateName: a-}}",
			to:   Target{Namespace: "shop"}, want: []string{"pods shop/", "pods shop/"},
		},
		"a kind that is defined beside it": {
			text: gooseKind + "{apiVersion: example.com/v1, kind: Goose, metadata: {name: a}}", to: Target{Namespace: "shop"},
			want: []string{"geese.example.com shop/a not served"},
		},
		"an unknown kind": {
			text: "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}", to: Target{Namespace: "shop"},
			want:  []string{"gadgets.example.com shop/a not served"},
			notes: []string{"The cluster doesn't serve example.com/v1 Gadget: it is counted as gadgets.example.com."},
		},
		"a version that is gone": {
			text: "{apiVersion: v1beta1, kind: Pod, metadata: {name: a}}", to: Target{Namespace: "shop"},
			err: "the cluster doesn't serve v1beta1 Pod: write apiVersion: v1",
		},
		"a template": {
			text: "apiVersion: v1\nkind: Pod\nmetadata: {name: {{ .x }}}",
			err:  "reading the manifests: error parsing FILE: it is no manifest in YAML or JSON; render a template first: helm template CHART | kubectl crq fit -f -",
		},
		"nothing at all": {text: "# nothing", err: "no objects found in the manifests: see that the files named by -f or -k have some"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "manifest.yaml")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			objects, notes, err := Read(&resource.FilenameOptions{Filenames: []string{path}}, test.to, mapper())
			if text := strings.ReplaceAll(errorText(err), path, "FILE"); text != test.err {
				t.Fatalf("got error %q, want %q", text, test.err)
			}
			var got []string
			for _, object := range objects {
				text := object.Resource.GroupResource().String() + " " + object.GetNamespace() + "/" + object.GetName()
				if !object.Served {
					text += " not served"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, notes); diff != "" {
				t.Errorf("notes (-want,+got):\n%s", diff)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
