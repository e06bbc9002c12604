// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	plainQuota = "apiVersion: quota.openshift.io/v1\nkind: ClusterResourceQuota\nmetadata: {name: NAME}\n" +
		"spec: {selector: {labels: {matchLabels: {team: a}}}, quota: {hard: {pods: 5}}}\n"
	withDefaults = "apiVersion: capsule.clastix.io/v1beta2\nkind: ResourcePool\nmetadata: {name: pool}\n" +
		"spec: {selectors: [{matchLabels: {team: a}}], quota: {hard: {pods: 5}}, defaults: {pods: 0}}\n"
)

// convert needs no kubeconfig and no cluster: the test has neither.
func TestConvert(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	directory := t.TempDir()
	write(t, filepath.Join(directory, "b.yaml"), strings.ReplaceAll(plainQuota, "NAME", "second"))
	write(t, filepath.Join(directory, "a.json"), `{"kind": "Pod"}`)
	write(t, filepath.Join(directory, "notes.txt"), "not: [YAML")
	broken := t.TempDir()
	write(t, filepath.Join(broken, "good.yaml"), strings.ReplaceAll(plainQuota, "NAME", "good"))
	write(t, filepath.Join(broken, "chart.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n")
	write(t, filepath.Join(broken, "list.yaml"), "plain")
	write(t, filepath.Join(directory, "below", "c.yml"), strings.ReplaceAll(plainQuota, "NAME", "third"))

	linked := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(directory, linked); err != nil {
		t.Fatal(err)
	}

	for name, story := range map[string]struct {
		args           string
		in             string
		status         int
		stdout, stderr []string // parts
		silent         bool     // on standard output
	}{
		"what is piped in": {
			args: "-f -", in: strings.ReplaceAll(plainQuota, "NAME", "first"),
			stdout: []string{"# ClusterResourceQuota first (standard input)\n", "name: first"},
		},
		"a directory": {args: "-f " + directory, stdout: []string{
			"# Pod (" + directory + "/a.json)\n# skipped: ", "name: second", "\n# skipped: " + directory + ": not read, ", ": below/, notes.txt: ",
		}},
		"a link to a directory": {args: "-f " + linked, stdout: []string{"# Pod (" + linked + "/a.json)\n", "name: second", ": below/, notes.txt: "}},
		"and those below it":    {args: "-R -f " + directory, stdout: []string{"name: second", "---\n", "name: third"}},
		"the same twice": {
			args: "-f " + directory + " -f " + directory, status: 1,
			stdout: []string{"# not converted: second: "}, stderr: []string{"error: 1 could not be converted"},
		},
		"strictly": {
			args: "-f - --strict", in: withDefaults, status: 1, silent: true,
			stderr: []string{"# not carried over: spec.defaults: ", "error: 1 could not be carried over: look for \"# not carried over\""},
		},
		"strictly, with remarks alone": {
			args: "-f - --strict", in: strings.ReplaceAll(withDefaults, ", defaults: {pods: 0}", ""), stdout: []string{"# note: "},
		},
		"nothing to convert": {args: "-f -", in: "kind: Pod", status: 1, silent: true, stderr: []string{"# skipped: ", "error: nothing to convert"}},
		"what can't be read, beside what can": {
			args: "-f " + broken + " -f " + directory + "/none -f https://example.com/a.yaml", status: 1,
			stdout: []string{
				"# not converted: " + broken + "/chart.yaml: it looks like a template of Helm: render it first: helm template CHART | ",
				"# not converted: " + broken + "/list.yaml: not an object", "name: good",
				"# not converted: " + directory + "/none: it can't be read: no such file or directory\n",
				"# not converted: https://example.com/a.yaml: files are read, not addresses: download it first\n",
			},
			stderr: []string{"error: 4 could not be converted: look for \"# not converted\""},
		},
		"strictly, with what holds a quota": {
			args: "-f - --strict", status: 1, silent: true,
			in: strings.ReplaceAll(plainQuota, "NAME", "plain") +
				"---\napiVersion: v1\nkind: Template\nobjects: [{apiVersion: v1, kind: ClusterResourceQuota, metadata: {name: a}, spec: {}}]\n",
			stderr: []string{"# not converted: it holds ClusterResourceQuota a: ", "error: 1 could not be converted"},
		},
		"strictly, with a template and a quota of an unknown group": {
			args: "-f - --strict", status: 1, silent: true,
			in: strings.ReplaceAll(plainQuota, "NAME", "plain") + "---\n" +
				"apiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: space}\nparameters: [{name: SPACE, required: true}]\n" +
				"objects:\n- apiVersion: quota.openshift.io/v1\n  kind: ClusterResourceQuota\n  metadata: {name: \"for-${SPACE}\"}\n" +
				"  spec: {selector: {annotations: null, labels: {matchLabels: {example.com/space: \"${SPACE}\"}}}, quota: {hard: {pods: 5}}}\n---\n" +
				"apiVersion: quota.other.example/v1alpha1\nkind: ClusterResourceQuota\nmetadata: {name: foreign}\n" +
				"spec: {namespaceSelector: {matchLabels: {team: a}}, hard: {pods: \"5\"}}\n",
			stderr: []string{
				"# not converted: it holds ClusterResourceQuota for-${SPACE}: expand it first (oc process -f FILE",
				"# not converted: shared quotas of quota.other.example aren't known: ", "error: 2 could not be converted",
			},
		},
		"no file": {status: 1, silent: true, stderr: []string{"error: there is nothing to convert: name the files to convert by --filename"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			streams := genericiooptions.IOStreams{In: strings.NewReader(story.in), Out: &stdout, ErrOut: &stderr}
			status := Run(context.Background(), append([]string{"convert"}, strings.Fields(story.args)...), streams)
			if status != story.status {
				t.Errorf("status %d, want %d", status, story.status)
			}
			for _, part := range story.stdout {
				wantPart(t, "standard output", stdout.String(), part)
			}
			for _, part := range story.stderr {
				wantPart(t, "standard error", stderr.String(), part)
			}
			if story.silent && stdout.Len() > 0 {
				t.Errorf("on standard output: %s", stdout.String())
			}
		})
	}
}

func wantPart(t *testing.T, where, all, part string) {
	t.Helper()
	if !strings.Contains(all, part) {
		t.Errorf("%s lacks %q:\n%s", where, part, all)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
