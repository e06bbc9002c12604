// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

var update = flag.Bool("update", false, "write the files under testdata anew")

// goldens are inputs as they are found in clusters, each next to its output.
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

// The output is read again as the same quotas, in their order.
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

// Each document is converted, or a comment says why not, or that nothing is known of it.
func TestEachDocumentIsAnswered(t *testing.T) {
	const crq, openShift = "kind: ClusterResourceQuota\n", "apiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuota\n"
	const team = "  selector: {labels: {matchLabels: {team: a}}}\n"
	inside := func(apiVersion, kind, at string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: n}\n" + at +
			`{apiVersion: quota.openshift.io/v1, kind: ClusterResourceQuota, metadata: {name: a}, spec: {quota: {}}}`
	}
	for name, story := range map[string]struct{ content, want string }{
		"another group's quota": {
			"apiVersion: quota.other.example/v1\n" + crq + "metadata: {name: a}",
			"not converted: shared quotas of quota.other.example aren't known: ",
		},
		"another group's quota of one namespace": {
			"apiVersion: quota.kubesphere.io/v1\nkind: ResourceQuota", "not converted: shared quotas of quota.kubesphere.io aren't known: ",
		},
		"a quota in another kind": {
			"apiVersion: management.cattle.io/v3\nkind: Project\nspec: {resourceQuota: {limit: {pods: 5}}}",
			"not converted: shared quotas of management.cattle.io aren't known (spec.resourceQuota): ",
		},
		"values of a chart": {"resourceQuota: {hard: {pods: 5}}", "not converted: shared quotas of objects without a known apiVersion aren't known (resourceQuota): "},
		"a Template": {
			inside("template.openshift.io/v1", "Template", "objects:\n- "),
			"not converted: it holds ClusterResourceQuota a: expand it first (oc process -f FILE --local -o yaml | kubectl crq convert -f -)",
		},
		"a Kustomization": {
			inside("kustomize.config.k8s.io/v1beta1", "Kustomization", "patches:\n- patch: |\n    "),
			"not converted: it holds ClusterResourceQuota a: expand it first (kubectl kustomize DIRECTORY | kubectl crq convert -f -)",
		},
		"a ConfigMap": {
			inside("v1", "ConfigMap", "data:\n  quota.yaml: |\n    "),
			"not converted: it holds ClusterResourceQuota a: save each in a file of its own, and convert that",
		},
		"a Secret": {
			"apiVersion: v1\nkind: Secret\ndata: {a: " + base64.StdEncoding.EncodeToString([]byte(inside("v1", "ConfigMap", "data: "))) + "}",
			"not converted: it holds ClusterResourceQuota a: ",
		},
		"a template within a text": {
			"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    apiVersion: capsule.clastix.io/v1beta2\n    kind: Tenant\n    name: {{ .x }}",
			"not converted: it holds Tenant: ",
		},
		"a policy that makes quotas": {
			inside("kyverno.io/v1", "ClusterPolicy", "spec:\n  rules:\n  - generate: "), "not converted: it holds ClusterResourceQuota a: ",
		},
		"what only refers to a quota": {
			"apiVersion: v1\nkind: Pod\nmetadata: {ownerReferences: [{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, name: a}]}",
			"skipped: convert doesn't know this kind, and found no shared quota in it",
		},
		"a Tenant without a quota": {"apiVersion: capsule.clastix.io/v1beta2\nkind: Tenant\nmetadata: {name: a}", "skipped: it has no quota"},
		"what defines a quota": {
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {quota: 1}", "skipped: it defines a kind, and is no quota",
		},
		"no version":             {crq, "not converted: its kind is nearly one that convert knows: write apiVersion: quota.openshift.io/v1 and kind: ClusterResourceQuota"},
		"no kind":                {"apiVersion: quota.openshift.io/v1\nspec: {hard: {}}", `not converted: convert doesn't know kind "" of quota.openshift.io, only ClusterResourceQuota: correct the kind`},
		"a misspelt kind":        {"apiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuotas", `not converted: convert doesn't know kind "ClusterResourceQuotas" of quota.openshift.io, only `},
		"a misspelt Tenant":      {"apiVersion: capsule.clastix.io/v1beta2\nkind: Tenants\nspec: {resourceQuotas: {}}", "not converted: convert doesn't know kind \"Tenants\" of capsule.clastix.io, only GlobalResourceQuota, "},
		"a name from a variable": {openShift + "metadata: {name: $TEAM_NAME}", "not converted: it looks like a template with placeholders: "},
		"files of others":        {"apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [a.yaml]", "skipped: the files that it names aren't looked at: expand it: kubectl kustomize DIRECTORY | kubectl crq convert -f -"},
		"another case":           {"apiVersion: hnc.x-k8s.io/v1alpha2\nkind: hierarchicalresourcequota", "not converted: its kind is nearly one that convert knows: write apiVersion: hnc.x-k8s.io/v1alpha2 and kind: "},
		"a filled-in name":       {openShift + "metadata: {name: '{{ .Release.Name }}'}", "not converted: it looks like a template of Helm: "},
		"a filled-in annotation": {openShift + "metadata: {name: a}\nspec: {selector: {annotations: {a: '${USER}'}}}", "not converted: it looks like a template with placeholders: "},
		"a filled-in limit":      {openShift + "metadata: {name: a}\nspec: {quota: {hard: {pods: '{{ pods }}'}}}", "not converted: it looks like a template of Jinja: "},
		"a list for an object":   {openShift + "metadata: {name: a}\nspec: {quota: [{hard: {pods: 5}}]}", "not converted: spec.quota: expected an object, not a list"},
		"a number for a text":    {openShift + "metadata: {name: a, labels: {a: 5}}", "not converted: metadata.labels: expected a text, not a number"},
		"a list for a limit":     {openShift + "metadata: {name: a}\nspec: {quota: {hard: {pods: [5]}}}", "not converted: spec.quota.hard.pods: [5]: expected a quantity"},
		"scopes beside the quota": {
			openShift + "metadata: {name: a}\nspec:\n" + team + "  quota: {hard: {pods: 5}}\n  scopes: [NotTerminating]",
			"not carried over: spec.scopes: it belongs to spec.quota.scopes, and had no effect where it stands: move it",
		},
		"limits beside the quota": {
			openShift + "metadata: {name: a}\nspec:\n" + team + "  hard: {pods: 5}",
			"not carried over: spec.hard: it belongs to spec.quota.hard, and had no effect where it stands: move it",
		},
		"limits of a field that doesn't exist": {
			openShift + "metadata: {name: a}\nspec:\n" + team + "  limit: {Hard: {pods: 5}}",
			"not carried over: spec.limit.Hard: it belongs to spec.quota.hard, and had no effect where it stands: move it",
		},
		"limits and something else of a field that doesn't exist": {
			openShift + "metadata: {name: a}\nspec:\n" + team + "  limit: {hard: {pods: 5}, soft: {pods: 4}}",
			"not carried over: spec.limit: a ClusterResourceQuota has nothing for it",
		},
		"labels beside the selector's": {
			openShift + "metadata: {name: a}\nspec:\n  selector: {annotations: {a: b}, matchLabels: {team: a}}\n  quota: {hard: {pods: 5}}",
			"not carried over: spec.selector.matchLabels: it belongs to spec.selector.labels.matchLabels, and had no effect where it stands: move it",
		},
		"limits of a tree": {
			"apiVersion: hnc.x-k8s.io/v1alpha2\nkind: HierarchicalResourceQuota\nmetadata: {name: a, namespace: b}\nspec: {quota: {hard: {pods: 5}}}",
			"not carried over: spec.quota.hard: it belongs to spec.hard, and had no effect where it stands: move it",
		},
		"limits of a tenant": {
			"apiVersion: capsule.clastix.io/v1beta2\nkind: Tenant\nmetadata: {name: a}\nspec: {resourceQuotas: {scopes: [BestEffort]}}",
			"not carried over: spec.resourceQuotas.scopes: it belongs to spec.resourceQuotas.items[].scopes, and had no effect where it stands: move it",
		},
	} {
		comments := string(Comments(Convert(Read("f", []byte(story.content)), "")))
		if !strings.Contains(comments, "\n# "+story.want) {
			t.Errorf("%s: want %s, got:\n%s", name, story.want, comments)
		}
	}
}

