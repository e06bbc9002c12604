// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPluginsAreFoundBeforeThoseInPath(t *testing.T) {
	installed, given := t.TempDir(), t.TempDir()
	for _, dir := range []string{installed, given} {
		if err := os.WriteFile(filepath.Join(dir, "kubectl-crq"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", installed+string(os.PathListSeparator)+os.Getenv("PATH"))
	tests := map[string]struct {
		pluginDir string
		want      string
	}{
		"the plugin that was asked for": {pluginDir: given, want: given},
		"else what is installed":        {want: installed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := &Cluster{dir: t.TempDir(), options: Options{PluginDir: tt.pluginDir}}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "command -v kubectl-crq")
			cmd.Env = c.kubectlEnv()
			output, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.TrimSpace(string(output)), filepath.Join(tt.want, "kubectl-crq"); got != want {
				t.Errorf("found %s, want %s", got, want)
			}
		})
	}
}
