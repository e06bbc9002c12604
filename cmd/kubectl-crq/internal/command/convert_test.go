// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

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
	write(t, filepath.Join(directory, "below", "c.yml"), strings.ReplaceAll(plainQuota, "NAME", "third"))

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
		"a directory": {
			args: "-f " + directory, stdout: []string{"# Pod (" + directory + "/a.json)\n# skipped: ", "name: second"},
		},
		"and those below it": {args: "-R -f " + directory, stdout: []string{"name: second", "---\n", "name: third"}},
		"the same twice": {
			args: "-f " + directory + " -f " + directory, status: 1,
			stdout: []string{"# not converted: second: "}, stderr: []string{"error: 1 could not be converted"},
		},
		"as JSON, with the comments elsewhere": {
			args: "-f - -o json", in: withDefaults,
			stdout: []string{`"kind": "ClusterResourceQuota"`}, stderr: []string{"# not carried over: spec.defaults: "},
		},
		"strictly": {
			args: "-f - --strict", in: withDefaults, status: 1, silent: true,
			stderr: []string{"# not carried over: spec.defaults: ", "error: 1 could not be carried over: look for \"# not carried over\""},
		},
		"strictly, with remarks alone": {
			args: "-f - --strict", in: strings.ReplaceAll(withDefaults, ", defaults: {pods: 0}", ""), stdout: []string{"# note: "},
		},
		"nothing to convert": {
			args: "-f -", in: "kind: Pod", status: 1, silent: true, stderr: []string{"# skipped: ", "error: nothing to convert"},
		},
		"no file":     {status: 1, silent: true, stderr: []string{"error: name the files to convert by --filename"}},
		"a lost file": {args: "-f " + directory + "/none", status: 1, silent: true, stderr: []string{"error: looking for manifests: "}},
		"an address":  {args: "-f https://example.com/a.yaml", status: 1, silent: true, stderr: []string{"download it first"}},
		"a format":    {args: "-f - -o table", status: 1, silent: true, stderr: []string{`error: --output is yaml or json, not "table"`}},
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
