// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

var update = flag.Bool("update", false, "write the files under testdata anew")

// goldens are inputs as they are found in clusters, each next to what comes out.
var goldens = []string{"openshift", "openshift-refused", "hnc", "capsule", "capsule-pools", "capsule-pools-refused", "capsule-rules", "kubevirt"}

func TestConvertsAsWritten(t *testing.T) {
	for _, name := range goldens {
		t.Run(name, func(t *testing.T) {
			outcomes := convertFile(t, name)
			text, err := YAML(outcomes)
			if err != nil {
				t.Fatal(err)
			}
			wantGolden(t, name+".golden.yaml", text)
		})
	}
}

func TestConvertsToJSON(t *testing.T) {
	outcomes := convertFile(t, "capsule")
	text, err := JSON(outcomes)
	if err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "capsule.golden.json", text)
	wantGolden(t, "capsule.golden.comments", Comments(outcomes))
}

// What is written is read again as what it is already: the quotas, in their order.
func TestItsOutputIsReadAgain(t *testing.T) {
	for _, name := range goldens {
		outcomes := convertFile(t, name)
		wantReadAgain(t, outcomes)
		for _, outcome := range outcomes {
			for _, manifest := range outcome.Manifests {
				if errs := definition.Validate(manifest.Quota); len(errs) > 0 {
					t.Errorf("%s: %s is invalid: %v", name, manifest.Quota.Name, errs)
				}
			}
		}
	}
}

func TestSum(t *testing.T) {
	for name, want := range map[string]Total{
		"openshift":             {Quotas: 2, Lost: 1},
		"openshift-refused":     {Quotas: 1, Refused: 5, Lost: 2},
		"hnc":                   {Quotas: 2, Lost: 1},
		"capsule":               {Quotas: 5, Lost: 5},
		"capsule-pools":         {Quotas: 2, Lost: 3},
		"capsule-pools-refused": {Refused: 5, Lost: 1},
		"capsule-rules":         {Quotas: 3, Refused: 1, Lost: 1},
		"kubevirt":              {Quotas: 3, Lost: 4},
	} {
		if diff := cmp.Diff(want, Sum(convertFile(t, name))); diff != "" {
			t.Errorf("%s (-want,+got):\n%s", name, diff)
		}
	}
}

// Without a look at the exponent, reading it takes as good as forever.
func TestALargeExponentIsNoQuantity(t *testing.T) {
	for _, limit := range []string{`"1e999999999"`, `"1E-999999999"`, `"` + strings.Repeat("1", 100) + `"`} {
		objects, err := Read("input", []byte(`{"apiVersion":"hnc.x-k8s.io/v1alpha2","kind":"HierarchicalResourceQuota",`+
			`"metadata":{"name":"a","namespace":"b"},"spec":{"hard":{"cpu":`+limit+`}}}`))
		if err != nil {
			t.Fatal(err)
		}
		want := []Note{{Refused, "spec.hard.cpu: " + limit + ": expected a quantity, as in 500m, 2 or 64Gi"}}
		if diff := cmp.Diff(want, Convert(objects, "")[0].Notes); diff != "" {
			t.Errorf("(-want,+got):\n%s", diff)
		}
	}
}

func TestRead(t *testing.T) {
	for name, story := range map[string]struct {
		content, failure string
		want             []string
	}{
		"nothing":                   {content: "# nothing\n---\n\n"},
		"several JSON texts":        {content: `{"kind":"A"} {"kind":"B"}`, want: []string{"A (f, document 1)", "B (f, document 2)"}},
		"YAML that begins as JSON":  {content: "{kind: A}\n---\nkind: B", want: []string{"A (f, document 1)", "B (f, document 2)"}},
		"a list of the API server":  {content: `{"kind":"PodList","items":[{"metadata":{"name":"x"}}]}`, want: []string{"Pod x (f, item 1)"}},
		"a list in a list":          {content: `{"kind":"List","items":[{"kind":"List","items":[{"kind":"A"}]}]}`, want: []string{"A (f, item 1, item 1)"}},
		"an item that is no object": {content: `{"kind":"List","items":[1]}`, want: []string{"something without a kind (f, item 1)"}},
		"a name twice in YAML":      {content: "spec: {hard: {pods: 1, pods: 2}}", failure: `key "pods" already set`},
		"a name twice in JSON":      {content: `{"spec": {"pods": 1, "pods": 2}}`, failure: `duplicate field "spec.pods"`},
		"no object":                 {content: "- 1", failure: "not an object"},
		"no YAML":                   {content: "a: b: c", failure: "reading f: parsing YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Read("f", []byte(story.content))
			if story.failure != "" {
				if err == nil || !strings.Contains(err.Error(), story.failure) {
					t.Fatalf("want a failure with %q, got: %v", story.failure, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range objects {
				got = append(got, objects[i].String())
			}
			if diff := cmp.Diff(story.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 250)
	for name, story := range map[string]struct {
		object Object
		want   []string
		notes  int
	}{
		"a namespace by default": {object: hrq("", "quota"), want: []string{"shop-quota"}, notes: 1},
		"too long":               {object: hrq("team", long), want: []string{"team-" + strings.Repeat("a", 239) + "-807eb00f"}, notes: 2},
		"no name for an object":  {object: hrq("team", "Big_One"), notes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := Convert([]Object{story.object}, "shop")[0]
			var got []string
			notes := len(outcome.Notes)
			for _, manifest := range outcome.Manifests {
				got = append(got, manifest.Quota.Name)
				notes += len(manifest.Notes)
			}
			if diff := cmp.Diff(story.want, got); diff != "" || notes != story.notes {
				t.Errorf("%d notes: %v (-want,+got):\n%s", notes, outcome.Notes, diff)
			}
		})
	}
	if first, second := shortened(long+"aaaab"), shortened(long+"aaaac"); first == second {
		t.Errorf("two long names are both %s", first)
	}
}

func hrq(namespace, name string) Object {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return newObject("f", map[string]any{
		"apiVersion": "hnc.x-k8s.io/v1alpha2", "kind": "HierarchicalResourceQuota", "metadata": metadata,
		"spec": map[string]any{"hard": map[string]any{"pods": int64(1)}},
	})
}

func convertFile(t *testing.T, name string) []Outcome {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Read(name+".yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	return Convert(objects, "")
}

func wantGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("unlike %s (-want,+got):\n%s", path, diff)
	}
}

// wantReadAgain fails unless the YAML holds exactly the quotas: no comment may
// end early, whatever the input put into it.
func wantReadAgain(tb interface {
	Helper()
	Fatalf(format string, args ...any)
}, outcomes []Outcome,
) {
	tb.Helper()
	text, err := YAML(outcomes)
	if err != nil {
		tb.Fatalf("writing: %v", err)
	}
	again, err := Read("output", text)
	if err != nil {
		tb.Fatalf("reading the output: %v\n%s", err, text)
	}
	var want []any
	for _, outcome := range outcomes {
		for _, manifest := range outcome.Manifests {
			fields, err := fieldsOf(manifest.Quota)
			if err != nil {
				tb.Fatalf("writing: %v", err)
			}
			want = append(want, fields)
		}
	}
	var got []any
	for _, object := range again {
		got = append(got, object.content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		tb.Fatalf("the output isn't read as what it is (-want,+got):\n%s\n%s", diff, text)
	}
	for line := range bytes.Lines(Comments(outcomes)) {
		if !strings.HasPrefix(string(line), "# ") {
			tb.Fatalf("a comment has a line of its own: %q", line)
		}
	}
}