// Without a look at the exponent, reading it takes as good as forever.
func TestALargeExponentIsNoQuantity(t *testing.T) {
	for _, limit := range []string{`"1e999999999"`, `"1E-999999999"`, `"` + strings.Repeat("1", 100) + `"`} {
		objects := Read("input", []byte(`{"apiVersion":"hnc.x-k8s.io/v1alpha2","kind":"HierarchicalResourceQuota",`+
			`"metadata":{"name":"a","namespace":"b"},"spec":{"hard":{"cpu":`+limit+`}}}`))
		want := []Note{{Refused, "spec.hard.cpu: " + limit + ": expected a quantity: write it as in 500m, 2 or 64Gi"}}
		if diff := cmp.Diff(want, Convert(objects, "")[0].Notes); diff != "" {
			t.Errorf("(-want,+got):\n%s", diff)
		}
	}
}

func TestRead(t *testing.T) {
	for name, story := range map[string]struct {
		content string
		want    []string
	}{
		"nothing":                     {"# nothing\n---\n\n", []string{"f: nothing is in it"}},
		"a directive":                 {"%YAML 1.1\n---\nkind: A", []string{"A (f)"}},
		"several JSON texts":          {`{"kind":"A"} {"kind":"B"}`, []string{"A (f, document 1)", "B (f, document 2)"}},
		"YAML that begins as JSON":    {"{kind: A}\n---\nkind: B", []string{"A (f, document 1)", "B (f, document 2)"}},
		"a document on its mark":      {"kind: A\n--- {kind: B}\n...\n--- # third\nkind: C", []string{"A (f, document 1)", "B (f, document 2)", "C (f, document 3)"}},
		"old ends of lines":           {"kind: A\r---\rkind: B\r\n---\r\nkind: C", []string{"A (f, document 1)", "B (f, document 2)", "C (f, document 3)"}},
		"UTF-16, as of PowerShell":    {"\xff\xfek\x00i\x00n\x00d\x00:\x00 \x00A\x00", []string{"A (f)"}},
		"a list of the API server":    {`{"kind":"PodList","items":[{"metadata":{"name":"x"}}]}`, []string{"Pod x (f, item 1)"}},
		"a list in a list":            {`{"kind":"List","items":[{"kind":"List","items":[{"kind":"A"}]}]}`, []string{"A (f, item 1, item 1)"}},
		"a bare list":                 {`[{"kind":"A"}, {"kind":"B"}]`, []string{"A (f, item 1)", "B (f, item 2)"}},
		"an item that is no object":   {`{"kind":"List","items":[1,{"kind":"A"}]}`, []string{"f, item 1: not an object: ", "A (f, item 2)"}},
		"a name twice in YAML":        {"spec: {hard: {pods: 1, pods: 2}}", []string{`f: line 1: key "pods" already set`}},
		"a name twice in JSON":        {`{"spec": {"pods": 1, "pods": 2}}`, []string{`f: duplicate field "spec.pods"`}},
		"no object":                   {"plain", []string{"f: not an object: "}},
		"no YAML beside some":         {"a: b: c\n---\nkind: A", []string{"f, document 1: mapping values are not allowed", "A (f, document 2)"}},
		"an object as a name":         {"{a: b}: c", []string{"f: it is no valid YAML"}},
		"nothing as a name":           {"~: c", []string{"f: it is no valid YAML"}},
		"text of another encoding":    {"name: caf\xe9", []string{"f: it is no text in UTF-8: save it as UTF-8"}},
		"UTF-16 without a mark":       {"k\x00i\x00n\x00d\x00", []string{"f: it is no text in UTF-8: save it as UTF-8"}},
		"a number without an end":     {"pods: .inf", []string{"f: a number in it is .inf or .nan: correct it"}},
		"a list of nothing":           {"kind: List\nitems: null", []string{"f: nothing is in it"}},
		"an object for a list":        {"kind: List\nitems: {kind: A}", []string{"f: items: expected a list: correct it"}},
		"more after the end":          {"{kind: A}\n{kind: B}", []string{"f: it goes on after its end"}},
		"a Helm template":             {"metadata:\n  name: {{ .Release.Name }}", []string{"f: it looks like a template of Helm: render it first: helm template CHART | "}},
		"a Helm template, by include": {`labels: {{- include "x.labels" . | nindent 4 }}`, []string{"f: it looks like a template of Helm: "}},
		"a Go template":               {"{{ range .Teams }}\nname: {{ .Name }}", []string{"f: it looks like a template of Go: "}},
		"a Jinja template":            {"{% for t in teams %}\nname: {{ t }}\n{% endfor %}", []string{"f: it looks like a template of Jinja: "}},
		"a Helm template of a part":   {"spec:\n  {{- toYaml . | nindent 2 }}", []string{"f: it looks like a template of Helm: "}},
		"a Go template of a function": {"name: {{ printf .Name }}", []string{"f: it looks like a template of Go: "}},
		"a ytt template after a hash": {"kind: A\ncolour: '#fff' #@ data.values.colour", []string{"f: it looks like a template of ytt: "}},
		"a comment about ytt":         {"# not #@\nkind: A", []string{"A (f)"}},
		"a ytt template":              {"kind: A\npods: #@ data.values.pods", []string{"f: it looks like a template of ytt: "}},
		"an ERB template":             {"<% teams.each do |t| %>\nname: a\n<% end %>", []string{"f: it looks like a template of ERB: "}},
		"a template of OpenShift":     {"pods: [${{PODS}}", []string{"f: it looks like a template of OpenShift: "}},
		"a Jinja template in parts":   {"name: {{ team }}-x", []string{"f: it looks like a template of Jinja: "}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := Read("f", []byte(story.content))
			got := make([]string, 0, len(objects))
			for i := range objects {
				said := objects[i].String()
				if objects[i].note.Text != "" {
					said = objects[i].origin + ": " + objects[i].note.Text
				}
				got = append(got, said)
			}
			if !slices.EqualFunc(got, story.want, strings.HasPrefix) {
				t.Errorf("(-want,+got):\n%s", cmp.Diff(story.want, got))
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, story := range map[string]struct {
		object Object
		want   []string
		notes  int
	}{
		"a namespace by default": {object: hrq("", "quota"), want: []string{"shop-quota"}, notes: 1},
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
	return Convert(Read(name+".yaml", content), "")
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
// end early, with any input.
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
	again := slices.DeleteFunc(Read("output", text), func(o Object) bool { return o.note.Subject == Skipped })
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
