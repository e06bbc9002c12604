/*
Copyright The Shared Quota Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPluginsAreFoundBeforeThoseInPath(t *testing.T) {
	installed, ours := t.TempDir(), t.TempDir()
	for _, dir := range []string{installed, ours} {
		if err := os.WriteFile(filepath.Join(dir, "kubectl-crq"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", installed+string(os.PathListSeparator)+os.Getenv("PATH"))
	tests := map[string]struct {
		pluginDir string
		want      string
	}{
		"the plugin that was asked for": {pluginDir: ours, want: ours},
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
